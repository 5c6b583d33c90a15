"""At least 20 inputs for each operation, run through tlang and PyTorch.

    python tests/peers/grid.py TLANG [--match TEXT] [--record]

grid_ops.py says what each operation is in both.  Its inputs go over dtypes,
shapes (no axes, sizes 0 and 1, odd ones, more than a vector and a tail),
layouts (transposed, strided, reversed, cut, broadcast) and arguments; values
and gradients are compared, in f64 second ones too, interpreted and compiled.
Elements are multiples of 1/16 or 1/256 that every float dtype holds exactly,
so that the programs of --record can make them again without PyTorch: it
writes tests/golden/run/peer_grid_*.tl, with a weighted sum of each result
and of its gradient for some of the inputs.
"""
import argparse
import fnmatch
import math
import os
import random
import sys
import types

import op_db as judge  # first: it makes torch.testing importable
import torch

import feed
from grid_ops import OPS

SHAPES = [(), (1,), (7,), (0,), (33, 5), (65,), (1, 1), (2, 3, 17), (3, 0),
          (5, 33), (1, 9, 1), (0, 4, 2), (4, 1, 3, 2), (17,)]
FLOATS = ["f32", "f64", "f32", "f16", "f64", "bf16"]
INTS = ["i64", "i32", "u8", "i8", "i16"]
LAYOUTS = [  # text, the same in PyTorch, stored shape for a shape
    ("{}", lambda d, s: d, lambda s: s),
    ("{}.T", lambda d, s: d.mT if d.dim() > 1 else d,
     lambda s: s[:-2] + s[:-3:-1]),
    ("{}[::2]", lambda d, s: d[::2], lambda s: (2 * s[0],) + s[1:]),
    ("{}[::-1]", lambda d, s: d.flip(0), lambda s: s),
    ("{}[1:]", lambda d, s: d[1:], lambda s: (s[0] + 1,) + s[1:]),
    ("expand({}, SHAPE)", lambda d, s: d.expand(s), lambda s: s[:-1] + (1,)),
]
KINDS = {  # of the whole numbers 0 .. 250: numerator and denominator
    "any": (-125, 16), "pos": (1, 16), "unit": (1, 256), "small": (-125, 64),
    "off": (-124.5, 16),  # never 0, for what has a kink there
}


def whole(shape, salt):
    """The numbers 0 .. 250, shuffled."""
    n = math.prod(shape)
    return ((torch.arange(n) * 97 + salt) % 251).reshape(shape)


def make(shape, kind, salt, dtype):
    """Data of a kind: exact in every float dtype."""
    w = whole(shape, salt)
    t = judge.DTYPES[dtype]
    if kind.startswith("below"):  # whole numbers under a bound
        return (w % int(kind[5:])).to(t)
    if t == torch.bool:
        return w % 3 == 0
    if not t.is_floating_point:
        low = 0 if t == torch.uint8 else -60
        return ((w % 121) + low + (kind in ("pos", "unit")) * 61
                * (low < 0)).to(t)
    shift, by = KINDS[kind]
    return ((w + shift) / by).to(t) if shift != -124.5 else \
        ((w * 2 - 249) / 32).to(t)


def made(shape, kind, salt, dtype):
    """The text that makes the same in tlang; see PRELUDE."""
    return f'data({list(shape)}, "{kind}", {salt}, {dtype})'


def input_of(rng, shape, kind, salt, dtype):
    """(tensor, stored data, form, text) of one input."""
    able = [l for l in LAYOUTS if shape or l is LAYOUTS[0]]
    if not shape or shape[-1] == 0:
        able = [l for l in able if "expand" not in l[0]]
    form, view, stored = rng.choice(able)
    size = stored(shape)
    data = make(size, kind, salt, dtype)
    form = form.replace("SHAPE", str(list(shape)))
    return view(data, shape), data, form, form.format(
        made(size, kind, salt, dtype))


def arguments(op, i):
    """Shape, dtype and variant of input i, or None where they do not fit."""
    rng = random.Random(f"{op.name}{i}")
    variant = op.variants[i % len(op.variants)]
    shapes = [s for s in op.shapes or SHAPES if len(s) >= variant.rank]
    dtype = rng.choice(op.dtypes)
    return rng, variant, shapes[(i + i // len(shapes)) % len(shapes)], dtype


def case_of(op, i):
    rng, variant, shape, dtype = arguments(op, i)
    inputs, stored, form, texts = [], [], [], []
    for k, (kind, shape_of) in enumerate(op.inputs):
        own = "i64" if kind.startswith("below") else dtype
        x, d, f, text = input_of(rng, shape_of(shape), kind, 31 * i + 7 * k,
                                 own)
        inputs.append(x)
        stored.append(d)
        form.append(f)
        texts.append(text)
    size = dict(n=shape[0] if shape else 1, m=shape[-1] if shape else 1)
    text = variant.text
    for key, value in size.items():
        text = text.replace("{" + key + "}", str(value))
    case = feed.Case(f"{op.name}:{dtype}:{i}", text, inputs, stored=stored,
                     form=form)
    case.texts = texts
    case.sums = op.sums
    grad = op.grad and inputs[0].dtype.is_floating_point
    xs = [x.clone().requires_grad_(True)
          if grad and x.dtype.is_floating_point else x for x in inputs]
    case.inputs = xs
    case.note = (lambda every: variant.torch(*every), inputs[0].dtype,
                 types.SimpleNamespace(input=xs, args=(), kwargs={}))
    try:
        y = variant.torch(*xs)
    except (RuntimeError, IndexError, ValueError, TypeError) as why:
        case.why = str(why)
        return case  # tlang has to refuse it too
    case.want = judge.results_of(y)
    case.many = not isinstance(y, torch.Tensor)
    if grad:
        judge.with_gradients(case, case.want, inputs[0].dtype == torch.float64
                             and op.second)
    return case


def verdict(case, op):
    why = judge.judge(case)
    if why and any(fnmatch.fnmatch(why, pattern) for pattern in op.rules):
        return None
    return why


def main():
    p = argparse.ArgumentParser()
    p.add_argument("tlang")
    p.add_argument("--match", default="*")
    p.add_argument("--count", type=int, default=24)
    p.add_argument("--record", action="store_true")
    o = p.parse_args()
    ops = [op for op in OPS if fnmatch.fnmatch(op.name, o.match)]
    pairs = [(op, case_of(op, i)) for op in ops for i in range(o.count)]
    if o.record:
        import grid_record
        return grid_record.write(pairs)
    feed.run([case for _, case in pairs], o.tlang)
    bad = refused = 0
    for op, case in pairs:
        why = verdict(case, op)
        refused += case.want is None
        if why:
            bad += 1
            print(f"{case.key}\t{case.expr}\t" + ", ".join(
                f.format(feed.NAMES[x.dtype] + str(list(x.shape)))
                for x, f in zip(case.inputs, case.form)) + f"\t{why}")
    names = {op.name for op in ops}
    print(f"grid: {len(names)} operations, {len(pairs)} inputs, {refused} "
          f"refused by both, {bad} failures")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
