"""The part of as_tlang.py about products, losses and layers."""
import torch

from as_tlang import (ENTRY, Inexpressible, NotTaken, bind, entry, literal,
                      rank, widen)


@entry("einsum")
def _einsum(e, s):
    pattern = s.args[0].replace(" ", "")
    if "->" not in pattern:
        names = [c for c in pattern if c.isalpha()]
        once = sorted(c for c in set(names) if names.count(c) == 1)
        more = "..." if "..." in pattern else ""
        pattern += "->" + more + "".join(once)
    spaced = pattern.replace("...", "%")
    out = []
    for c in spaced.replace("->", ">"):
        out.append({"%": " ... ", ">": " -> ", ",": ", "}.get(c, c + " "))
    xs = ", ".join(e.t(v) for v in s.input)
    return f'einsum("{" ".join("".join(out).split())}", {xs})'


@entry("nn.functional.linear")
def _linear(e, s):
    a = bind(s, weight=None, bias=None)
    if a.weight.dim() != 2:
        raise NotTaken("vector weight")
    y = f"{e.t(s.input)} @ {e.t(a.weight)}.T"
    return f"({y} + {e.t(a.bias)})" if a.bias is not None else f"({y})"


def _products(name, product, operands):
    def f(e, s):
        a = bind(s, first=None, second=None, beta=1, alpha=1)
        if not s.input.dtype.is_floating_point and isinstance(
                a.beta + a.alpha, float):
            raise Inexpressible("a fraction of an integer")
        x, y = e.t(a.first), e.t(a.second)
        p = product.format(x, y)
        if a.alpha != 1:
            p = f"{literal(a.alpha)} * {p}"
        b = e.t(s.input)
        if a.beta != 1:
            b = f"{literal(a.beta)} * {b}"
        return f"({b} + {p})"
    ENTRY[name] = f


_products("addmm", "({} @ {})", 2)
_products("addmm/decomposed", "({} @ {})", 2)
_products("addmv", "({} @ {})", 2)
_products("baddbmm", "({} @ {})", 2)
_products("addr", "outer({}, {})", 2)
_products("addbmm", "sum({} @ {}, axis=0)", 2)


for _name, _sign in (("addcmul", "*"), ("addcdiv", "/")):
    def _f(e, s, sign=_sign):
        a = bind(s, a=None, b=None, value=1)
        n = max(rank(v) for v in (s.input, a.a, a.b))
        x, p, q = (widen(e, v, n) for v in (s.input, a.a, a.b))
        return f"({x} + {literal(a.value)} * ({p} {sign} {q}))"
    ENTRY[_name] = _f


@entry("inner")
def _inner(e, s):
    a = bind(s, other=None)
    x, y = e.t(s.input), e.t(a.other)
    if 0 in (rank(s.input), rank(a.other)):
        return f"({x} * {y})"
    if rank(a.other) == 1:
        return f"({x} @ {y})"
    axes = literal([rank(a.other) - 1] + list(range(rank(a.other) - 1)))
    shape = literal(list(s.input.shape[:-1]) + list(a.other.shape[:-1]))
    n = literal([a.other.shape[-1], -1]) if a.other.numel() else literal(
        [a.other.shape[-1], a.other[..., 0].numel()])
    return f"reshape({x} @ reshape(permute({y}, {axes}), {n}), {shape})"


# ---- losses ----------------------------------------------------------------
def reduce_of(a):
    """The reduction, from its new or its two old arguments."""
    how = a.reduction
    if getattr(a, "size_average", None) is not None or \
            getattr(a, "reduce", None) is not None:
        mean = a.size_average if a.size_average is not None else True
        how = ("mean" if mean else "sum") if a.reduce in (None, True) else "none"
    if how not in ("none", "mean", "sum"):
        raise Inexpressible("no such reduction")
    return f", reduce={how}"


def same_shapes(e, x, y):
    """Losses do not broadcast in tlang: expanded here."""
    if x.shape == y.shape:
        return e.t(x), e.t(y)
    shape = literal(list(torch.broadcast_shapes(x.shape, y.shape)))
    return tuple(f"expand({e.t(v)}, {shape})" for v in (x, y))


