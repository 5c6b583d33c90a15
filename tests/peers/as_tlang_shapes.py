"""The part of as_tlang.py about shapes, indices, order and creation."""
import torch

from as_tlang import (ENTRY, Inexpressible, NotTaken, axis, bind, cast, entry,
                      literal, sizes_of)


# ---- shapes ----------------------------------------------------------------
@entry("reshape", "view", "view_copy")
def _reshape(e, s):
    if s.args and isinstance(s.args[0], torch.dtype):
        raise NotTaken("dtype of a view")
    return f"reshape({e.t(s.input)}, {literal(sizes_of(s))})"


@entry("expand", "broadcast_to", "expand_copy")
def _expand(e, s):
    return f"expand({e.t(s.input)}, {literal(sizes_of(s))})"


@entry("permute", "permute_copy")
def _permute(e, s):
    return f"permute({e.t(s.input)}, {literal(sizes_of(s))})"


@entry("transpose", "transpose_copy")
def _transpose(e, s):
    a = bind(s, dim0=None, dim1=None)
    n = s.input.dim()
    if n == 0:
        raise Inexpressible("no axes to swap")
    axes = list(range(n))
    i, j = a.dim0 % n, a.dim1 % n
    axes[i], axes[j] = axes[j], axes[i]
    return f"permute({e.t(s.input)}, {literal(axes)})"


@entry("movedim")
def _movedim(e, s):
    a = bind(s, source=None, destination=None)
    one = isinstance(a.source, int)
    source = [a.source] if one else list(a.source)
    to = [a.destination] if one else list(a.destination)
    n = s.input.dim()
    source, to = ([i % n if -n <= i < n else None for i in axes]
                  for axes in (source, to))
    if len(source) != len(to) or len(set(to)) != len(to) or \
            len(set(source)) != len(to) or None in source + to:
        raise Inexpressible("no such axes")
    rest = iter([i for i in range(n) if i not in source])
    axes = [source[to.index(i)] if i in to else next(rest) for i in range(n)]
    return f"permute({e.t(s.input)}, {literal(axes)})"


@entry("squeeze", "squeeze/multiple", "squeeze_copy")
def _squeeze(e, s):
    a = bind(s, dim=None)
    if a.dim is None:
        return f"squeeze({e.t(s.input)})"
    # an axis of another size is left alone by PyTorch, an error in tlang
    dims = [a.dim] if isinstance(a.dim, int) else list(a.dim)
    n = s.input.dim()
    if any(not -max(n, 1) <= d < max(n, 1) for d in dims):
        return f"squeeze({e.t(s.input)}, {literal(dims)})"
    ones = [d for d in dims if n and s.input.shape[d] == 1]
    if len(ones) != len(dims) and n:
        raise NotTaken("dim")
    return f"squeeze({e.t(s.input)}, {literal(ones)})"


@entry("unsqueeze", "unsqueeze_copy")
def _unsqueeze(e, s):
    a = bind(s, dim=None)
    return f"unsqueeze({e.t(s.input)}, {literal(a.dim)})"


@entry("flatten")
def _flatten(e, s):
    a = bind(s, start_dim=0, end_dim=-1)
    n = s.input.dim()
    if n == 0:
        return f"reshape({e.t(s.input)}, 1)"
    i, j = a.start_dim % n, a.end_dim % n
    shape = list(s.input.shape)
    size = 1
    for d in shape[i:j + 1]:
        size *= d
    return f"reshape({e.t(s.input)}, " \
        f"{literal(shape[:i] + [size] + shape[j + 1:])})"


@entry("unflatten")
def _unflatten(e, s):
    a = bind(s, dim=None, sizes=None)
    shape = list(s.input.shape)
    i = a.dim % len(shape)
    return f"reshape({e.t(s.input)}, " \
        f"{literal(shape[:i] + list(a.sizes) + shape[i + 1:])})"


@entry("flip")
def _flip(e, s):
    a = bind(s, dims=None)
    return f"flip({e.t(s.input)}, {literal(a.dims)})"


