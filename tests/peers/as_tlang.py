"""How a call of PyTorch is written in tlang: one function for each entry of
PyTorch's table of operations, op_db, that has a counterpart in names.tsv.

Each takes an expression under construction and a sample, and returns the text
of the expression; it raises NotTaken for an argument that names.tsv lists as
not taken, and Inexpressible for what is no input of the operation (an out=
tensor, a wrong number of arguments).
"""
import math

import torch

from feed import NAMES

ENTRY = {}  # name in op_db, with its variant -> function


class NotTaken(Exception):
    """An argument that the name of tlang does not take."""


class Inexpressible(Exception):
    """A call that has no counterpart as it is about PyTorch itself."""


class Expr:
    """The inputs of one expression."""

    def __init__(self):
        self.inputs = []

    def t(self, v):
        """Text of a value: x0, x1, ... for tensors, else a literal."""
        if isinstance(v, torch.Tensor):
            if v.dtype not in NAMES:
                raise NotTaken(f"dtype {str(v.dtype)[6:]}")
            if v.layout != torch.strided:
                raise NotTaken("sparse")
            self.inputs.append(v)
            return f"x{len(self.inputs) - 1}"
        return literal(v)


def literal(v):
    if v is None:
        return "none"
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, complex):
        raise NotTaken("complex")
    if isinstance(v, int):
        if v < -2**63 or v >= 2**63:
            raise Inexpressible("int beyond 64 bits")
        return str(v) if v >= 0 else f"({v})"
    if isinstance(v, float):
        if math.isnan(v):
            return "nan"
        if math.isinf(v):
            return "inf" if v > 0 else "(-inf)"
        return repr(v) if v >= 0 else f"({v!r})"
    if isinstance(v, str):
        return '"' + v + '"'
    if isinstance(v, torch.dtype):
        if v not in NAMES:
            raise NotTaken(f"dtype {str(v)[6:]}")
        return NAMES[v]
    if isinstance(v, (list, tuple, torch.Size)):
        return "[" + ", ".join(literal(i) for i in v) + "]"
    raise Inexpressible(f"a {type(v).__name__}")


def entry(*names):
    def add(f):
        for name in names:
            ENTRY[name] = f
        return f
    return add


def bind(s, **defaults):
    """The arguments behind the first as a namespace; others are refused."""
    got = dict(defaults)
    order = list(defaults)
    if len(s.args) > len(order):
        raise Inexpressible("too many arguments")
    for name, v in zip(order, s.args):
        got[name] = v
    for name, v in s.kwargs.items():
        if name in got:
            got[name] = v
        elif name == "out":
            raise Inexpressible("a tensor for the result")
        elif name in ("device", "layout", "requires_grad", "pin_memory") and (
                v is None or str(v) in ("cpu", "torch.strided", "False")):
            continue
        else:
            raise NotTaken(name)
    return type("Args", (), got)()


def sizes_of(s):
    """Sizes given one by one or as one list."""
    if len(s.args) == 1 and isinstance(s.args[0], (list, tuple, torch.Size)):
        return list(s.args[0])
    return list(s.args)


def axis(a, name="dim"):
    """", axis=..." of dim; None and () reduce all axes."""
    v = getattr(a, name)
    if v is None or (isinstance(v, (tuple, list)) and not len(v)):
        return ""
    return f", axis={literal(v)}"


def keep(a):
    return ", keep=true" if a.keepdim else ""


def cast(x, dtype):
    """x in dtype, where one is given."""
    if dtype == torch.bool:
        return f"({x} != 0)"
    return x if dtype is None else f"{literal(dtype)}({x})"


def rank(v):
    return v.dim() if isinstance(v, torch.Tensor) else 0


def grows_both(a, b):
    """Would a and b, of different ranks, both stretch?  (E0310)"""
    if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)):
        return False
    if a.dim() == b.dim() or 0 in (a.dim(), b.dim()):
        return False
    try:
        shape = torch.broadcast_shapes(a.shape, b.shape)
    except RuntimeError:
        return False
    return shape != a.shape and shape != b.shape


