"""What each operation of grid.py is, in tlang and in PyTorch."""
import dataclasses

import torch
import torch.nn.functional as F

FLOATS = ["f32", "f64", "f32", "f16", "f64", "bf16"]
INTS = ["i64", "i32", "u8", "i8", "i16"]
OPS = []


@dataclasses.dataclass
class Variant:
    text: str
    torch: object
    rank: int = 0  # the least number of axes


@dataclasses.dataclass
class Op:
    """inputs: (kind of data, shape of the case -> shape of the input)."""
    name: str
    variants: list
    inputs: list
    dtypes: list
    grad: bool = True
    second: bool = True
    shapes: list = None
    rules: list = ()  # findings that are differences on purpose
    sums: bool = False  # of long sums: four units of the largest may be lost


def same(s):
    return s


def op(name, variants, kinds=("any",), dtypes=FLOATS, shapes_of=None, **more):
    variants = [Variant(*v) for v in variants]
    shapes_of = shapes_of or [same] * len(kinds)
    OPS.append(Op(name, variants, list(zip(kinds, shapes_of)), list(dtypes),
                  **more))


# ---- elementwise -----------------------------------------------------------
for _name, _kind in (("exp", "small"), ("exp2", "small"), ("expm1", "small"),
                     ("log", "pos"), ("log2", "pos"), ("log1p", "pos"),
                     ("sqrt", "pos"), ("rsqrt", "pos"), ("sin", "any"),
                     ("cos", "any"), ("tan", "unit"), ("tanh", "small"),
                     ("sigmoid", "any"), ("erf", "small")):
    op(_name, [(f"{_name}(x0)", getattr(torch, _name))], [_kind])
for _name in ("floor", "ceil", "round", "isnan", "isfinite"):
    op(_name, [(f"{_name}(x0)", getattr(torch, _name))])
for _name in ("abs", "sign"):
    op(_name, [(f"{_name}(x0)", getattr(torch, _name))], ["off"],
       FLOATS + INTS)
for _name in ("relu", "silu", "softplus", "softsign", "gelu"):
    op(_name, [(f"{_name}(x0)", getattr(F, _name))], ["off"])
op("gelu_tanh", [("gelu_tanh(x0)", lambda x: F.gelu(x, approximate="tanh"))])
op("leaky_relu", [("leaky_relu(x0)", F.leaky_relu),
                  ("leaky_relu(x0, 0.25)", lambda x: F.leaky_relu(x, 0.25))],
   ["off"])
op("elu", [("elu(x0)", F.elu),
           ("elu(x0, alpha=0.5)", lambda x: F.elu(x, 0.5))], ["off"])
for _name, _sign in (("add", "+"), ("sub", "-"), ("mul", "*"),
                     ("maximum", None), ("minimum", None)):
    _text = f"x0 {_sign} x1" if _sign else f"{_name}(x0, x1)"
    op(_name, [(_text, getattr(torch, _name))], ["any", "off"],
       FLOATS + INTS)
    op(_name + "_broadcast", [(_text, getattr(torch, _name), 1)],
       ["any", "off"], FLOATS + INTS, [same, lambda s: s[-1:]])
op("div", [("x0 / x1", torch.div)], ["any", "off"])
op("floor_divide", [("x0 // x1", torch.floor_divide)], ["any", "off"],
   grad=False)
op("remainder", [("x0 % x1", torch.remainder)], ["any", "off"])
op("pow", [("x0 ** x1", torch.pow), ("pow(x0, 2)", lambda x, y: x ** 2),
           ("x0 ** 0.5", lambda x, y: x ** 0.5)], ["pos", "small"])
op("logaddexp", [("logaddexp(x0, x1)", torch.logaddexp)], ["any", "any"])
op("where", [("where(x0 > 0, x0, x1)", lambda x, y: torch.where(x > 0, x, y)),
             ("where(x1 < 1, 0, x0)",
              lambda x, y: torch.where(y < 1, 0.0, x))], ["any", "any"])
