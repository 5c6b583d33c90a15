"""Records 20 steps of the optimisers that are written in tlang, with decay
groups, schedules and clipping, as tests/golden/run/peer_optim_rules.tl.

    OMP_NUM_THREADS=1 python tests/peers/optim_rules.py > tests/golden/run/peer_optim_rules.tl

A least-squares problem of fixed numbers in f32; rows are the parameters after
steps 1, 2, 5, 10 and 20.  PyTorch has no Lion: its rule is written out from the
paper's algorithm 2.  PyTorch's Muon rounds its iteration to bf16; here it runs
in f32, by the same function without that cast.
"""
import inspect
import torch
import torch.optim._muon as muon
from torch.optim import lr_scheduler as sched
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

source = inspect.getsource(muon._zeropower_via_newtonschulz).replace("grad.bfloat16()", "grad.clone()")
exec(compile(source, "muon", "exec"), muon.__dict__)

X = [[1.0, 2.0, -1.0], [0.5, -1.5, 2.0], [3.0, 0.25, 1.0], [-2.0, 1.0, 0.5]]
Y = [[1.0, -2.0], [0.5, 3.0], [-1.5, 0.25], [2.0, 1.0]]
W = [[0.5, -0.25], [1.0, 0.75], [-0.5, 0.125]]
B = [0.1, -0.2]
KEPT = [1, 2, 5, 10, 20]


