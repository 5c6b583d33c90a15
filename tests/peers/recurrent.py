"""Records PyTorch's recurrent layers, for tests/golden/run/peer_recurrent.tl.

    python tests/peers/recurrent.py

Every cell is filled with sines, in the order of state_dict; a row has the first
and the last element of the outputs, their sum of squares with that of the
states, and the sums of squares of the gradients of that sum with respect to all
cells and to x.
"""
import math

import torch
from torch import nn


def wave(rate, *size):
    return torch.sin(torch.arange(math.prod(size), dtype=torch.float64) * rate).reshape(size).float()


X = wave(0.37, 2, 5, 3)


def row(text, net, call):
    for i, p in enumerate(net.state_dict().values()):
        p.copy_(wave(0.1 + 0.013 * i, *p.shape) * 0.8)
    x = X.clone().requires_grad_()
    outs = call(net, x)
    loss = sum((y ** 2).sum() for y in outs)
    loss.backward()
    grads = sum((p.grad.double() ** 2).sum().item() for p in net.parameters())
    y = outs[0].flatten()
    want = [y[0].item(), y[-1].item(), loss.item(), grads, (x.grad.double() ** 2).sum().item()]
    names = ", ".join(f'"{k}"' for k in net.state_dict())
    print(f"check({text},\n      [{names}],\n      [" + ", ".join(f"{w:.9g}" for w in want) + "])")


def one(net, x, *state):
    y, h = net(x, *state)
    return [y, h]


def two(net, x, *state):
    y, (h, c) = net(x, *state)
    return [y, h, c]


def lstm(*args, **kw):
    return nn.LSTM(*args, batch_first=True, **kw)


row("nn.RNN(3, 4), one", nn.RNN(3, 4, batch_first=True), one)
row('nn.RNN(3, 4, activation="relu", bias=false), one', nn.RNN(3, 4, nonlinearity="relu", bias=False, batch_first=True), one)
row("nn.RNN(3, 4, layers=2, bidirectional=true), one", nn.RNN(3, 4, 2, bidirectional=True, batch_first=True), one)
row("nn.LSTM(3, 4), two", lstm(3, 4), two)
row("nn.LSTM(3, 4, bias=false), two", lstm(3, 4, bias=False), two)
row("nn.LSTM(3, 4, 3), two", lstm(3, 4, 3), two)
row("nn.LSTM(3, 4, 2, bidirectional=true), two", lstm(3, 4, 2, bidirectional=True), two)
row("nn.LSTM(3, 4, 2, bidirectional=true, proj=2), two", lstm(3, 4, 2, bidirectional=True, proj_size=2), two)
row("nn.LSTM(3, 4, 2), fn(n, x) => two(n, x, (h, c))", lstm(3, 4, 2),
    lambda n, x: two(n, x, (wave(0.3, 2, 2, 4), wave(0.2, 2, 2, 4))))
row("nn.GRU(3, 4), one", nn.GRU(3, 4, batch_first=True), one)
row("nn.GRU(3, 4, 2, bidirectional=true), one", nn.GRU(3, 4, 2, bidirectional=True, batch_first=True), one)
row("nn.GRU(3, 4, 2, bias=false), fn(n, x) => one(n, x, h)", nn.GRU(3, 4, 2, bias=False, batch_first=True),
    lambda n, x: one(n, x, wave(0.3, 2, 2, 4)))
row("nn.RNNCell(3, 4), fn(n, x) => [n(x[:, 0], n(x[:, 1]))]", nn.RNNCell(3, 4), lambda n, x: [n(x[:, 0], n(x[:, 1]))])
row('nn.RNNCell(3, 4, activation="relu"), fn(n, x) => [n(x[:, 0])]', nn.RNNCell(3, 4, nonlinearity="relu"), lambda n, x: [n(x[:, 0])])
row("nn.LSTMCell(3, 4), fn(n, x) => [y for y in n(x[:, 0], n(x[:, 1]))]", nn.LSTMCell(3, 4),
    lambda n, x: list(n(x[:, 0], n(x[:, 1]))))
row("nn.GRUCell(3, 4, bias=false), fn(n, x) => [n(x[:, 0], n(x[:, 1]))]", nn.GRUCell(3, 4, bias=False),
    lambda n, x: [n(x[:, 0], n(x[:, 1]))])