def widen(e, v, n):
    """v with new axes in front, up to rank n."""
    x = e.t(v)
    if rank(v) in (0, n):
        return x
    return f"{x}[" + "none, " * (n - v.dim()) + "...]"


def pair(e, a, b):
    """Texts of two operands, ranks made equal where both would stretch."""
    n = max(rank(a), rank(b)) if grows_both(a, b) else 0
    return (widen(e, a, n), widen(e, b, n)) if n else (e.t(a), e.t(b))


# ---- elementwise -----------------------------------------------------------
def unary(name, text=None):
    @entry(name)
    def f(e, s):
        bind(s)
        return (text or name + "({})").format(e.t(s.input))


for _name in ("abs exp exp2 expm1 log log2 log1p sqrt rsqrt sin cos tan tanh "
              "sigmoid erf sign floor ceil isnan isfinite").split():
    unary(_name)
for _name in ("relu", "softsign"):
    unary("nn.functional." + _name, _name + "({})")
unary("sgn", "sign({})")
unary("neg", "(-{})")
unary("positive", "({})")
unary("reciprocal", "(1 / {})")
unary("square", "({0} * {0})")
unary("logical_not", "({} == 0)")
unary("t", "{}.T")
unary("ravel", "reshape({}, -1)")
unary("argwhere", "nonzero({})")
unary("msort", "sort({}, axis=0)")
unary("flipud", "flip({}, 0)")
unary("fliplr", "flip({}, 1)")
unary("isinf", "(({0} == inf) or ({0} == (-inf)))")
unary("isposinf", "({} == inf)")
unary("isneginf", "({} == (-inf))")
unary("nn.functional.logsigmoid", "(-softplus(-{}))")
unary("nn.functional.tanhshrink", "({0} - tanh({0}))")
unary("nn.functional.relu6", "clamp({}, 0, 6)")


@entry("nn.functional.silu")
def _silu(e, s):
    bind(s, inplace=False)
    return f"silu({e.t(s.input)})"


@entry("round", "round/decimals_0", "round/decimals_3", "round/decimals_neg_3")
def _round(e, s):
    a = bind(s, decimals=0)
    x, p = e.t(s.input), 10 ** abs(a.decimals)
    if a.decimals > 0:
        return f"(round({x} * {p}) / {p})"
    return f"round({x})" if not a.decimals else f"(round({x} / {p}) * {p})"


@entry("nn.functional.gelu")
def _gelu(e, s):
    a = bind(s, approximate="none")
    if a.approximate not in ("none", "tanh"):
        raise Inexpressible("no such approximation")
    return ("gelu" if a.approximate == "none" else "gelu_tanh") \
        + f"({e.t(s.input)})"


@entry("nn.functional.elu")
def _elu(e, s):
    a = bind(s, alpha=1.0, inplace=False)
    return f"elu({e.t(s.input)}, alpha={literal(float(a.alpha))})"


@entry("nn.functional.leaky_relu")
def _leaky(e, s):
    a = bind(s, negative_slope=0.01, inplace=False)
    return f"leaky_relu({e.t(s.input)}, slope={literal(float(a.negative_slope))})"


@entry("nn.functional.softplus")
def _softplus(e, s):
    a = bind(s, beta=1, threshold=20)
    if a.threshold != 20:
        raise NotTaken("threshold")
    x = e.t(s.input)
    if a.beta != 1:
        return f"(softplus({x} * {literal(a.beta)}) / {literal(a.beta)})"
    return f"softplus({x})"


@entry("nn.functional.hardtanh")
def _hardtanh(e, s):
    a = bind(s, min_val=-1.0, max_val=1.0, inplace=False)
    lo, hi = a.min_val, a.max_val
    if not s.input.dtype.is_floating_point:  # they become of x's dtype
        lo, hi = int(lo), int(hi)
    return f"clamp({e.t(s.input)}, {literal(lo)}, {literal(hi)})"


