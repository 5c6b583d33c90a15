"""The same models as in examples/, in PyTorch: the figures that the bounds in
tests/examples/cases.tsv are taken from.

    OMP_NUM_THREADS=1 python tests/peers/examples.py [--seeds=2] [NAME...]

Each function trains as the example of its name does with its defaults, and
gives the figure of the last line."""
import copy
import math
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

DATA = os.path.join(os.path.dirname(__file__), "../../examples/data/digits.csv")
ROWS = np.loadtxt(DATA, delimiter=",").astype("f4")
X, Y = torch.tensor(ROWS[:, :64] / 16), torch.tensor(ROWS[:, 64]).long()


def split():
    order = torch.randperm(len(X))
    k = round(0.8 * len(X))
    return order[:k], order[k:]


def batches(index, size=64):
    return torch.split(index[torch.randperm(len(index))], size)


def descend(opt, loss):
    opt.zero_grad()
    loss.backward()
    opt.step()


def accuracy(net, index):
    net.eval()
    with torch.no_grad():
        right = net(X[index]).argmax(1) == Y[index]
    return right.float().mean().item()


def digits_cnn():
    train, test = split()
    net = nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.3), nn.Linear(1024, 10))
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
    i = 0
    for _ in range(15):
        for at in batches(train):
            share = min(1, i / (15 * 23))
            opt.param_groups[0]["lr"] = 1e-3 * (1 + math.cos(math.pi * share))
            descend(opt, F.cross_entropy(net(X[at]), Y[at]))
            i += 1
    return accuracy(net, test)


def autoencoder():
    train, test = split()
    net = nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 8),
        nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 64), nn.Sigmoid())
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for _ in range(40):
        for at in batches(train):
            descend(opt, F.mse_loss(net(X[at]), X[at]))
    return F.mse_loss(net(X[test]), X[test]).item()


def vae():
    train, test = split()
    encoder = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 16))
    decoder = nn.Sequential(nn.Linear(8, 256), nn.ReLU(), nn.Linear(256, 64))
    opt = torch.optim.Adam(
        [*encoder.parameters(), *decoder.parameters()], lr=2e-3)

    def negative_bound(x):
        mean, log_var = encoder(x).chunk(2, 1)
        z = mean + (0.5 * log_var).exp() * torch.randn_like(mean)
        pixels = F.binary_cross_entropy_with_logits(
            decoder(z), x, reduction="sum")
        divergence = 0.5 * (mean ** 2 + log_var.exp() - 1 - log_var).sum()
        return (pixels + divergence) / len(x)

    for _ in range(60):
        for at in batches(train):
            descend(opt, negative_bound(X[at]))
    return negative_bound(X[test]).item()


class Quantised(nn.Module):
    def __init__(self, d_in, d_out, levels):
        super().__init__()
        self.fc, self.levels = nn.Linear(d_in, d_out), levels

    def forward(self, x):
        w = self.fc.weight
        if self.levels > 0:
            scale = w.abs().max().detach() / self.levels
            w = w + ((w / scale).round() * scale - w).detach()
        return F.linear(x, w, self.fc.bias)


def quantise():
    train, test = split()

    def trained(levels):
        net = nn.Sequential(
            Quantised(64, 128, levels), nn.ReLU(),
            Quantised(128, 64, levels), nn.ReLU(), Quantised(64, 10, levels))
        opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
        for _ in range(30):
            for at in batches(train):
                descend(opt, F.cross_entropy(net(X[at]), Y[at]))
        return net

    full, few = trained(0), trained(1)
    after = copy.deepcopy(full)
    for part in after:
        if isinstance(part, Quantised):
            part.levels = 1
    return accuracy(after, test), accuracy(few, test)


MODELS = [digits_cnn, autoencoder, vae, quantise]


def main():
    seeds = 2
    names = []
    for arg in sys.argv[1:]:
        if arg.startswith("--seeds="):
            seeds = int(arg[8:])
        else:
            names.append(arg)
    for model in MODELS:
        if names and model.__name__ not in names:
            continue
        for seed in range(seeds):
            torch.manual_seed(seed)
            print(model.__name__, model(), flush=True)


if __name__ == "__main__":
    main()
