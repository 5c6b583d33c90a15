"""Records PyTorch's attention layers, for tests/golden/run/peer_attention.tl.

    python tests/peers/attention_layers.py

Every cell is filled with sines, in the order of state_dict; a row has the first
and the last element of the result, its sum of squares, and the sums of squares
of the gradients of that sum with respect to all cells and to x.  The last rows
are rotary embeddings, by the formula of Llama's and of the paper.
"""
import math

import torch
from torch import nn


def wave(rate, *size):
    return torch.sin(torch.arange(math.prod(size), dtype=torch.float64) * rate).reshape(size).float()


X, M = wave(0.37, 2, 5, 8), wave(0.53, 2, 7, 8)
K = wave(0.41, 2, 7, 6)
OWN, SEEN = wave(0.7, 5, 5) > -0.4, wave(0.7, 5, 7) > -0.4
KEYS = wave(0.9, 2, 7) > -0.5
LOW = torch.ones(5, 5, dtype=torch.bool).tril()


def row(text, net, call):
    net = net.train()
    for i, p in enumerate(net.state_dict().values()):
        p.copy_(wave(0.1 + 0.013 * i, *p.shape) * 0.4)
    x = X.clone().requires_grad_()
    y = call(net, x)
    loss = (y ** 2).sum()
    loss.backward()
    grads = sum((p.grad.double() ** 2).sum().item() for p in net.parameters())
    want = [y.flatten()[0].item(), y.flatten()[-1].item(), loss.item(), grads, (x.grad.double() ** 2).sum().item()]
    names = ", ".join(f'"{k}"' for k in net.state_dict())
    print(f"check({text},\n      [{names}],\n      [" + ", ".join(f"{w:.9g}" for w in want) + "])")


def mha(*args, **kw):
    return nn.MultiheadAttention(*args, batch_first=True, **kw)


def enc(**kw):
    return nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, **kw)


def dec(**kw):
    return nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True, **kw)


row("nn.MultiheadAttention(8, 2), fn(n, x) => n(x)", mha(8, 2), lambda n, x: n(x, x, x)[0])
row("nn.MultiheadAttention(8, 4, bias=false), fn(n, x) => n(x, causal=true)", mha(8, 4, bias=False),
    lambda n, x: n(x, x, x, attn_mask=~LOW)[0])
row("nn.MultiheadAttention(8, 2), fn(n, x) => n(x, m, mask=seen)", mha(8, 2),
    lambda n, x: n(x, M, M, attn_mask=~SEEN)[0])
row("nn.MultiheadAttention(8, 2), fn(n, x) => n(x, m, mask=keys[:, none, none, :])", mha(8, 2),
    lambda n, x: n(x, M, M, key_padding_mask=~KEYS)[0])
row("nn.MultiheadAttention(8, 2, k_dim=6, v_dim=8), fn(n, x) => n(x, k, m)", mha(8, 2, kdim=6, vdim=8),
    lambda n, x: n(x, K, M)[0])
row("nn.TransformerEncoderLayer(8, 2, 16, 0.0), fn(n, x) => n(x)", enc(), lambda n, x: n(x))
row("nn.TransformerEncoderLayer(8, 2, 16, 0.0, norm_first=true, activation=gelu), fn(n, x) => n(x, mask=own)",
    enc(norm_first=True, activation="gelu"), lambda n, x: n(x, src_mask=~OWN))
row("nn.TransformerEncoderLayer(8, 2, 16, 0.0, bias=false), fn(n, x) => n(x, causal=true)", enc(bias=False),
    lambda n, x: n(x, src_mask=~LOW))
row("nn.TransformerDecoderLayer(8, 2, 16, 0.0), fn(n, x) => n(x, m, causal=true)", dec(),
    lambda n, x: n(x, M, tgt_mask=~LOW))
row("nn.TransformerDecoderLayer(8, 2, 16, 0.0, norm_first=true), fn(n, x) => n(x, m, own, seen)",
    dec(norm_first=True), lambda n, x: n(x, M, tgt_mask=~OWN, memory_mask=~SEEN))
row("nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0), 2, nn.LayerNorm(8)), fn(n, x) => n(x, mask=own)",
    nn.TransformerEncoder(enc(), 2, nn.LayerNorm(8)), lambda n, x: n(x, mask=~OWN))
row("nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, 0.0), 2), fn(n, x) => n(x, m, causal=true)",
    nn.TransformerDecoder(dec(), 2), lambda n, x: n(x, M, tgt_mask=~LOW))
row("nn.Transformer(8, 2, 1, 1, 16, 0.0), fn(n, x) => n(m, x, causal=true)",
    nn.Transformer(8, 2, 1, 1, 16, 0.0, batch_first=True), lambda n, x: n(M, x, tgt_mask=~LOW))

inv = 1.0 / (10000.0 ** (torch.arange(0, 8, 2).float() / 8))
angle = torch.outer(torch.arange(3, 8).float(), inv)
full = torch.cat([angle, angle], -1)
half = torch.cat([-X[..., 4:], X[..., :4]], -1)
print("half", (X * full.cos() + half * full.sin())[1, 4].tolist())
turned = torch.view_as_real(torch.view_as_complex(X.reshape(2, 5, 4, 2)) * torch.polar(torch.ones_like(angle), angle))
print("pairs", turned.reshape(2, 5, 8)[1, 4].tolist())