def binary(name, text):
    @entry(name)
    def f(e, s):
        a = bind(s, other=None)
        x, y = pair(e, s.input, a.other)
        return text.format(x, y)


for _name, _text in (
        ("mul", "({} * {})"), ("__rmul__", "({1} * {0})"),
        ("__radd__", "({1} + {0})"), ("__rsub__", "({1} - {0})"),
        ("__rdiv__", "({1} / {0})"), ("__rmod__", "({1} % {0})"),
        ("__rpow__", "({1} ** {0})"), ("true_divide", "({} / {})"),
        ("float_power", "(f64({}) ** {})"),
        ("floor_divide", "({} // {})"), ("remainder", "({} % {})"),
        ("pow", "({} ** {})"), ("maximum", "maximum({}, {})"),
        ("minimum", "minimum({}, {})"), ("max/binary", "maximum({}, {})"),
        ("min/binary", "minimum({}, {})"),
        ("logaddexp", "logaddexp({}, {})"),
        ("eq", "({} == {})"), ("ne", "({} != {})"), ("lt", "({} < {})"),
        ("le", "({} <= {})"), ("gt", "({} > {})"), ("ge", "({} >= {})"),
        ("logical_and", "(({} != 0) and ({} != 0))"),
        ("logical_or", "(({} != 0) or ({} != 0))"),
        ("logical_xor", "(({} != 0) != ({} != 0))"),
        ("expand_as", "expand({}, {}.shape)"),
        ("view_as", "reshape({}, {}.shape)"),
        ("reshape_as", "reshape({}, {}.shape)")):
    binary(_name, _text)


def plain(name, text):
    @entry(name)
    def f(e, s):
        a = bind(s, other=None)
        x, y = e.t(s.input), e.t(a.other)
        return text.format(x, y)


for _name, _text in (
        ("matmul", "({} @ {})"), ("mm", "({} @ {})"), ("bmm", "({} @ {})"),
        ("mv", "({} @ {})"), ("dot", "({} @ {})"), ("vdot", "({} @ {})"),
        ("__rmatmul__", "({1} @ {0})"), ("outer", "outer({}, {})")):
    plain(_name, _text)


def _add(e, s):
    a = bind(s, other=None, alpha=1)
    x, y = pair(e, s.input, a.other)
    scaled = y if a.alpha == 1 else f"{literal(a.alpha)} * {y}"
    return x, scaled


for _name, _text in (("add", "({} + {})"), ("sub", "({} - {})")):
    def _f(e, s, text=_text):
        return text.format(*_add(e, s))
    ENTRY[_name] = _f


@entry("rsub")
def _rsub(e, s):
    a = bind(s, other=None, alpha=1)
    x, y = pair(e, s.input, a.other)
    return f"({y} - " + (x if a.alpha == 1 else f"{literal(a.alpha)} * {x}") \
        + ")"


def _div(mode):
    def f(e, s):
        a = bind(s, other=None, rounding_mode=None)
        x, y = pair(e, s.input, a.other)
        if a.rounding_mode == "trunc":
            raise NotTaken("rounding_mode")
        return f"({x} // {y})" if a.rounding_mode else f"({x} / {y})"
    return f


ENTRY["div/no_rounding_mode"] = ENTRY["div/floor_rounding"] = _div(None)


@entry("where")
def _where(e, s):
    # op_db calls where(x, condition, other) as a method of x
    a = bind(s, condition=None, other=None)
    n = max(rank(s.input), rank(a.condition), rank(a.other))
    some = [v for v in (s.input, a.condition, a.other)]
    grow = any(grows_both(v, w) for v in some for w in some)
    x, c, y = (widen(e, v, n if grow else 0) if grow else e.t(v) for v in some)
    return f"where({c}, {x}, {y})"


