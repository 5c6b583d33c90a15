"""Records PyTorch's cholesky, solve and qr, for tests/golden/run/peer_linalg.tl.

    python tests/peers/linalg.py

Each row is a shape, the call as tlang writes it, and sums of products with
fixed numbers: of the results, of the gradient of sum(y * g), and of the
gradient of that.
"""
import torch

from norms import fixed

L = torch.linalg


def record(shape, text, f):
    x = fixed(shape, 37, 11).requires_grad_()
    ys = f(x)
    ys = ys if isinstance(ys, tuple) else (ys,)
    loss = sum((y * fixed(y.shape, 23, 3)).sum() for y in ys)
    dx = torch.autograd.grad(loss, x, create_graph=True)[0]
    second = torch.autograd.grad((dx * fixed(shape, 31, 7)).sum(), x)[0]
    out = [(t * fixed(t.shape, 41, 13)).sum().item() for t in [*ys, dx, second]]
    print(f"    ({list(shape)}, fn(x) => {text}, [" + ", ".join(f"{v:.9g}" for v in out) + "]),")


def spd(x):
    return x @ x.mT + 3 * torch.eye(x.shape[-2], dtype=x.dtype)


def well(x):
    return x + 4 * torch.eye(x.shape[-1], dtype=x.dtype)


def right(shape):
    return fixed(shape, 29, 5)


for shape in [(1, 1), (3, 3), (5, 5), (2, 4, 4)]:
    record(shape, "[cholesky(spd(x))]", lambda x: L.cholesky(spd(x)))
    record(shape, "[cholesky(x * x[..., :1, :1] * 0.01 + 9 * eye(x.shape[-1], dtype=x.dtype), upper=true)]",
           lambda x: L.cholesky(x * x[..., :1, :1] * 0.01 + 9 * torch.eye(x.shape[-1], dtype=x.dtype), upper=True))
for shape, b in [((1, 1), (1, 2)), ((3, 3), (3,)), ((5, 5), (5, 2)), ((2, 4, 4), (2, 4)), ((2, 4, 4), (2, 4, 3)), ((2, 4, 4), (1, 4, 1)), ((4, 4), (3, 4, 2))]:
    record(shape, f"[solve(well(x), right({list(b)}, x.dtype))]", lambda x: L.solve(well(x), right(b)))
for b in [(4, 2), (4,)]:
    record(b, "[solve(well(right([4, 4], x.dtype)), x * x)]", lambda x: L.solve(well(right((4, 4))), x * x))
for shape in [(1, 1), (4, 4), (5, 3), (3, 5), (2, 4, 3), (2, 2, 5)]:
    record(shape, "qr(x)", lambda x: L.qr(x))