def weighted(e, a, x, text):
    """The loss with a weight for each element, by what names.tsv says; the
    mean of l1, mse and huber is over the sum of the weights, there."""
    if a.weight is None:
        return text
    if a.weight.shape != x.shape:
        raise Inexpressible("weights of another shape")
    how = reduce_of(a)[len(", reduce="):]
    w = e.t(a.weight)
    each = f"({text.replace(reduce_of(a), ', reduce=none')} * {w})"
    if how == "none":
        return each
    return f"sum({each})" + (f" / sum({w})" if how == "mean" else "")


def _loss(name, **more):
    def f(e, s):
        a = bind(s, target=None, size_average=None, reduce=None,
                 reduction="mean", weight=None, **more)
        x, y = same_shapes(e, s.input, a.target)
        extra = "".join(f", {k}={literal(float(getattr(a, k)))}"
                        for k in more if k == "delta")
        return weighted(e, a, s.input,
                        f"{name}({x}, {y}{extra}{reduce_of(a)})")
    return f


ENTRY["nn.functional.mse_loss"] = _loss("mse")
ENTRY["nn.functional.l1_loss"] = _loss("l1")


@entry("nn.functional.huber_loss")
def _huber(e, s):
    a = bind(s, target=None, reduction="mean", delta=1.0, weight=None)
    if a.delta <= 0:
        raise Inexpressible("no such delta")
    x, y = same_shapes(e, s.input, a.target)
    return weighted(e, a, s.input, f"huber({x}, {y}, "
                    f"delta={literal(float(a.delta))}{reduce_of(a)})")


@entry("nn.functional.smooth_l1_loss")
def _smooth(e, s):
    a = bind(s, target=None, size_average=None, reduce=None,
             reduction="mean", beta=1.0)
    x, y = same_shapes(e, s.input, a.target)
    if a.beta == 0:
        return f"l1({x}, {y}{reduce_of(a)})"
    return f"(huber({x}, {y}, delta={literal(float(a.beta))}" \
        f"{reduce_of(a)}) / {literal(float(a.beta))})"


@entry("nn.functional.binary_cross_entropy_with_logits")
def _bce(e, s):
    a = bind(s, target=None, weight=None, size_average=None, reduce=None,
             reduction="mean", pos_weight=None)
    x, y = same_shapes(e, s.input, a.target)
    if a.weight is None and a.pos_weight is None:
        return f"bce_logits({x}, {y}{reduce_of(a)})"
    each = f"bce_logits({x}, {y}, reduce=none)"
    if a.pos_weight is not None:
        p = e.t(a.pos_weight)
        each = f"(({p} * {y}) * softplus(-{x}) + (1 - {y}) * softplus({x}))"
    if a.weight is not None:
        each = f"({each} * {e.t(a.weight)})"
    how = reduce_of(a)[len(", reduce="):]
    return each if how == "none" else f"{how}({each})"


@entry("nn.functional.kl_div")
def _kl(e, s):
    a = bind(s, target=None, size_average=None, reduce=None,
             reduction="mean", log_target=False)
    x, y = same_shapes(e, s.input, a.target)
    if a.log_target:
        y = f"exp({y})"
    if a.reduction == "batchmean":
        n = s.input.shape[0] if s.input.dim() else 1
        return f"(kl({x}, {y}, reduce=sum) / {n})"
    return f"kl({x}, {y}{reduce_of(a)})"


def classes_last(e, v):
    """Class axis 1 of PyTorch as the last axis."""
    x = e.t(v)
    if v.dim() <= 2:
        return x
    axes = [0] + list(range(2, v.dim())) + [1]
    return f"permute({x}, {literal(axes)})"


def probabilities(e, logits, a):
    """Cross entropy of probabilities for each class, as names.tsv says."""
    x, p = classes_last(e, logits), classes_last(e, a.target)
    n = logits.shape[1 if logits.dim() > 1 else 0]
    if a.label_smoothing:
        p = f"({p} * {literal(1 - a.label_smoothing)} + " \
            f"{literal(a.label_smoothing / n)})"
    if a.weight is not None:
        p = f"({p} * {e.t(a.weight)})"
    each = f"(-sum({p} * log_softmax({x}), axis=-1))"
    how = reduce_of(a)[len(", reduce="):]
    return each if how == "none" else f"{how}({each})"