@entry("clamp", "clamp_min", "clamp_max")
def _clamp(e, s):
    a = bind(s, min=None, max=None)
    lo, hi = a.min, a.max
    x = s.input
    if not any(isinstance(v, torch.Tensor) for v in (lo, hi)):
        return f"clamp({e.t(x)}, {literal(lo)}, {literal(hi)})"
    if lo is not None:
        x, y = pair(e, x, lo)
        x = f"maximum({x}, {y})"
    if hi is not None:
        y = e.t(hi)
        x = f"minimum({x if isinstance(x, str) else e.t(s.input)}, {y})"
    return x


def _clamp_min(e, s, name="max"):
    v = s.args[0] if s.args else s.kwargs.get("min", s.kwargs.get("max"))
    x, y = pair(e, s.input, v)
    return f"{name}imum({x}, {y})"


ENTRY["clamp_min"] = _clamp_min
ENTRY["clamp_max"] = lambda e, s: _clamp_min(e, s, "min")


@entry("masked_fill")
def _masked_fill(e, s):
    a = bind(s, mask=None, value=None)
    x, m = pair(e, s.input, a.mask)
    return f"where({m}, {e.t(a.value)}, {x})"


@entry("lerp")
def _lerp(e, s):
    a = bind(s, end=None, weight=None)
    x, y, w = e.t(s.input), e.t(a.end), e.t(a.weight)
    return f"({x} + {w} * ({y} - {x}))"


@entry("nan_to_num")
def _nan_to_num(e, s):
    a = bind(s, nan=0.0, posinf=None, neginf=None)
    if not s.input.dtype.is_floating_point:
        return f"({e.t(s.input)})"
    most = torch.finfo(s.input.dtype).max
    a.nan = 0.0 if a.nan is None else a.nan
    a.posinf = most if a.posinf is None else a.posinf
    a.neginf = -most if a.neginf is None else a.neginf
    x = e.t(s.input)
    return (f"where(isnan({x}), {literal(a.nan)}, where({x} == inf, "
            f"{literal(a.posinf)}, where({x} == (-inf), "
            f"{literal(a.neginf)}, {x})))")


for _name, _dtype in (("float", "f32"), ("double", "f64"), ("half", "f16"),
                      ("bfloat16", "bf16"), ("long", "i64"), ("int", "i32"),
                      ("short", "i16"), ("char", "i8"), ("byte", "u8"),
                      ("bool", "bool")):
    @entry(_name)
    def _cast(e, s, to=_dtype):
        bind(s, memory_format=None)
        x = e.t(s.input)
        return f"({x} != 0)" if to == "bool" else f"{to}({x})"


# ---- reductions ------------------------------------------------------------
def reduction(names_, to, **more):
    @entry(*names_.split())
    def f(e, s):
        a = bind(s, dim=None, keepdim=False, **more)
        x = e.t(s.input)
        return f"{to}({cast(x, getattr(a, 'dtype', None))}{axis(a)}{keep(a)})"


reduction("sum", "sum", dtype=None)
reduction("mean", "mean", dtype=None)
reduction("prod", "prod", dtype=None)
reduction("amax max/reduction_no_dim", "max")
reduction("amin min/reduction_no_dim", "min")
reduction("argmax", "argmax")
reduction("argmin", "argmin")
reduction("any", "any")
reduction("all", "all")
reduction("logsumexp", "logsumexp")


def _with_dim(name):
    def f(e, s):
        a = bind(s, dim=None, keepdim=False)
        tail = e.t(s.input) + axis(a) + keep(a)
        return f"({name}({tail}), arg{name}({tail}))"
    return f


ENTRY["max/reduction_with_dim"] = _with_dim("max")
ENTRY["min/reduction_with_dim"] = _with_dim("min")


@entry("count_nonzero")
def _count_nonzero(e, s):
    a = bind(s, dim=None)
    return f"sum({e.t(s.input)} != 0{axis(a)})"


@entry("nansum")
def _nansum(e, s):
    a = bind(s, dim=None, keepdim=False, dtype=None)
    x = e.t(s.input)
    z = cast(f"where(isnan({x}), 0, {x})", a.dtype)
    return f"sum({z}{axis(a)}{keep(a)})"