@entry("roll")
def _roll(e, s):
    a = bind(s, shifts=None, dims=None)
    x = e.t(s.input)
    shifts, dims = a.shifts, a.dims
    if dims is None or dims == ():
        if not isinstance(shifts, int):
            shifts = shifts[0]
        return f"roll({x}, {literal(shifts)})"
    shifts = [shifts] if isinstance(shifts, int) else list(shifts)
    dims = [dims] if isinstance(dims, int) else list(dims)
    if len(shifts) != len(dims):
        raise Inexpressible("as many shifts as axes")
    for n, d in zip(shifts, dims):
        x = f"roll({x}, {literal(n)}, axis={literal(d)})"
    return x


@entry("tile", "repeat")
def _tile(e, s):
    reps = sizes_of(s) if s.args else list(s.kwargs["dims"])
    return f"tile({e.t(s.input)}, {literal(reps)})"


@entry("repeat_interleave")
def _repeat(e, s):
    a = bind(s, repeats=None, dim=None)
    if isinstance(a.repeats, torch.Tensor):
        raise NotTaken("repeats")
    at = "" if a.dim is None else f", axis={literal(a.dim)}"
    return f"repeat({e.t(s.input)}, {literal(a.repeats)}{at})"


@entry("chunk", "unsafe_chunk")
def _chunk(e, s):
    a = bind(s, chunks=None, dim=0)
    return f"chunk({e.t(s.input)}, {literal(a.chunks)}, {literal(a.dim)})"


@entry("split", "split/list_args", "split_with_sizes", "unsafe_split")
def _split(e, s):
    a = bind(s, split_size=None, dim=0)
    return f"split({e.t(s.input)}, {literal(a.split_size)}, {literal(a.dim)})"


@entry("unbind", "unbind_copy")
def _unbind(e, s):
    a = bind(s, dim=0)
    x = e.t(s.input)
    if not -s.input.dim() <= a.dim < s.input.dim():
        raise Inexpressible("no such axis")
    if a.dim % s.input.dim():
        n = s.input.dim()
        axes = [a.dim % n] + [i for i in range(n) if i != a.dim % n]
        x = f"permute({x}, {literal(axes)})"
    return f"[p for p in {x}]"


@entry("cat")
def _cat(e, s):
    a = bind(s, dim=0)
    xs = ", ".join(e.t(v) for v in s.input)
    return f"cat([{xs}], axis={literal(a.dim)})"


@entry("stack")
def _stack(e, s):
    a = bind(s, dim=0)
    xs = ", ".join(e.t(v) for v in s.input)
    return f"stack([{xs}], axis={literal(a.dim)})"


for _name in ("tril", "triu"):
    def _tri(e, s, name=_name):
        a = bind(s, diagonal=0)
        return f"{name}({e.t(s.input)}, {literal(a.diagonal)})"
    ENTRY[_name] = _tri


def _pad(e, s):
    a = bind(s, pad=None, mode="constant", value=None)
    given = list(a.pad)
    if len(given) % 2:
        raise Inexpressible("an odd number of pads")
    pairs = [given[i:i + 2] for i in range(0, len(given), 2)][::-1]
    x = e.t(s.input)
    if not pairs:
        return f"({x})"
    value = "" if a.value is None else f", value={literal(a.value)}"
    return f"pad({x}, {literal(pairs)}, mode={literal(a.mode)}{value})"


for _name in ("circular", "constant", "reflect", "replicate",
              "replicate_negative"):
    ENTRY["nn.functional.pad/" + _name] = _pad


@entry("constant_pad_nd")
def _constant_pad(e, s):
    a = bind(s, pad=None, value=0)
    pairs = [list(a.pad[i:i + 2]) for i in range(0, len(a.pad), 2)][::-1]
    x = e.t(s.input)
    if not pairs:
        return f"({x})"
    return f"pad({x}, {literal(pairs)}, value={literal(a.value)})"


