"""Records PyTorch's convolutions: values, gradients and second order.

    python tests/peers/convolutions.py > new.txt

Prints the table of tests/golden/grad/peer_conv.tl.  Operands are small whole
numbers and everything is computed in f64, so each number is exact, whatever
the order of the sums.  Each result is recorded as its sum and its product
with the ramp -6 .. 6, -6 .. 6, ...: y; the gradients of sum(y * y * ramp) for
x, w and b; and the gradients, for x and w, of the sum of the squares of the
first ones over 4.
"""
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def ramp(n, m=13):
    return torch.arange(n, dtype=torch.float64) % m - m // 2


def whole(shape, a, m):
    n = 1
    for s in shape:
        n *= s
    return ((torch.arange(n) * a) % m - m // 2).double().reshape(shape)


def pair(t):
    t = t.detach().reshape(-1)
    return [int(t.sum()), int((t * ramp(t.numel())).sum())]


def record(name, x, w, bias, kw):
    f = getattr(F, name)
    outs = w[1] * kw.get("groups", 1) if "transpose" in name else w[0]
    x = whole(x, 7, 11).requires_grad_()
    w = whole(w, 5, 7).requires_grad_()
    b = whole([outs], 3, 5).requires_grad_() if bias else None
    y = f(x, w, b, **kw)
    loss = (y * y * ramp(y.numel()).reshape(y.shape)).sum()
    of = [x, w] + ([b] if bias else [])
    first = torch.autograd.grad(loss, of, create_graph=True)
    norm = sum((g / 2).square().sum() for g in first[:2])
    second = torch.autograd.grad(norm, [x, w])
    row = []
    for t in [y, *first, *second]:
        row += pair(t)
    return row


def text(v):
    return f'"{v}"' if isinstance(v, str) else str(v)


CASES = [
    ("conv1d", [2, 3, 9], [4, 3, 3], True, {}),
    ("conv1d", [2, 4, 10], [6, 2, 3], True, dict(stride=2, padding=1, groups=2)),
    ("conv1d", [3, 12], [2, 3, 4], True, dict(padding="same")),
    ("conv1d", [2, 3, 15], [3, 1, 5], False, dict(groups=3, dilation=2, padding="same")),
    ("conv1d", [1, 2, 5], [2, 2, 5], False, dict(padding="valid")),
    ("conv2d", [2, 3, 6, 7], [4, 3, 3, 3], True, dict(padding=1)),
    ("conv2d", [2, 3, 6, 7], [4, 3, 3, 3], True, dict(stride=2, padding=1)),
    ("conv2d", [1, 3, 9, 8], [5, 3, 3, 2], False, dict(stride=(2, 1), dilation=(1, 2), padding=(0, 1))),
    ("conv2d", [3, 5, 6], [2, 3, 1, 1], True, {}),
    ("conv2d", [2, 4, 5, 5], [4, 1, 3, 3], True, dict(groups=4, padding=1)),
    ("conv2d", [2, 4, 7, 5], [8, 2, 3, 3], False, dict(groups=2, padding="same", dilation=2)),
    ("conv2d", [2, 2, 8, 8], [3, 2, 2, 2], True, dict(stride=3)),
    ("conv2d", [1, 1, 1, 1], [1, 1, 3, 3], True, dict(padding=1)),
    ("conv2d", [2, 3, 9, 9], [4, 3, 7, 7], False, dict(stride=2, padding=3)),
    ("conv2d", [2, 3, 8, 6], [4, 3, 4, 2], True, dict(padding="same")),
    ("conv3d", [2, 2, 4, 5, 6], [3, 2, 2, 3, 3], True, dict(padding=(0, 1, 1))),
    ("conv3d", [1, 4, 5, 5, 4], [4, 2, 3, 2, 2], False, dict(stride=(2, 1, 2), groups=2, padding=1)),
    ("conv3d", [2, 3, 4, 4], [3, 2, 3, 3, 3], True, dict(padding="same")),
    ("conv_transpose1d", [2, 3, 5], [3, 4, 3], True, {}),
    ("conv_transpose1d", [2, 4, 6], [4, 3, 4], True, dict(stride=3, padding=1, output_padding=2, groups=2)),
    ("conv_transpose1d", [3, 5], [3, 2, 3], False, dict(stride=2, dilation=2, padding=2)),
    ("conv_transpose2d", [2, 3, 4, 5], [3, 4, 3, 3], True, dict(padding=1)),
    ("conv_transpose2d", [2, 3, 4, 5], [3, 4, 3, 3], True, dict(stride=2, padding=1, output_padding=1)),
    ("conv_transpose2d", [1, 4, 3, 3], [4, 2, 4, 2], False, dict(stride=(2, 3), output_padding=(1, 0), groups=2)),
    ("conv_transpose2d", [3, 3, 4], [3, 2, 3, 3], True, dict(dilation=2, stride=1, output_padding=1)),
    ("conv_transpose2d", [2, 2, 5, 5], [2, 3, 1, 1], False, dict(stride=2)),
    ("conv_transpose3d", [1, 2, 3, 4, 3], [2, 3, 2, 3, 2], True, dict(padding=(0, 1, 0))),
    ("conv_transpose3d", [2, 4, 2, 3, 3], [4, 2, 3, 2, 3], False, dict(stride=(1, 2, 2), output_padding=(0, 1, 1), groups=2)),
]

for name, x, w, bias, kw in CASES:
    args = "".join(f", {'pad' if k == 'padding' else k}={text(v)}" for k, v in kw.items())
    b = "b" if bias else "none"
    print(f"check(fn(x, w, b) => {name}(x, w, {b}{args}),")
    print(f"      {x}, {w}, {str(bias).lower()},")
    r = [str(v) for v in record(name, x, w, bias, kw)]
    print("      [" + ",\n       ".join(", ".join(r[i:i + 4]) for i in range(0, len(r), 4)) + "])")