def _class_loss(name, entropy):
    def f(e, s):
        more = {"label_smoothing": 0.0} if entropy else {}
        a = bind(s, target=None, weight=None, size_average=None,
                 ignore_index=-100, reduce=None, reduction="mean", **more)
        if a.target.dtype.is_floating_point:
            return probabilities(e, s.input, a)
        x, y = classes_last(e, s.input), e.t(a.target)
        opts = f", ignore_index={literal(a.ignore_index)}"
        if a.weight is not None:
            opts += f", weight={e.t(a.weight)}"
        if entropy and a.label_smoothing:
            opts += f", label_smoothing={literal(a.label_smoothing)}"
        return f"{name}({x}, {y}{opts}{reduce_of(a)})"
    return f


ENTRY["nn.functional.cross_entropy"] = _class_loss("cross_entropy", True)
ENTRY["nn.functional.nll_loss"] = _class_loss("nll", False)


# ---- layers ----------------------------------------------------------------
@entry("nn.functional.layer_norm")
def _layer_norm(e, s):
    a = bind(s, shape=None, weight=None, bias=None, eps=1e-5)
    x = e.t(s.input)
    w = e.t(a.weight) if a.weight is not None else "none"
    b = e.t(a.bias) if a.bias is not None else "none"
    return f"layer_norm({x}, {w}, {b}, eps={literal(a.eps)}, " \
        f"axes={len(a.shape)})"


def _spatial(v):
    """stride, dilation and the like: an int, or as many as there are axes."""
    v = list(v) if isinstance(v, (tuple, list, torch.Size)) else v
    return literal(v[0] if isinstance(v, list) and len(v) == 1 else v)


def _convolution(name):
    def f(e, s):
        transposed = "transpose" in name
        given = (dict(weight=None, bias=None, stride=1, padding=0,
                      output_padding=0, groups=1, dilation=1)
                 if transposed else
                 dict(weight=None, bias=None, stride=1, padding=0,
                      dilation=1, groups=1))
        a = bind(s, **given)
        x, w = e.t(s.input), e.t(a.weight)
        b = e.t(a.bias) if a.bias is not None else "none"
        pad = literal(a.padding) if isinstance(a.padding, str) \
            else _spatial(a.padding)
        more = f", output_padding={_spatial(a.output_padding)}" \
            if transposed else ""
        return (f"{name}({x}, {w}, {b}, stride={_spatial(a.stride)}, "
                f"pad={pad}, dilation={_spatial(a.dilation)}, "
                f"groups={a.groups}{more})")
    return f


for _n in (1, 2, 3):
    ENTRY[f"nn.functional.conv{_n}d"] = _convolution(f"conv{_n}d")
    ENTRY[f"nn.functional.conv_transpose{_n}d"] = _convolution(
        f"conv_transpose{_n}d")


@entry("nn.functional.dropout")
def _dropout(e, s):
    a = bind(s, p=0.5, training=True, inplace=False)
    if a.training and 0 < a.p < 1:
        raise Inexpressible("draws of its own")
    if a.training or a.p:
        raise Inexpressible("the mode is the module's")
    return f"dropout({e.t(s.input)}, {literal(float(a.p))})"


@entry("nn.functional.scaled_dot_product_attention")
def _sdpa(e, s):
    a = bind(s, key=None, value=None, attn_mask=None, dropout_p=0.0,
             is_causal=False, scale=None, enable_gqa=False)
    if a.dropout_p:
        raise Inexpressible("draws of its own")
    q, k, v = e.t(s.input), e.t(a.key), e.t(a.value)
    n, m = s.input.shape[-2], a.key.shape[-2]
    mask = "none" if a.attn_mask is None else e.t(a.attn_mask)
    if a.is_causal and n != m:  # ours ends with the last key
        mask = f"(tril(ones({n}, {m})) > 0)"
    causal = ", causal=true" if a.is_causal and n == m else ""
    scale = "" if a.scale is None else f", scale={literal(a.scale)}"
    return f"sdpa({q}, {k}, {v}, {mask}{causal}{scale})"