# ---- picking ---------------------------------------------------------------
def subscript(e, v):
    if v is None:
        return "none"
    if v is Ellipsis:
        return "..."
    if isinstance(v, slice):
        parts = ["" if p is None else literal(p) for p in (v.start, v.stop)]
        step = "" if v.step is None else f":{literal(v.step)}"
        return ":".join(parts) + step
    if isinstance(v, (list, tuple)):
        return literal(v)
    return e.t(v)


@entry("__getitem__")
def _getitem(e, s):
    x = e.t(s.input)
    index = s.args[0]
    if not isinstance(index, tuple):
        index = (index,)
    return f"{x}[" + ", ".join(subscript(e, v) for v in index) + "]"


def at_axis(n, dim, what):
    """The subscripts that apply `what` at one axis."""
    return ":, " * (dim % max(n, 1)) + what


@entry("select")
def _select(e, s):
    a = bind(s, dim=None, index=None)
    return f"{e.t(s.input)}[{at_axis(s.input.dim(), a.dim, literal(a.index))}]"


@entry("narrow", "narrow_copy")
def _narrow(e, s):
    a = bind(s, dim=None, start=None, length=None)
    n = s.input.shape[a.dim] if s.input.dim() else 0
    if isinstance(a.start, torch.Tensor) and (
            a.start.dim() or a.start.dtype in (torch.bool, torch.float32)):
        raise Inexpressible("a start that is no int")
    start = int(a.start)
    if not -n <= start <= n or a.length < 0 or (start % max(n, 1)
            if start < 0 else start) + a.length > n:
        raise Inexpressible("a range beyond the size, which slices cut")
    start = start + n if start < 0 else start
    cut = f"{start}:{start + a.length}"
    return f"{e.t(s.input)}[{at_axis(s.input.dim(), a.dim, cut)}]"


@entry("slice")
def _slice(e, s):
    a = bind(s, dim=0, start=None, end=None, step=1)
    cut = subscript(e, slice(a.start, a.end, a.step))
    return f"{e.t(s.input)}[{at_axis(s.input.dim(), a.dim, cut)}]"


@entry("index_select")
def _index_select(e, s):
    a = bind(s, dim=None, index=None)
    x = e.t(s.input)
    if s.input.dim() == 0:
        i = e.t(a.index)
        return f"reshape(reshape({x}, 1)[{i}], [])"
    i = e.t(a.index)
    if a.index.dim() == 0:
        i = f"reshape({i}, 1)"
    return f"{x}[{at_axis(s.input.dim(), a.dim, i)}]"


@entry("masked_select")
def _masked_select(e, s):
    a = bind(s, mask=None)
    x, m = e.t(s.input), e.t(a.mask)
    shape = list(torch.broadcast_shapes(s.input.shape, a.mask.shape))
    if list(s.input.shape) != shape:
        x = f"expand({x}, {literal(shape)})"
    if list(a.mask.shape) != shape:
        m = f"expand({m}, {literal(shape)})"
    if not shape:
        return f"reshape({x}, 1)[reshape({m}, 1)]"
    return f"{x}[{m}]"


@entry("gather")
def _gather(e, s):
    a = bind(s, dim=None, index=None, sparse_grad=False)
    return f"gather({e.t(s.input)}, {e.t(a.index)}, axis={literal(a.dim)})"


@entry("take_along_dim")
def _take_along(e, s):
    a = bind(s, indices=None, dim=None)
    x, i = e.t(s.input), e.t(a.indices)
    if a.indices.numel() and int(a.indices.min()) < 0 and a.dim is not None:
        i = f"({i} % {s.input.shape[a.dim]})"
    if a.dim is None:
        return f"gather(reshape({x}, -1), reshape({i}, -1), axis=0)"
    n = s.input.dim()
    shape = list(torch.broadcast_shapes(
        [1 if d == a.dim % n else v for d, v in enumerate(s.input.shape)],
        [1 if d == a.dim % n else v for d, v in enumerate(a.indices.shape)]))
    ours, theirs = list(shape), list(shape)
    ours[a.dim] = s.input.shape[a.dim]
    theirs[a.dim] = a.indices.shape[a.dim]
    return f"gather(expand({x}, {literal(ours)}), " \
        f"expand({i}, {literal(theirs)}), axis={literal(a.dim)})"


