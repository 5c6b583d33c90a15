"""Records PyTorch's scaled_dot_product_attention, for
tests/golden/run/peer_sdpa.tl.

    python tests/peers/attention.py

Inputs are sines of the element number, so that both sides can make them.  A
row has the result's first elements, its sum of squares, and of the gradients
of that sum the same; the last number is of second order: the sum of the
gradient of sum(dq^2) with respect to k (f64 only).
"""
import math

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

CASES = [  # dtype, B, H, G, T, S, E, D, mask, causal, scale
    ("f32", 1, 1, 1, 1, 2, 1, 2, "", False, 0),
    ("f32", 2, 3, 3, 5, 7, 4, 4, "", False, 0),
    ("f32", 2, 3, 3, 7, 7, 4, 4, "", True, 0),
    ("f32", 1, 2, 2, 5, 9, 8, 3, "", True, 0),
    ("f32", 1, 2, 2, 9, 5, 8, 3, "keys", False, 0),
    ("f32", 1, 4, 2, 6, 6, 8, 8, "", True, 0),
    ("f32", 1, 6, 1, 6, 10, 8, 8, "bool", False, 0),
    ("f32", 1, 2, 2, 65, 129, 16, 17, "", False, 0),
    ("f32", 1, 2, 2, 130, 130, 16, 17, "", True, 0),
    ("f32", 1, 2, 1, 70, 200, 5, 6, "added", False, 0.7),
    ("f32", 1, 2, 2, 33, 33, 64, 64, "bool", False, 0),
    ("f64", 1, 1, 1, 3, 3, 2, 2, "", False, 0),
    ("f64", 2, 2, 2, 4, 6, 3, 5, "added", False, 0),
    ("f64", 2, 4, 2, 5, 5, 3, 3, "", True, 0.25),
    ("f64", 1, 2, 2, 100, 140, 8, 8, "", True, 0),
    ("f64", 1, 2, 2, 6, 8, 4, 4, "bool", False, 2.0),
    ("f64", 1, 2, 2, 6, 8, 4, 4, "keys", False, 0),
    ("f16", 1, 2, 2, 9, 9, 8, 8, "", True, 0),
    ("f16", 1, 4, 2, 70, 130, 8, 8, "", False, 0),
    ("bf16", 1, 2, 2, 9, 9, 8, 8, "", False, 0),
    ("bf16", 1, 2, 2, 70, 130, 8, 8, "bool", False, 0),
]
DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16}


def wave(rate, *size):
    return torch.sin(torch.arange(math.prod(size), dtype=torch.float64) * rate).reshape(size)


def mask_of(kind, H, T, S, causal, dtype):
    last = torch.arange(T)[:, None] + (S - T) >= torch.arange(S)
    if kind == "keys":
        return wave(0.9, S) > -0.5
    if kind == "bool":
        return wave(0.7, H, T, S) > -0.6
    if kind == "added":
        return wave(0.5, T, S).to(dtype)
    return last if causal and T != S else None


def record(name, B, H, G, T, S, E, D, kind, causal, scale):
    dtype = DTYPES[name]
    q = wave(0.37, B, H, T, E).to(dtype).requires_grad_()
    k = wave(0.53, B, G, S, E).to(dtype).requires_grad_()
    v = wave(0.29, B, G, S, D).to(dtype).requires_grad_()
    mask = mask_of(kind, H, T, S, causal, dtype)
    second = name == "f64"
    with sdpa_kernel(SDPBackend.MATH):
        y = F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal and mask is None,
                                           scale=scale or None, enable_gqa=H != G)
        total = (y.to(torch.float32 if y.dtype.itemsize < 4 else y.dtype) ** 2).sum()
        grads = torch.autograd.grad(total, (q, k, v), create_graph=second)
        row = y.flatten()[:2].tolist() + [total.item()]
        for g in grads:
            row += [g.flatten()[-1].item(), (g.double() ** 2).sum().item()]
        if second:
            row.append(torch.autograd.grad((grads[0] ** 2).sum(), k)[0].sum().item())
    head = f"{name}, [{B}, {H}, {G}, {T}, {S}, {E}, {D}], \"{kind}\", {str(causal).lower()}, {float(scale)}"
    print(f"check({head}, [" + ", ".join(f"{x:.9g}" for x in row) + "])")


for case in CASES:
    record(*case)