op("clamp", [("clamp(x0, -2, 3)", lambda x: x.clamp(-2, 3)),
             ("clamp(x0, 1)", lambda x: x.clamp(1)),
             ("clamp(x0, none, 1)", lambda x: x.clamp(None, 1)),
             ("clamp(x0, 3, -2)", lambda x: x.clamp(3, -2))], ["off"])
for _name, _sign in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="),
                     ("gt", ">"), ("ge", ">=")):
    op(_name, [(f"x0 {_sign} x1", getattr(torch, _name))],
       ["any", "any"], FLOATS + INTS + ["bool"])
for _name, _to in (("f64", torch.float64), ("f32", torch.float32),
                   ("f16", torch.float16), ("bf16", torch.bfloat16),
                   ("i64", torch.int64), ("i32", torch.int32),
                   ("i16", torch.int16), ("i8", torch.int8)):
    op(_name, [(f"{_name}(x0)", lambda x, to=_to: x.to(to))], ["any"],
       FLOATS + ["i64", "i32", "i8", "bool"])
op("u8", [("u8(x0)", lambda x: x.to(torch.uint8))], ["pos"],
   FLOATS + ["i64", "i32", "u8", "bool"])


# ---- reductions ------------------------------------------------------------
def reduction(name, f, **more):
    """f(x, dim, keepdim): dim None reduces all."""
    op(name, [(f"{name}(x0)", lambda x: f(x, None, False)),
              (f"{name}(x0, axis=0)", lambda x: f(x, 0, False), 1),
              (f"{name}(x0, axis=-1, keep=true)", lambda x: f(x, -1, True), 1),
              (f"{name}(x0, axis=1)", lambda x: f(x, 1, False), 2),
              (f"{name}(x0, axis=[0, -1])", lambda x: f(x, (0, -1), False), 2)
              ][:more.pop("count", 5)], **more)


def all_or(f):
    return lambda x, dim, keep: f(x) if dim is None else f(x, dim, keep)


def no_list(f):
    """Over several axes one after the other."""
    def g(x, dim, keep):
        if not isinstance(dim, tuple):
            return f(x) if dim is None else f(x, dim, keep)
        for d in sorted((d % x.dim() for d in dim), reverse=True):
            x = f(x, d, keep)
        return x
    return g


ALL = FLOATS + INTS + ["bool"]
reduction("sum", lambda x, d, k: torch.sum(x, d, k), dtypes=ALL)
reduction("mean", lambda x, d, k: torch.mean(x, d, k))
reduction("prod", no_list(torch.prod), kinds=["unit"], dtypes=ALL)
reduction("any", all_or(torch.any), dtypes=FLOATS + INTS[:2] + ["bool"],
          grad=False)
reduction("all", all_or(torch.all), dtypes=FLOATS + INTS[:2] + ["bool"],
          grad=False)
reduction("norm", lambda x, d, k: torch.linalg.vector_norm(x, 2, d, k))
reduction("logsumexp", lambda x, d, k: torch.logsumexp(
    x, tuple(range(x.dim())) if d is None else d, k))
TIES = ["g0: *", "s0: *"]  # an axis gives the first of equals the gradient
reduction("max", lambda x, d, k: torch.amax(x, () if d is None else d, k),
          dtypes=ALL, rules=TIES)
reduction("min", lambda x, d, k: torch.amin(x, () if d is None else d, k),
          dtypes=ALL, rules=TIES)
for _name in ("argmax", "argmin"):
    op(_name, [(f"{_name}(x0)", getattr(torch, _name)),
               (f"{_name}(x0, axis=0)",
                lambda x, f=getattr(torch, _name): f(x, 0), 1),
               (f"{_name}(x0, axis=-1, keep=true)",
                lambda x, f=getattr(torch, _name): f(x, -1, True), 1)],
       ["any"], FLOATS + INTS, grad=False)
