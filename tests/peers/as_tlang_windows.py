"""The part of as_tlang.py about pooling, interpolation, norms by channel and
linear algebra."""
from as_tlang import ENTRY, NotTaken, bind, entry, literal


def some(v):
    """An int, or a list of them; () is none."""
    if isinstance(v, (list, tuple)):
        return literal(list(v)) if len(v) else "none"
    return literal(v)


def optional(e, *tensors):
    return ", ".join("none" if t is None else e.t(t) for t in tensors)


def _windows(n):
    def largest(e, s):
        a = bind(s, k=None, stride=None, padding=0, dilation=1,
                 ceil_mode=False, return_indices=False, kernel_size=None)
        k = a.kernel_size if a.kernel_size is not None else a.k
        return f"max_pool({e.t(s.input)}, {some(k)}, {some(a.stride)}, " \
            f"{some(a.padding)}, {some(a.dilation)}, " \
            f"{literal(a.ceil_mode)}, {literal(a.return_indices)}, axes={n})"

    def mean(e, s):
        a = bind(s, k=None, stride=None, padding=0, ceil_mode=False,
                 count_include_pad=True, divisor_override=None,
                 kernel_size=None)
        k = a.kernel_size if a.kernel_size is not None else a.k
        return f"avg_pool({e.t(s.input)}, {some(k)}, {some(a.stride)}, " \
            f"{some(a.padding)}, {literal(a.ceil_mode)}, " \
            f"{literal(a.count_include_pad)}, " \
            f"{literal(a.divisor_override)}, axes={n})"

    def adaptive(name):
        def f(e, s):
            a = bind(s, size=None, return_indices=False, output_size=None)
            size = a.output_size if a.output_size is not None else a.size
            more = ", return_indices=true" if a.return_indices else ""
            return f"{name}({e.t(s.input)}, {some(size)}{more}, axes={n})"
        return f

    ENTRY[f"nn.functional.max_pool{n}d"] = largest
    ENTRY[f"nn.functional.avg_pool{n}d"] = mean
    ENTRY[f"nn.functional.adaptive_avg_pool{n}d"] = \
        adaptive("adaptive_avg_pool")
    ENTRY[f"nn.functional.adaptive_max_pool{n}d"] = \
        adaptive("adaptive_max_pool")


for _n in (1, 2, 3):
    _windows(_n)


def _resized(e, s, mode=None, align=None):
    a = bind(s, size=None, scale_factor=None, mode=mode or "nearest",
             align_corners=align, recompute_scale_factor=None,
             antialias=False)
    if a.antialias:
        raise NotTaken("antialias")
    if a.recompute_scale_factor:
        raise NotTaken("recompute_scale_factor")
    return f"interpolate({e.t(s.input)}, {some(a.size)}, " \
        f"{some(a.scale_factor)}, {literal(mode or a.mode)}, " \
        f"{literal(a.align_corners if align is None else align)})"


for _mode in ("nearest", "nearest-exact", "linear", "bilinear", "trilinear",
              "bicubic", "area"):
    ENTRY["nn.functional.interpolate/" + _mode] = _resized
ENTRY["nn.functional.upsample_nearest"] = _resized
ENTRY["nn.functional.upsample_bilinear"] = \
    lambda e, s: _resized(e, s, "bilinear", True)


@entry("nn.functional.batch_norm", "nn.functional.batch_norm/without_cudnn")
def _batch_norm(e, s):
    a = bind(s, running_mean=None, running_var=None, weight=None, bias=None,
             training=False, momentum=0.1, eps=1e-5)
    if not a.training:
        raise NotTaken("training")
    x = e.t(s.input)
    return f"batch_norm({x}, {optional(e, a.weight, a.bias)}, " \
        f"eps={literal(a.eps)})[0]"


@entry("nn.functional.instance_norm")
def _instance_norm(e, s):
    a = bind(s, running_mean=None, running_var=None, weight=None, bias=None,
             use_input_stats=True, momentum=0.1, eps=1e-5)
    if not a.use_input_stats:
        raise NotTaken("use_input_stats")
    x = e.t(s.input)
    return f"instance_norm({x}, {optional(e, a.weight, a.bias)}, " \
        f"eps={literal(a.eps)})"


@entry("nn.functional.group_norm")
def _group_norm(e, s):
    a = bind(s, num_groups=None, weight=None, bias=None, eps=1e-5)
    x = e.t(s.input)
    return f"group_norm({x}, {literal(a.num_groups)}, " \
        f"{optional(e, a.weight, a.bias)}, eps={literal(a.eps)})"


@entry("nn.functional.rms_norm")
def _rms_norm(e, s):
    a = bind(s, normalized_shape=None, weight=None, eps=None)
    x = e.t(s.input)
    return f"rms_norm({x}, {optional(e, a.weight)}, {literal(a.eps)}, " \
        f"axes={len(a.normalized_shape)})"


@entry("linalg.cholesky", "cholesky")
def _cholesky(e, s):
    a = bind(s, upper=False)
    return f"cholesky({e.t(s.input)}, upper={literal(bool(a.upper))})"


@entry("linalg.solve")
def _solve(e, s):
    a = bind(s, B=None, left=True)
    if not a.left:
        raise NotTaken("left")
    matrix, right = e.t(s.input), e.t(a.B)
    if a.B.dim() == s.input.dim() - 1 > 1 and a.B.shape != s.input.shape[:-1]:
        right += "[none]"
    return f"solve({matrix}, {right})"


@entry("linalg.qr", "qr")
def _qr(e, s):
    a = bind(s, mode="reduced")
    if a.mode not in ("reduced", True):
        raise NotTaken("mode")
    return f"qr({e.t(s.input)})"