class Lion(torch.optim.Optimizer):
    def __init__(self, groups, lr, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(groups, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                c = b1 * m + (1 - b1) * p.grad
                p.sub_(group["lr"] * (c.sign() + group["weight_decay"] * p))
                m.mul_(b2).add_(p.grad, alpha=1 - b2)


def problem():
    w = torch.tensor(W, requires_grad=True)
    b = torch.tensor(B, requires_grad=True)
    x, y = torch.tensor(X), torch.tensor(Y)
    return w, b, lambda: (((x @ w + b) - y) ** 2).mean()


def emit(name, make, rows, clip=None):
    print(f"\n{make}")
    print(f'follow("{name}", net, opt, rate, [')
    for row in rows:
        print("    [" + ", ".join(f"{v:.9g}" for v in row) + "],")
    print(f"], clip={clip})" if clip else "])")


def run(name, ours, make, groups=True, schedule=None, clip=None, matrices=False):
    w, b, loss = problem()
    params = [w] if matrices else [{"params": [w]}, {"params": [b], "weight_decay": 0.0}]
    opt = make(params if groups else [w, b])
    plan = schedule(opt) if schedule else None
    rows = []
    for i in range(20):
        opt.zero_grad()
        loss().backward()
        if clip:
            torch.nn.utils.clip_grad_norm_([w] if matrices else [w, b], clip)
        opt.step()
        if plan:
            plan.step()
        if i + 1 in KEPT:
            rows.append([*w.flatten().tolist(), *b.tolist()])
    emit(name, ours, rows, clip)


def lbfgs(name, ours, steps, **kw):
    w, b, loss = problem()
    opt = torch.optim.LBFGS([w, b], **kw)
    rows = []
    for i in range(steps):
        def closure():
            opt.zero_grad()
            out = loss()
            out.backward()
            return out
        opt.step(closure)
        if i + 1 in KEPT:
            rows.append([*w.flatten().tolist(), *b.tolist()])
    emit(name, ours, rows)


def ema():
    w, b, loss = problem()
    net = torch.nn.ParameterDict({"w": w, "b": b})
    avg = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    avg.update_parameters(net)  # the first copies
    opt = torch.optim.SGD([w, b], lr=0.02)
    rows = []
    for i in range(20):
        opt.zero_grad()
        loss().backward()
        opt.step()
        avg.update_parameters(net)
        if i + 1 in KEPT:
            rows.append([*avg.module["w"].flatten().tolist(), *avg.module["b"].tolist()])
    print("\nnet = Model()\nema = optim.EMA(net, decay=0.9)\nopt = Both(optim.SGD(net, lr=0.02), ema)")
    print('follow("ema", ema.average, opt, none, [')
    for row in rows:
        print("    [" + ", ".join(f"{v:.9g}" for v in row) + "],")
    print("], model=net)")


print('''# The rules written in tlang follow PyTorch's numbers for 20 steps (rows: after
# 1, 2, 5, 10, 20); written by tests/peers/optim_rules.py.
import optim

x = tensor([[1.0, 2.0, -1.0], [0.5, -1.5, 2.0], [3.0, 0.25, 1.0], [-2.0, 1.0, 0.5]])
y = tensor([[1.0, -2.0], [0.5, 3.0], [-1.5, 0.25], [2.0, 1.0]])

module Model():
    param w: f32[3, 2] = tensor([[0.5, -0.25], [1.0, 0.75], [-0.5, 0.125]])
    param b: f32[2] = tensor([0.1, -0.2])

module Both(opt, ema):
    """An optimiser whose model has a running mean."""
    fn step(g):
        opt.step(g)
        ema.update()

fn loss_of(net) = ((x @ net.w + net.b - y) ** 2).mean()

fn gradient_of(net, opt, only):
    if only:
        g = grad loss wrt select(net, "w"): loss = loss_of(net)
        return optim.clip_norm(g, 0.5)
    g = grad loss wrt net: loss = loss_of(net)
    return g

fn follow(name, net, opt, rate, rows, clip = none, model = none, only = false):
    """Twenty steps; the parameters after some of them are those of rows."""
    worst, at, kept = 0.0, 0, [1, 2, 5, 10, 20]
    for i in range(kept[len(rows) - 1]):
        g = gradient_of(model if model != none else net, opt, only)
        if rate != none:
            opt.lr = rate(i)
        opt.step(optim.clip_norm(g, clip) if clip != none else g)
        if i + 1 == kept[at]:
            now = cat([reshape(net.w, 6), net.b])
            worst = max(worst, float(abs(now - tensor(rows[at])).max()))
            at += 1
    print(name, worst < 5e-6 or worst)''')
D = 'decay={"b": 0.0, "*": 0.1}'


def ours(call, rate="none"):
    return f"net = Model()\nopt = {call}\nrate = {rate}"


run("rmsprop", ours("optim.RMSProp(net, lr=0.02)"), lambda p: torch.optim.RMSprop(p, lr=0.02))
run("rmsprop centered", ours(f"optim.RMSProp(net, lr=0.01, momentum=0.9, centered=true, alpha=0.9, {D})",
                             "optim.linear(0.01, warmup=0, total=40)"),
    lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.9, centered=True, alpha=0.9, weight_decay=0.1),
    schedule=lambda o: sched.LinearLR(o, 1.0, 0.0, 40), clip=1.0)
run("adamw", ours(f"optim.AdamW(net, lr=0.05, betas=(0.9, 0.99), {D})",
                  "optim.warmup(optim.step(0.05, [3, 9], gamma=0.5), 4)"),
    lambda p: torch.optim.AdamW(p, lr=0.05, betas=(0.9, 0.99), weight_decay=0.1),
    schedule=lambda o: sched.SequentialLR(
        o, [sched.LinearLR(o, 0.25, 1.0, 3), sched.MultiStepLR(o, [3, 9], 0.5)], [4]), clip=0.7)
run("adagrad", ours(f"optim.Adagrad(net, lr=0.3, lr_decay=0.05, initial=0.1, {D})"),
    lambda p: torch.optim.Adagrad(p, lr=0.3, lr_decay=0.05, initial_accumulator_value=0.1, weight_decay=0.1))
run("lion", ours(f"optim.Lion(net, lr=0.03, {D})", "optim.cosine(0.03, total=20)"),
    lambda p: Lion(p, lr=0.03, weight_decay=0.1), schedule=lambda o: sched.CosineAnnealingLR(o, 20))
for adjust in ["original", "match_rms_adamw"]:
    w, b, loss = problem()
    opt = torch.optim.Muon([w], lr=0.05, weight_decay=0.1, adjust_lr_fn=adjust)
    rows = []
    for i in range(20):
        opt.zero_grad()
        loss().backward()
        torch.nn.utils.clip_grad_norm_([w], 0.5)
        opt.step()
        if i + 1 in KEPT:
            rows.append([*w.flatten().tolist(), *b.tolist()])
    print(f'\nnet = Model()\nopt = optim.Muon(select(net, "w"), lr=0.05, adjust="{adjust}")')
    print(f'follow("muon {adjust}", net, opt, none, [')
    for row in rows:
        print("    [" + ", ".join(f"{v:.9g}" for v in row) + "],")
    print("], only=true)")
lbfgs("lbfgs of gradients", ours("optim.LBFGS(net, lr=0.5)"), 10, lr=0.5, max_iter=1)
w, b, loss = problem()
opt = torch.optim.LBFGS([w, b], lr=1.0, max_iter=4, line_search_fn="strong_wolfe", history_size=3)
rows, losses = [], []
for i in range(3):
    def closure():
        opt.zero_grad()
        out = ((torch.tensor(X) @ w + b).tanh() - torch.tensor(Y) / 4).pow(2).mean()
        out.backward()
        return out
    losses.append(opt.step(closure).item())
    rows.append([*w.flatten().tolist(), *b.tolist()])
print("""
fn tanh_loss():
    g = grad loss wrt net: loss = ((tanh(x @ net.w + net.b) - y / 4) ** 2).mean()
    return loss, g

net = Model()
opt = optim.LBFGS(net, max_iter=4, history=3)
rows = [""")
for loss, row in zip(losses, rows):
    print("    [" + ", ".join(f"{v:.9g}" for v in [loss, *row]) + "],")
print("""]
worst = 0.0
for row in rows:
    now = [opt.step(tanh_loss)] + [float(v) for v in cat([reshape(net.w, 6), net.b])]
    worst = max(worst, max([abs(a - b) for a, b in zip(now, row)]))
print("lbfgs with line search", worst < 1e-4 or worst)""")
ema()
names = ["rmsprop", "rmsprop centered", "adamw", "adagrad", "lion", "muon original", "muon match_rms_adamw",
         "lbfgs of gradients", "lbfgs with line search", "ema"]
for name in names:
    print(f"# expect: {name} true")