for _name in ("var", "std"):
    op(_name, [(f"{_name}(x0)", getattr(torch, _name)),
               (f"{_name}(x0, axis=-1, keep=true)",
                lambda x, f=getattr(torch, _name): f(x, -1, keepdim=True), 1),
               (f"{_name}(x0, axis=[0, 1], correction=0)",
                lambda x, f=getattr(torch, _name): f(x, (0, 1), correction=0),
                2),
               (f"{_name}(x0, axis=0, correction=0.5)",
                lambda x, f=getattr(torch, _name): f(x, 0, correction=0.5),
                1)],
       rules=["g0: *, not (nan*", "s0: *, not (nan*"])
for _name in ("cumsum", "cumprod"):
    op(_name, [(f"{_name}(x0)", lambda x, f=getattr(torch, _name): f(x, -1),
                1),
               (f"{_name}(x0, axis=0)",
                lambda x, f=getattr(torch, _name): f(x, 0), 1),
               (f"{_name}(x0, axis=1)",
                lambda x, f=getattr(torch, _name): f(x, 1), 2)],
       ["unit"], FLOATS + INTS)


# ---- shapes ----------------------------------------------------------------
op("reshape", [("reshape(x0, -1)", lambda x: x.reshape(-1)),
               ("x0.reshape([{m}, x0.size // {m}])",
                lambda x: x.reshape(x.shape[-1], -1), 1)],
   dtypes=ALL, shapes=[(1,), (7,), (33, 5), (65,), (1, 1), (2, 3, 17),
                       (5, 33), (1, 9, 1), (4, 1, 3, 2)])
op("permute", [("x0.T", lambda x: x.mT, 2),
               ("permute(x0, [1, 0])", lambda x: x.permute(1, 0)
                if x.dim() == 2 else x.permute(1, 0, 2), 2),
               ], dtypes=ALL, shapes=[(33, 5), (1, 1), (3, 0), (5, 33),
                                      (0, 4), (8, 8), (1, 9)])
op("expand", [("expand(x0[none], [3] + [n for n in x0.shape])",
               lambda x: x[None].expand(3, *x.shape))], dtypes=ALL)
op("squeeze", [("squeeze(x0)", torch.squeeze)], dtypes=ALL)
op("unsqueeze", [("unsqueeze(x0, 0)", lambda x: x.unsqueeze(0)),
                 ("unsqueeze(x0, -1)", lambda x: x.unsqueeze(-1))],
   dtypes=ALL)
op("flip", [("flip(x0)", lambda x: x.flip(tuple(range(x.dim())))),
            ("flip(x0, -1)", lambda x: x.flip(-1), 1),
            ("flip(x0, [0, 1])", lambda x: x.flip((0, 1)), 2)], dtypes=ALL)
op("roll", [("roll(x0, 3)", lambda x: x.roll(3)),
            ("roll(x0, -2, axis=0)", lambda x: x.roll(-2, 0), 1),
            ("roll(x0, 100, axis=-1)", lambda x: x.roll(100, -1), 1)],
   dtypes=ALL)
op("tile", [("tile(x0, 2)", lambda x: x.tile(2)),
            ("tile(x0, [2, 1, 3])", lambda x: x.tile(2, 1, 3)),
            ("tile(x0, [0])", lambda x: x.tile(0))], dtypes=ALL)
op("repeat", [("repeat(x0, 2)", lambda x: x.repeat_interleave(2)),
              ("repeat(x0, 3, axis=-1)",
               lambda x: x.repeat_interleave(3, -1), 1),
              ("repeat(x0, 0, axis=0)",
               lambda x: x.repeat_interleave(0, 0), 1)], dtypes=ALL)
op("chunk", [("chunk(x0, 3)", lambda x: x.chunk(3), 1),
             ("chunk(x0, 2, axis=-1)", lambda x: x.chunk(2, -1), 1)],
   dtypes=ALL)
