"""Records PyTorch's pooling and interpolation, for tests/golden/run/peer_pools.tl,
and its pooling of integers, for tests/golden/run/pool_integers.tl.

    python tests/peers/pools.py

Each row is a shape, the call as tlang writes it, and four sums of products
with fixed numbers: of y, of the gradient of sum(y * y * g), of the gradient of
that; and the number of elements of y.
"""
import torch
import torch.nn.functional as F

from norms import fixed

MAX = [F.max_pool1d, F.max_pool2d, F.max_pool3d]
AVG = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d]
AAVG = [F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d]
AMAX = [F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d]


def record(shape, text, f):
    x = fixed(shape, 37, 11).requires_grad_()
    y = f(x)
    g = fixed(y.shape, 23, 3)
    dx = torch.autograd.grad((y * y * g).sum(), x, create_graph=True)[0]
    second = torch.autograd.grad((dx * fixed(shape, 31, 7)).sum(), x)[0]
    out = [(t * fixed(t.shape, 41, 13)).sum().item() for t in [y, dx, second]]
    print(f"    ({list(shape)}, fn(x) => {text}, [" + ", ".join(f"{v:.9g}" for v in out + [y.numel()]) + "]),")


SHAPES = [(2, 3, 11), (2, 3, 9, 8), (1, 2, 5, 6, 7)]
for n, shape in enumerate(SHAPES):
    for k, s, p, d, ceil in [(2, 2, 0, 1, False), (3, 2, 1, 1, False), (3, 2, 1, 1, True), (2, 3, 1, 2, False), (3, 1, 1, 2, False), (3, 3, 1, 1, True)]:
        record(shape, f"max_pool(x, {k}, {s}, {p}, {d}, {str(ceil).lower()})", lambda x: MAX[n](x, k, s, p, d, ceil))
    for k, s, p, ceil, count in [(2, 2, 0, False, True), (3, 2, 1, False, True), (3, 2, 1, True, True), (3, 2, 1, True, False), (2, 3, 1, True, True)]:
        record(shape, f"avg_pool(x, {k}, {s}, {p}, {str(ceil).lower()}, {str(count).lower()})", lambda x: AVG[n](x, k, s, p, ceil, count))
    for size in [1, 3, 4]:
        record(shape, f"adaptive_avg_pool(x, {size})", lambda x: AAVG[n](x, size))
        record(shape, f"adaptive_max_pool(x, {size})", lambda x: AMAX[n](x, size))
    linear = ["linear", "bilinear", "trilinear"][n]
    for mode in ["nearest", "nearest-exact", linear, "area"] + (["bicubic"] if n == 1 else []):
        for size in [4, 13]:
            record(shape, f'interpolate(x, size={size}, mode="{mode}")', lambda x: F.interpolate(x, [size] * (n + 1), mode=mode))
        record(shape, f'interpolate(x, scale_factor=1.7, mode="{mode}")', lambda x: F.interpolate(x, scale_factor=1.7, mode=mode))
        if mode in (linear, "bicubic"):
            record(shape, f'interpolate(x, size=7, mode="{mode}", align_corners=true)', lambda x: F.interpolate(x, [7] * (n + 1), mode=mode, align_corners=True))
            record(shape, f'interpolate(x, scale_factor=2, mode="{mode}")', lambda x: F.interpolate(x, scale_factor=2, mode=mode))
record((3, 7, 10), "max_pool(x, [3, 2], [2, 3], [1, 0], [1, 2])", lambda x: F.max_pool2d(x, [3, 2], [2, 3], [1, 0], [1, 2]))
record((7, 10), "avg_pool(x, [3], divisor_override=5)", lambda x: F.avg_pool2d(x[None, :, None], [1, 3], divisor_override=5)[0, :, 0])
record((2, 3, 9, 8), "adaptive_avg_pool(x, [2, 5])", lambda x: F.adaptive_avg_pool2d(x, [2, 5]))


def integers():
    """Results and places, as tests/golden/run/pool_integers.tl has them."""
    t = (torch.arange(24) * 7 % 11).reshape(1, 1, 4, 6)
    for d in [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]:
        x = (t if d == torch.uint8 else t - 5).to(d)
        y, at = F.max_pool2d(x, [3, 2], [1, 2], 1, return_indices=True)
        print(d, y.flatten().tolist(), at.flatten().tolist())
    v = (torch.arange(48) * 7 % 11 - 5).reshape(1, 2, 2, 3, 4)
    print(F.max_pool3d(v, 2, 1).flatten().tolist())
    y, at = F.max_pool2d(v[0], 2, [2, 1], 1, ceil_mode=True, return_indices=True)
    print(y[0].flatten().tolist(), at[0].flatten().tolist())
    big = torch.tensor([2**62 + 1, 2**62, -1, -1]).reshape(1, 1, 1, 4)
    print(F.max_pool2d(big, [1, 2], return_indices=True))
    # not of integers in PyTorch
    print(F.adaptive_max_pool2d(t.float(), 2), F.max_pool2d((t > 7).float(), 2), F.avg_pool2d(t.float(), [2, 3]))


integers()