def _spread(name):
    def f(e, s):
        a = bind(s, dim=None, unbiased=None, keepdim=False, correction=1)
        if isinstance(a.dim, bool):  # var(unbiased)
            a.dim, a.unbiased = None, a.dim
        c = a.correction if a.unbiased is None else int(a.unbiased)
        if c is None:
            c = 1
        return f"{name}({e.t(s.input)}{axis(a)}{keep(a)}, " \
            f"correction={literal(c)})"
    return f


for _name in ("var", "std"):
    ENTRY[_name] = ENTRY[_name + "/unbiased"] = _spread(_name)


def _pairwise(name):
    def f(e, s):
        inner = _spread(name)(e, s)
        x = e.t(s.input) if False else "x0"
        tail = inner[inner.index("x0") + 2:inner.rindex(", correction")]
        return f"({inner}, mean({x}{tail}))"
    return f


for _name in ("var", "std"):
    ENTRY[_name + "_mean"] = ENTRY[_name + "_mean/unbiased"] = _pairwise(_name)


def of_order(x, p, a):
    """The p-norm, as names.tsv writes it."""
    tail = axis(a) + keep(a)
    if p == 2:
        return f"norm({x}{tail})"
    if p == 0:
        return f"sum(where({x} != 0, {x} / {x}, 0){tail})"
    if p == 1:
        return f"sum(abs({x}){tail})"
    if math.isinf(p):
        return f"{'max' if p > 0 else 'min'}(abs({x}){tail})"
    return f"(sum(abs({x}) ** {literal(p)}{tail}) ** {literal(1 / p)})"


@entry("linalg.vector_norm")
def _vector_norm(e, s):
    a = bind(s, ord=2, dim=None, keepdim=False, dtype=None)
    return of_order(cast(e.t(s.input), a.dtype), a.ord, a)


@entry("norm", "norm/fro")
def _norm(e, s):
    a = bind(s, p="fro", dim=None, keepdim=False, dtype=None)
    if a.p not in ("fro", None):
        if a.p == "nuc":
            raise NotTaken("ord")
        return of_order(cast(e.t(s.input), a.dtype), float(a.p), a)
    return f"norm({cast(e.t(s.input), a.dtype)}{axis(a)}{keep(a)})"


@entry("linalg.norm")
def _linalg_norm(e, s):
    a = bind(s, ord=None, dim=None, keepdim=False, dtype=None)
    vector = s.input.dim() == 1 or isinstance(a.dim, int)
    if a.ord is not None and vector and a.ord != "fro":
        return of_order(cast(e.t(s.input), a.dtype), float(a.ord), a)
    if a.ord not in (None, "fro"):
        raise NotTaken("ord")
    return f"norm({cast(e.t(s.input), a.dtype)}{axis(a)}{keep(a)})"


def _scan(name):
    def f(e, s):
        a = bind(s, dim=None, dtype=None)
        if a.dim is None:
            raise Inexpressible("no dim")
        return f"{name}({cast(e.t(s.input), a.dtype)}, axis={literal(a.dim)})"
    return f


ENTRY["cumsum"], ENTRY["cumprod"] = _scan("cumsum"), _scan("cumprod")


def _soft(name):
    def f(e, s):
        a = bind(s, dim=None, _stacklevel=3, dtype=None)
        if a.dim is None:
            raise Inexpressible("no dim")
        return f"{name}({cast(e.t(s.input), a.dtype)}, axis={literal(a.dim)})"
    return f


for _name in ("softmax", "log_softmax"):
    ENTRY[_name] = ENTRY[_name + "/with_dtype"] = _soft(_name)


@entry("nn.functional.softmin", "nn.functional.softmin/with_dtype")
def _softmin(e, s):
    a = bind(s, dim=None, _stacklevel=3, dtype=None)
    x = cast(f"(-{e.t(s.input)})", a.dtype)
    return f"softmax({x}, axis={literal(a.dim)})"