op("split", [("split(x0, 2)", lambda x: x.split(2), 1),
             ("split(x0, 40, axis=-1)", lambda x: x.split(40, -1), 1)],
   dtypes=ALL)
op("pad", [("pad(x0, (2, 1))", lambda x: F.pad(x, (2, 1)), 1),
           ("pad(x0, (-1, 2), value=7)",
            lambda x: F.pad(x, (-1, 2), value=7), 1),
           ("pad(x0, [(1, 0), (0, 2)])", lambda x: F.pad(x, (0, 2, 1, 0)), 2)],
   dtypes=FLOATS + ["i64", "i32"],
   shapes=[(1,), (7,), (33, 5), (65,), (1, 1), (2, 3, 17), (5, 33)])
op("cat", [("cat([x0, x1])", lambda x, y: torch.cat([x, y]), 1),
           ("cat([x0, x1, x0], axis=-1)",
            lambda x, y: torch.cat([x, y, x], -1), 1)], ["any", "any"], ALL)
op("stack", [("stack([x0, x1])", lambda x, y: torch.stack([x, y])),
             ("stack([x0, x1], axis=-1)",
              lambda x, y: torch.stack([x, y], -1))], ["any", "any"], ALL)
op("index", [("x0[0]", lambda x: x[0], 1), ("x0[..., -1]",
                                           lambda x: x[..., -1], 1),
             ("x0[1:, none]", lambda x: x[1:, None], 1),
             ("x0[x0 > 0]", lambda x: x[x > 0], 1),
             ("x0[[0, -1, 0]]", lambda x: x[[0, -1, 0]], 1)], dtypes=ALL)
op("tril", [("tril(x0)", torch.tril, 2),
            ("tril(x0, -1)", lambda x: x.tril(-1), 2),
            ("tril(x0, 3)", lambda x: x.tril(3), 2)], dtypes=ALL)
op("triu", [("triu(x0)", torch.triu, 2),
            ("triu(x0, 1)", lambda x: x.triu(1), 2),
            ("triu(x0, -40)", lambda x: x.triu(-40), 2)], dtypes=ALL)

# ---- picking and ordering --------------------------------------------------
FULL = [(1,), (7,), (33, 5), (65,), (1, 1), (2, 3, 17), (5, 33), (17,)]
op("gather", [("gather(x0, x1 % {n}, axis=0)",
               lambda x, i: x.gather(0, i % x.shape[0]), 1),
              ("gather(x0, x1 % {m}, axis=-1)",
               lambda x, i: x.gather(-1, i % x.shape[-1]), 1)],
   ["any", "below5"], ALL, shapes=FULL)
op("scatter_add", [("scatter_add(x0, x1 % {n}, x2, axis=0)",
                    lambda x, i, y: x.scatter_add(0, i % x.shape[0], y), 1),
                   ("scatter_add(x0, x1 % {m}, x2, axis=-1)",
                    lambda x, i, y: x.scatter_add(-1, i % x.shape[-1], y), 1)],
   ["any", "below5", "any"], FLOATS + INTS, shapes=FULL)
op("nonzero", [("nonzero(x0)", torch.nonzero)], dtypes=ALL, grad=False)
op("sort", [("sort(x0)", lambda x: x.sort(dim=-1, stable=True)[0]),
            ("sort(x0, axis=0, descending=true)",
             lambda x: x.sort(dim=0, descending=True, stable=True)[0])],
   dtypes=FLOATS + INTS, rules=["g0: *"])
op("argsort", [("argsort(x0)", lambda x: x.argsort(dim=-1, stable=True)),
               ("argsort(x0, axis=0, descending=true)",
                lambda x: x.argsort(dim=0, descending=True, stable=True))],
   dtypes=FLOATS + INTS, grad=False)
