"""Records what PyTorch's optimisers do, for tests/golden/run/peer_optim.tl.

    python tests/peers/optimisers.py

A least-squares problem of fixed numbers in f32, 20 steps; the parameters after
each step are printed with nine digits.  The tlang programs hold the recorded
values, so that they run without PyTorch.
"""
import torch

X = torch.tensor([[1.0, 2.0, -1.0], [0.5, -1.5, 2.0], [3.0, 0.25, 1.0], [-2.0, 1.0, 0.5]])
Y = torch.tensor([1.0, -2.0, 0.5, 3.0])
W = [0.5, -0.25, 1.0]
B = [0.1]


def run(make):
    w = torch.tensor(W, requires_grad=True)
    b = torch.tensor(B, requires_grad=True)
    opt = make([{"params": [w]}, {"params": [b], "weight_decay": 0.0}])
    rows = []
    for _ in range(20):
        opt.zero_grad()
        (((X @ w + b) - Y) ** 2).mean().backward()
        opt.step()
        rows.append([*w.tolist(), *b.tolist()])
    return rows


CASES = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.02),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9, weight_decay=0.1),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.05, weight_decay=0.1),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.05, weight_decay=0.1),
}

for name, make in CASES.items():
    print(name)
    for row in run(make):
        print("    [" + ", ".join(f"{v:.9g}" for v in row) + "],")