@entry("scatter_add")
def _scatter_add(e, s):
    a = bind(s, dim=None, index=None, src=None)
    x, i, v = e.t(s.input), e.t(a.index), e.t(a.src)
    if a.src.shape != a.index.shape and a.src.dim() == a.index.dim():
        v += "[" + ", ".join(f":{n}" for n in a.index.shape) + "]"
    return f"scatter_add({x}, {i}, {v}, axis={literal(a.dim)})"


@entry("nonzero")
def _nonzero(e, s):
    a = bind(s, as_tuple=False)
    if a.as_tuple:
        x = e.t(s.input)
        n = s.input.dim()
        x = x if n else f"reshape({x}, 1)"
        return f"[nonzero({x})[:, i] for i in range({max(n, 1)})]"
    return f"nonzero({e.t(s.input)})"


@entry("nonzero_static")
def _nonzero_static(e, s):
    a = bind(s, size=None, fill_value=-1)
    if a.fill_value != -1:
        raise NotTaken("fill_value")
    return f"nonzero({e.t(s.input)}, size={literal(a.size)})"


@entry("sort")
def _sort(e, s):
    a = bind(s, dim=-1, descending=False, stable=False)
    at = f"axis={literal(a.dim)}, descending={literal(a.descending)}"
    x = e.t(s.input)
    return f"(sort({x}, {at}), argsort({x}, {at}))"


@entry("argsort")
def _argsort(e, s):
    a = bind(s, dim=-1, descending=False, stable=False)
    return f"argsort({e.t(s.input)}, axis={literal(a.dim)}, " \
        f"descending={literal(a.descending)})"


@entry("topk")
def _topk(e, s):
    a = bind(s, k=None, dim=-1, largest=True, sorted=True)
    if not a.sorted:
        raise NotTaken("sorted")
    return f"topk({e.t(s.input)}, {literal(a.k)}, axis={literal(a.dim)}, " \
        f"largest={literal(a.largest)})"


@entry("unique")
def _unique(e, s):
    a = bind(s, sorted=True, return_inverse=False, return_counts=False,
             dim=None)
    more = "".join(f", {ours}=true" for ours, theirs in (
        ("inverse", a.return_inverse), ("counts", a.return_counts)) if theirs)
    at = "" if a.dim is None else f", axis={literal(a.dim)}"
    return f"unique({e.t(s.input)}{more}{at})"


@entry("nn.functional.one_hot")
def _one_hot(e, s):
    a = bind(s, num_classes=-1)
    n = a.num_classes
    if n == -1:
        if not s.input.numel():
            raise Inexpressible("no classes")
        n = int(s.input.max()) + 1
    return f"one_hot({e.t(s.input)}, {literal(n)})"


@entry("nn.functional.embedding")
def _embedding(e, s):
    # op_db calls embedding(weight, ids): its wrapper swaps them
    a = bind(s, idx=None, padding_idx=None, max_norm=None, norm_type=2.0,
             scale_grad_by_freq=False, sparse=False)
    if a.max_norm is not None:
        raise NotTaken("max_norm")
    if a.scale_grad_by_freq:
        raise NotTaken("scale_grad_by_freq")
    if a.sparse:
        raise NotTaken("sparse")
    w, i = e.t(s.input), e.t(a.idx)
    pad = a.padding_idx
    if pad is not None and pad < 0:
        pad += s.input.shape[0]
    return f"embedding({i}, {w}, padding_idx={literal(pad)})"


# ---- creation --------------------------------------------------------------
def dtype_text(a, like=None):
    return literal(a.dtype if a.dtype is not None else like or torch.float32)