op("topk", [("topk(x0, 1)", lambda x: tuple(x.topk(1)), 1),
            ("topk(x0, 3, axis=0)", lambda x: tuple(x.topk(3, 0)), 1),
            ("topk(x0, 2, axis=-1, largest=false)",
             lambda x: tuple(x.topk(2, -1, largest=False)), 1)],
   dtypes=FLOATS + INTS, rules=["y1: *", "g0: *", "s0: *"])
op("unique", [("unique(x0)", torch.unique),
              ("unique(x0, inverse=true, counts=true)",
               lambda x: torch.unique(x, return_inverse=True,
                                      return_counts=True)),
              ("unique(x0, axis=0)", lambda x: torch.unique(x, dim=0), 1)],
   dtypes=ALL, grad=False, shapes=[(), (1,), (7,), (33, 5), (65,), (0,),
                                   (2, 3, 17), (300,)])
op("embedding", [("embedding(x1, x0)", lambda w, i: F.embedding(i, w)),
                 ("embedding(x1, x0, padding_idx=1)",
                  lambda w, i: F.embedding(i, w, padding_idx=1))],
   ["any", "below5"], FLOATS, [lambda s: (5, 9), same])
op("one_hot", [("one_hot(x1, 5)", lambda x, i: F.one_hot(i, 5)),
               ("one_hot(x1, 9)", lambda x, i: F.one_hot(i, 9))],
   ["any", "below5"], FLOATS, [lambda s: (), same], grad=False)

# ---- products, normalisation, losses ---------------------------------------
MATRIX = [(3, 4), (1, 1), (0, 3), (3, 0), (17, 33), (33, 5), (2, 3, 4),
          (4, 0, 3), (2, 1, 17)]
op("matmul", [("x0 @ x1", torch.matmul, 2)], ["small", "small"],
   FLOATS + ["i64", "i32"],
   [same, lambda s: s[:-2] + (s[-1], 7)], shapes=MATRIX)
op("matmul_vector", [("x0 @ x1", torch.matmul, 1)], ["small", "small"],
   FLOATS, [same, lambda s: s[-1:]])
op("outer", [("outer(x0, x1)", torch.outer)], ["small", "small"],
   FLOATS + INTS, shapes=[(0,), (1,), (7,), (17,), (65,)])
op("einsum", [("einsum(\"i j, k j -> i k\", x0, x1)",
               lambda x, y: torch.einsum("ij,kj->ik", x, y)),
              ("einsum(\"i j, i j -> \", x0, x1)",
               lambda x, y: torch.einsum("ij,ij->", x, y)),
              ("einsum(\"i j, i j -> j\", x0, x1)",
               lambda x, y: torch.einsum("ij,ij->j", x, y))],
   ["small", "small"], FLOATS, shapes=[s for s in MATRIX if len(s) == 2])
for _name in ("softmax", "log_softmax"):
    op(_name, [(f"{_name}(x0)", lambda x, f=getattr(F, _name): f(x, -1)),
               (f"{_name}(x0, axis=0)",
                lambda x, f=getattr(F, _name): f(x, 0))])
op("layer_norm", [("layer_norm(x0)",
                   lambda x: F.layer_norm(x, x.shape[-1:]), 1),
                  ("layer_norm(x0, axes=2, eps=0.5)",
                   lambda x: F.layer_norm(x, x.shape[-2:], eps=0.5), 2)],
   ["off"], rules=["g0: (*e-*, not (*e-*"])
CLASSES = [(3, 4), (1, 4), (17, 4), (0, 4), (2, 3, 4), (33, 4), (4,)]


def by_class(f):
    def g(x, y, **kw):
        x = x if x.dim() < 3 else x.movedim(-1, 1)
        return f(x, y, **kw)
    return g


