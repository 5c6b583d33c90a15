"""Writes tests/golden/run/peer_grid_*.tl: what PyTorch gave for some of the
inputs of grid.py, so that they are tested without it."""
import os

import op_db as judge  # first: it makes torch.testing importable
import torch

import feed

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "..", "golden", "run")
EACH = 8  # inputs of an operation
LINES = 150  # cases of a file
MOST = 400  # elements of an input

PRELUDE = '''# Results of PyTorch, for inputs of tests/peers/grid.py; written by its --record.
# args: --quiet
import peer_grid.grid as grid
bad = 0
'''


def weights(n):
    return ((torch.arange(n, dtype=torch.float64) * 13 + 5) % 17) / 16 + 0.5


def figure(y, dtype):
    """(sizes, dtype, weighted sum, that of absolute values) of a tensor."""
    v = y.detach().double().flatten() * weights(y.numel())
    sizes = "[" + ", ".join(str(n) for n in y.shape) + "]"
    total, most = v.sum().item(), v.abs().sum().item()

    def text(f):
        return "nan" if f != f else repr(f) if abs(f) != float("inf") else \
            "inf" if f > 0 else "(-inf)"
    return f"({sizes}, {feed.NAMES[dtype]}, {text(total)}, {text(most)})"


def results(case):
    """Results and the inputs with gradients; of f16 and bf16 in double, as
    PyTorch's own gradients round in between."""
    low = {torch.float16, torch.bfloat16}
    every = [x.detach().double() if x.dtype in low else x.detach()
             for x in case.inputs]
    xs = [every[i].requires_grad_(True) for i in case.wrt]
    return judge.results_of(case.note[0](every)), xs


def gradients(case, ys, xs):
    """The recorded gradients of the sum of all results, by input."""
    out = ["none"] * len(case.inputs)
    found = torch.autograd.grad(sum(y.double().sum() for y in ys), xs,
                                allow_unused=True)
    for i, g in zip(case.wrt, found):
        x = case.inputs[i]
        if g is not None:
            out[i] = figure(g, x.dtype)
    return f'[{", ".join(out)}]'


def line(case):
    f = f'fn({feed.names("x", len(case.inputs))}) => {case.expr}'
    data = "[" + ", ".join(t.replace("data(", "grid.data(")
                           for t in case.texts) + "]"
    if case.want is None:
        return f'bad += grid.refuses("{case.key}", {f}, {data})'
    ys, xs = results(case)
    want = "[" + ", ".join(figure(y, w.dtype)
                           for y, w in zip(ys, case.want)) + "]"
    if case.ups is None or None in case.ups:
        return f'bad += grid.same("{case.key}", {f}, {data}, {want})'
    return f'bad += grid.same("{case.key}", {f}, {data}, {want}, ' \
        f'{gradients(case, ys, xs)})'


def fits(op, case):
    """Small, and alike in both but for rounding."""
    return not op.rules and all(x.numel() <= MOST for x in case.inputs)


def write(pairs):
    lines, done = [], {}
    for op, case in pairs:
        if fits(op, case) and done.get(op.name, 0) < EACH:
            done[op.name] = done.get(op.name, 0) + 1
            lines.append(line(case))
    for i in range(0, len(lines), LINES):
        part = lines[i:i + LINES]
        with open(os.path.join(FOLDER, f"peer_grid_{i // LINES + 1}.tl"),
                  "w") as f:
            f.write(PRELUDE + "\n".join(part)
                    + f'\nprint(bad)\n# expect: 0\n')
    print(f"grid: {len(lines)} recorded, of {len(done)} operations")
    return 0
