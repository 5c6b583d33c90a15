"""Values of torch.autocast on the CPU, for tests/golden/grad/autocast_torch.tl.

    OMP_NUM_THREADS=1 python tests/peers/autocast.py

A step of a network of two products, with its gradients, in bf16 and f16 (what
the CPU has in f16: linear, relu, tanh, mse).  Without a bias the numbers are
equal; with one, torch adds it before the product is rounded.
"""
import torch
import torch.nn.functional as F

torch.set_num_threads(1)


def seq(n, m, a, b):
    """n rows of a fixed sequence in -1 .. 1, as in the golden test."""
    i = torch.arange(n * m, dtype=torch.float32)
    return torch.remainder(i * a + b, 2.0).sub(1.0).reshape(n, m)


def show(name, t):
    print(name, [f"{v:.6f}" for v in t.detach().float().flatten().tolist()])


def step(dtype, scale, bias):
    print(dtype, "with a bias" if bias else "")
    x, y = seq(3, 4, 0.37, 0.11), seq(3, 2, 0.53, 0.29)
    w1 = seq(5, 4, 0.71, 0.03).requires_grad_()
    b1 = seq(1, 5, 0.19, 0.57).reshape(5).requires_grad_() if bias else None
    w2 = seq(2, 5, 0.43, 0.91).requires_grad_()
    with torch.autocast("cpu", dtype=dtype):
        h = F.relu(F.linear(x, w1, b1))
        p = torch.tanh(F.linear(h, w2))
        loss = F.mse_loss(p, y)
    (loss * scale).backward()
    for name, t in (("h", h), ("p", p), ("loss", loss)):
        show(name, t)
    for name, t in (("dw1", w1), ("db1", b1), ("dw2", w2)):
        if t is not None:
            show(name, t.grad / scale)


for bias in (False, True):
    step(torch.bfloat16, 1.0, bias)
    step(torch.float16, 1024.0, bias)