for _name, _f in (("cross_entropy", by_class(F.cross_entropy)),
                  ("nll", by_class(F.nll_loss))):
    op(_name, [(f"{_name}(x0, x1)", _f),
               (f"{_name}(x0, x1, reduce=sum)",
                lambda x, y, f=_f: f(x, y, reduction="sum")),
               (f"{_name}(x0, x1, reduce=none, ignore_index=2)",
                lambda x, y, f=_f: f(x, y, reduction="none",
                                     ignore_index=2))],
       ["any", "below4"], FLOATS, [same, lambda s: s[:-1]], shapes=CLASSES)
for _name, _f in (("mse", F.mse_loss), ("l1", F.l1_loss),
                  ("huber", F.huber_loss)):
    op(_name, [(f"{_name}(x0, x1)", _f),
               (f"{_name}(x0, x1, reduce=sum)",
                lambda x, y, f=_f: f(x, y, reduction="sum")),
               (f"{_name}(x0, x1, reduce=none)",
                lambda x, y, f=_f: f(x, y, reduction="none"))],
       ["any", "off"])
op("bce_logits", [("bce_logits(x0, x1)",
                   F.binary_cross_entropy_with_logits),
                  ("bce_logits(x0, x1, reduce=sum)", lambda x, y:
                   F.binary_cross_entropy_with_logits(x, y,
                                                      reduction="sum"))],
   ["any", "unit"])
op("kl", [("kl(x0, x1)", F.kl_div),
          ("kl(x0, x1, reduce=none)",
           lambda x, y: F.kl_div(x, y, reduction="none"))],
   ["any", "unit"])

# ---- windows ---------------------------------------------------------------
IMAGES = [(1, 1, 4), (2, 3, 7), (2, 1, 33), (1, 2, 5, 6), (2, 3, 8, 9),
          (2, 2, 4, 17), (1, 2, 4, 4, 5)]


def by_rank(name):
    """F.name1d .. F.name3d by the rank of x[N, C, ..]."""
    return lambda x, *a, **kw: getattr(F, f"{name}{x.dim() - 2}d")(x, *a, **kw)


_max, _avg = by_rank("max_pool"), by_rank("avg_pool")
_aavg, _amax = by_rank("adaptive_avg_pool"), by_rank("adaptive_max_pool")
op("max_pool", [("max_pool(x0, 2)", lambda x: _max(x, 2)),
                ("max_pool(x0, 3, 2, 1)", lambda x: _max(x, 3, 2, 1)),
                ("max_pool(x0, 2, 1, 0, 2)", lambda x: _max(x, 2, 1, 0, 2)),
                ("max_pool(x0, 3, 2, 1, ceil_mode=true)",
                 lambda x: _max(x, 3, 2, 1, ceil_mode=True))],
   shapes=IMAGES)
op("avg_pool", [("avg_pool(x0, 2)", lambda x: _avg(x, 2)),
                ("avg_pool(x0, 3, 2, 1)", lambda x: _avg(x, 3, 2, 1)),
                ("avg_pool(x0, 3, 2, 1, true, false)",
                 lambda x: _avg(x, 3, 2, 1, True, False))], shapes=IMAGES)
op("adaptive_avg_pool", [(f"adaptive_avg_pool(x0, {n})",
                          lambda x, n=n: _aavg(x, n)) for n in (1, 3)],
   shapes=IMAGES)
op("adaptive_max_pool", [(f"adaptive_max_pool(x0, {n})",
                          lambda x, n=n: _amax(x, n)) for n in (1, 3)],
   shapes=IMAGES)
