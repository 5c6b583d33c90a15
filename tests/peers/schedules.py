"""Records every value of PyTorch's schedules as tests/golden/run/peer_schedules.tl.

    python tests/peers/schedules.py > tests/golden/run/peer_schedules.tl
"""
import warnings
import torch
from torch.optim import lr_scheduler as sched

warnings.simplefilter("ignore")


def values(make, n, peak=0.5):
    opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=peak)
    plan = make(opt)
    out = []
    for _ in range(n):
        out.append(opt.param_groups[0]["lr"])
        opt.step()
        plan.step()
    return out


def ramp(o, n, then):
    return sched.SequentialLR(o, [sched.LinearLR(o, 1 / n, 1.0, n - 1), then(o)], [n])


CASES = [
    ("optim.cosine(0.5, total=12, floor=0.1)", 13, lambda o: sched.CosineAnnealingLR(o, 12, 0.1)),
    ("optim.cosine(0.5, warmup=3, total=10)", 11, lambda o: ramp(o, 3, lambda o: sched.CosineAnnealingLR(o, 7))),
    ("optim.linear(0.5, total=8, floor=0.1)", 12, lambda o: sched.LinearLR(o, 1.0, 0.2, 8)),
    ("optim.linear(0.5, warmup=4, total=9)", 12, lambda o: ramp(o, 4, lambda o: sched.LinearLR(o, 1.0, 0.0, 5))),
    ("optim.step(0.5, 3)", 10, lambda o: sched.StepLR(o, 3)),
    ("optim.step(0.5, [2, 5, 5, 8], gamma=0.3)", 10, lambda o: sched.MultiStepLR(o, [2, 5, 5, 8], 0.3)),
    ("optim.exponential(0.5, 0.9)", 10, lambda o: sched.ExponentialLR(o, 0.9)),
    ("optim.one_cycle(0.5, 20)", 20, lambda o: sched.OneCycleLR(o, 0.5, 20, cycle_momentum=False)),
    ('optim.one_cycle(0.5, 17, pct_start=0.4, anneal="linear", div_factor=10.0, final_div_factor=100.0)', 17,
     lambda o: sched.OneCycleLR(o, 0.5, 17, pct_start=0.4, anneal_strategy="linear", div_factor=10,
                                final_div_factor=100, cycle_momentum=False)),
    ("optim.one_cycle(0.5, 20, three_phase=true)", 20,
     lambda o: sched.OneCycleLR(o, 0.5, 20, three_phase=True, cycle_momentum=False)),
    ("optim.warmup(optim.exponential(0.5, 0.8), 5)", 12, lambda o: ramp(o, 5, lambda o: sched.ExponentialLR(o, 0.8))),
]
FIGURES = [3.0, 2.0, 2.0, 1.99995, 2.1, 1.5, 1.6, 1.6, 1.6, 1.6, 1.6, 1.2, 1.3, 1.3, 1.3, 1.3, 1.3, 1.3, 1.3, 1.1]
PLATEAUS = [
    ("optim.plateau(0.5, patience=1)", dict(patience=1)),
    ("optim.plateau(0.5, factor=0.5, patience=0, cooldown=2, floor=0.05)",
     dict(factor=0.5, patience=0, cooldown=2, min_lr=0.05)),
    ('optim.plateau(0.5, factor=0.5, patience=2, mode="max", threshold=0.2, relative=false)',
     dict(factor=0.5, patience=2, mode="max", threshold=0.2, threshold_mode="abs")),
]

print("""# Schedules give PyTorch's rates at every step; written by
# tests/peers/schedules.py.
import optim

fn check(name, rates, wanted):
    worst = max([abs(a - b) for a, b in zip(rates, wanted)])
    print(name, worst < 1e-12 or worst)
""")
names = []
for call, n, make in CASES:
    print(f"rate = {call}")
    name = call.split("(")[0]
    names.append(name)
    rows = ", ".join(repr(v) for v in values(make, n))
    print(f'check("{name}", [rate(i) for i in range({n})], [{rows}])\n')
print(f"figures = {FIGURES}\n")
for call, kw in PLATEAUS:
    opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    plan, out = sched.ReduceLROnPlateau(opt, **kw), []
    for v in FIGURES:
        plan.step(v)
        out.append(opt.param_groups[0]["lr"])
    name = "optim.plateau"
    names.append(name)
    print(f"rate = {call}")
    print(f'check("{name}", [rate(v) for v in figures], [{", ".join(repr(v) for v in out)}])\n')
for name in names:
    print(f"# expect: {name} true")