for _name in ("zeros", "ones"):
    def _made(e, s, name=_name):
        a = bind(type("S", (), {"args": (), "kwargs": s.kwargs}), dtype=None)
        return f"{name}({literal(list(s.input))}, dtype={dtype_text(a)})"
    ENTRY[_name] = _made

    def _like(e, s, name=_name):
        a = bind(s, dtype=None)
        to = s.input.dtype if a.dtype is None else a.dtype
        if name == "ones":
            return cast(f"ones_like({e.t(s.input)})",
                        a.dtype if a.dtype != s.input.dtype else None)
        return f"zeros_like({e.t(s.input)}, dtype={literal(to)})"
    ENTRY[_name + "_like"] = _like

    def _new(e, s, name=_name):
        a = bind(s, size=None, dtype=None)
        to = s.input.dtype if a.dtype is None else a.dtype
        return f"{name}({literal(a.size)}, dtype={literal(to)})"
    ENTRY["new_" + _name] = _new


@entry("full")
def _full(e, s):
    a = bind(s, fill_value=None, dtype=None)
    to = "" if a.dtype is None else f", dtype={literal(a.dtype)}"
    size = s.input if isinstance(s.input, (list, tuple)) else [s.input]
    return f"full({literal(list(size))}, {literal(a.fill_value)}{to})"


def _full_like_(e, s):
    a = bind(s, fill_value=None, dtype=None)
    to = s.input.dtype if a.dtype is None else a.dtype
    return f"full({e.t(s.input)}.shape, {literal(a.fill_value)}, " \
        f"dtype={literal(to)})"


def _new_full(e, s):
    a = bind(s, size=None, fill_value=None, dtype=None)
    to = s.input.dtype if a.dtype is None else a.dtype
    return f"full({literal(list(a.size))}, {literal(a.fill_value)}, " \
        f"dtype={literal(to)})"


ENTRY["full_like"], ENTRY["new_full"] = _full_like_, _new_full


@entry("eye")
def _eye(e, s):
    a = bind(s, m=None, dtype=None)
    m = f", {literal(a.m)}" if a.m is not None else ""
    return f"eye({literal(s.input)}{m}, dtype={dtype_text(a)})"


@entry("arange")
def _arange(e, s):
    s = type("S", (), {"input": s.input, "args": s.args, "kwargs": {
        "stop" if k == "end" else k: v for k, v in s.kwargs.items()}})
    a = bind(s, stop=None, step=None, dtype=None)
    if isinstance(s.input, bool):
        raise NotTaken("start")
    rest = "".join(f", {literal(v)}" for v in (a.stop, a.step)
                   if v is not None)
    to = "" if a.dtype is None else f", dtype={literal(a.dtype)}"
    return f"arange({literal(s.input)}{rest}{to})"


@entry("linspace")
def _linspace(e, s):
    a = bind(s, end=None, steps=None, dtype=None)
    return f"linspace({literal(s.input)}, {literal(a.end)}, " \
        f"{literal(a.steps)}, dtype={dtype_text(a)})"


@entry("clone", "contiguous")
def _clone(e, s):
    bind(s, memory_format=None)
    return f"({e.t(s.input)})"


@entry("trace")
def _trace(e, s):
    bind(s)
    x = e.t(s.input)
    n, m = s.input.shape
    return f"sum({x} * eye({n}, {m}, dtype={literal(s.input.dtype)}))"


def _joined(least):
    def f(e, s):
        bind(s)
        xs = []
        for v in s.input:
            x = e.t(v)
            if v.dim() < least:
                x = f"reshape({x}, {literal([1] * (least - max(v.dim(), 1)) + [v.numel()])})"
            xs.append(x)
        first = s.input[0]
        at = 0 if least == 2 else 0 if first.dim() <= 1 else 1
        return f"cat([{', '.join(xs)}], axis={at})"
    return f


ENTRY["vstack"], ENTRY["hstack"] = _joined(2), _joined(1)