_LINEAR = {3: "linear", 4: "bilinear", 5: "trilinear"}
op("interpolate", [
    ("interpolate(x0, scale_factor=2)",
     lambda x: F.interpolate(x, scale_factor=2)),
    ("interpolate(x0, 5, mode=\"nearest-exact\")",
     lambda x: F.interpolate(x, 5, mode="nearest-exact")),
    ("interpolate(x0, 6, mode=\"linear\")",
     lambda x: F.interpolate(x, 6, mode=_LINEAR[x.dim()])),
    ("interpolate(x0, scale_factor=1.5, mode=\"linear\")",
     lambda x: F.interpolate(x, scale_factor=1.5, mode=_LINEAR[x.dim()])),
    ("interpolate(x0, 3, mode=\"linear\", align_corners=true)",
     lambda x: F.interpolate(x, 3, mode=_LINEAR[x.dim()],
                             align_corners=True)),
    ("interpolate(x0, 3, mode=\"area\")",
     lambda x: F.interpolate(x, 3, mode="area"))], shapes=IMAGES)
op("bicubic", [("interpolate(x0, 7, mode=\"bicubic\")",
                lambda x: F.interpolate(x, 7, mode="bicubic"))],
   shapes=[s for s in IMAGES if len(s) == 4])


# ---- convolution: x[N, C, ..] with w, and a bias ---------------------------
def padded(name, variants, channels, kernel, by=1):
    """name: conv or conv_transpose; channels(C) -> the sizes of w before its
    kernel; of the bias: as many as the result has channels, which is axis 0
    of a convolution's w and axis 1 of a transposed one's times groups."""
    first = name == "conv"
    for n, sizes in ((1, [(1, 2, 9), (3, 2, 17), (2, 4, 33)]),
                     (2, [(1, 2, 5, 6), (2, 2, 8, 9), (2, 4, 4, 17)]),
                     (3, [(1, 2, 4, 5, 4), (2, 4, 3, 4, 6)])):
        def w_of(s, n=n):
            return channels(s[1]) + (kernel,) * n

        def b_of(s, n=n):
            return (channels(s[1])[0] if first else channels(s[1])[1] * by,)

        texts = [(text.replace("CONV", f"{name}{n}d"),
                  lambda x, w, b, f=f, n=n: f(getattr(F, f"{name}{n}d"),
                                              x, w, b))
                 for text, f in variants]
        op(f"{name}{n}d" + ("" if by == 1 else "_groups"), texts,
           ["any", "small", "any"], FLOATS, [same, w_of, b_of], shapes=sizes,
           sums=True)


padded("conv", [
    ("CONV(x0, x1, x2)", lambda f, x, w, b: f(x, w, b)),
    ("CONV(x0, x1)", lambda f, x, w, b: f(x, w)),
    ("CONV(x0, x1, x2, 2, 1)", lambda f, x, w, b: f(x, w, b, 2, 1)),
    ("CONV(x0, x1, pad=\"same\")", lambda f, x, w, b: f(x, w, padding="same")),
    ("CONV(x0, x1, x2, pad=2, dilation=2)",
     lambda f, x, w, b: f(x, w, b, padding=2, dilation=2))],
    lambda c: (3, c), 3)
padded("conv", [
    ("CONV(x0, x1, x2, 1, 1, groups=2)",
     lambda f, x, w, b: f(x, w, b, 1, 1, groups=2)),
    ("CONV(x0, x1, x2, 2, groups=2)",
     lambda f, x, w, b: f(x, w, b, 2, groups=2))],
    lambda c: (4, c // 2), 2, by=2)
padded("conv_transpose", [
    ("CONV(x0, x1, x2)", lambda f, x, w, b: f(x, w, b)),
    ("CONV(x0, x1, x2, 2, 1, 1)", lambda f, x, w, b: f(x, w, b, 2, 1, 1)),
    ("CONV(x0, x1, pad=1, dilation=2)",
     lambda f, x, w, b: f(x, w, padding=1, dilation=2))],
    lambda c: (c, 3), 3)
padded("conv_transpose", [
    ("CONV(x0, x1, x2, 2, groups=2)",
     lambda f, x, w, b: f(x, w, b, 2, groups=2))],
    lambda c: (c, 2), 2, by=2)


# ---- attention: queries [.., H, T, D], keys and values of 5 ----------------
_sdpa = F.scaled_dot_product_attention
ATTEND = [(1, 1, 4), (2, 3, 8), (1, 2, 5, 8), (2, 2, 5, 3), (1, 4, 2, 16),
          (3, 1, 1)]
op("sdpa", [
    ("sdpa(x0, x1, x2)", _sdpa),
    ("sdpa(x0, x1, x2, scale=0.25)",
     lambda q, k, v: _sdpa(q, k, v, scale=0.25)),
    # ours looks from the end: the last query sees all keys
    ("sdpa(x0, x1, x2, causal=true)", lambda q, k, v: _sdpa(
        q, k, v, torch.ones(q.shape[-2], 5).tril(5 - q.shape[-2]) > 0)),
    ("sdpa(x0, x1, x2, arange(5) < 3)", lambda q, k, v: _sdpa(
        q, k, v, (torch.arange(5) < 3).expand(q.shape[-2], 5))),
    ("sdpa(x0, x1, x2, arange(5) / -4)", lambda q, k, v: _sdpa(
        q, k, v, (torch.arange(5) / -4).to(q.dtype).expand(q.shape[-2], 5)))],
   ["small"] * 3, FLOATS,
   [same] + [lambda s: s[:-2] + (5, s[-1])] * 2, shapes=ATTEND)


# ---- norms by channel, linear algebra ---------------------------------------
# The gradient of the sum of a norm is 0 but for rounding.
NOISE = ["g0: (*e-*, not (*e-*"]
op("rms_norm", [("rms_norm(x0, none, 1e-3)",
                 lambda x: F.rms_norm(x, x.shape[-1:], eps=1e-3), 1),
                ("rms_norm(x0, axes=2, eps=0.5)",
                 lambda x: F.rms_norm(x, x.shape[-2:], eps=0.5), 2)], ["off"],
   rules=NOISE)
op("batch_norm", [("batch_norm(x0, eps=0.5)[0]", lambda x: F.batch_norm(
    x, None, None, training=True, eps=0.5))], ["off"], shapes=IMAGES,
   rules=NOISE)
op("group_norm", [("group_norm(x0, 1, eps=0.5)",
                   lambda x: F.group_norm(x, 1, eps=0.5))], ["off"],
   shapes=IMAGES, rules=NOISE)
op("instance_norm", [("instance_norm(x0, eps=0.5)",
                      lambda x: F.instance_norm(x, eps=0.5))], ["off"],
   shapes=IMAGES, rules=NOISE)
SQUARE = [(1, 1), (3, 3), (5, 5), (2, 4, 4), (1, 2, 3, 3), (17, 17)]


def _eye(x, by):
    return by * torch.eye(x.shape[-1], dtype=x.dtype)


op("cholesky", [("cholesky(x0 * x0[.., :1, :1] * 0 + 9 * eye({m}, dtype="
                 "x0.dtype) + 0.5)".replace("..", "..."),
                 lambda x: torch.linalg.cholesky(
                     x * x[..., :1, :1] * 0 + _eye(x, 9) + 0.5)),
                ("cholesky(einsum(\"... i k, ... j k -> ... i j\", x0, x0) + "
                 "3 * eye({m}, dtype=x0.dtype))",
                 lambda x: torch.linalg.cholesky(x @ x.mT + _eye(x, 3)))],
   ["small"], ["f32", "f64"], shapes=SQUARE)
op("solve", [("solve(x0 + 40 * eye({m}, dtype=x0.dtype), x1)",
              lambda x, y: torch.linalg.solve(x + _eye(x, 40), y))],
   ["small", "any"], ["f32", "f64"], [same, lambda s: s[:-1] + (3,)],
   shapes=SQUARE)
op("qr", [("qr(x0 + 9 * eye({m}, dtype=x0.dtype))",
           lambda x: tuple(torch.linalg.qr(x + _eye(x, 9))))],
   ["small"], ["f32", "f64"], shapes=SQUARE)
