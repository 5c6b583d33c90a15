"""Records what PyTorch's normalisations do, for tests/golden/run/peer_norms.tl.

    python tests/peers/norms.py

Inputs are sixteenths, exact in every dtype; of each case the result y and the
gradients of sum(y * g) are printed as their sums and as sums of y * r, which
tell where a value went: r is another row of fixed numbers.
"""
import torch
import torch.nn.functional as F


def fixed(shape, a, b, dtype=torch.float64):
    n = 1
    for s in shape:
        n *= s
    i = torch.arange(n)
    return (((i * a + b) % 67 - 33) / 16).to(dtype).reshape(shape)


def record(name, f, shape, affine):
    x = fixed(shape, 37, 11).requires_grad_()
    w, b = [fixed(s, 29, 5 + i).requires_grad_() for i, s in enumerate(affine)]
    y = f(x, w, b)
    g = fixed(y.shape, 23, 3)
    grads = torch.autograd.grad((y * g).sum(), [x, w, b], create_graph=True, allow_unused=True)
    second = torch.autograd.grad((grads[0] * fixed(shape, 31, 7)).sum(), x)[0]
    out = []
    for t in [y, *[d for d in grads if d is not None], second]:
        out.append((t * fixed(t.shape, 41, 13)).sum().item())
    print(f'("{name}", {list(shape)}, [' + ", ".join(f"{v:.9g}" for v in out) + "]),")


def batch(x, w, b):
    return F.batch_norm(x, None, None, w, b, training=True, eps=1e-3)


def main():
    for shape in [(6, 3), (4, 3, 5), (2, 3, 5, 7), (2, 2, 3, 4, 5), (3, 4, 20)]:
        record("batch", batch, shape, [shape[1:2]] * 2)
    for shape in [(3, 4), (2, 4, 5), (2, 4, 5, 7), (3, 4, 20)]:
        record("group", lambda x, w, b: F.group_norm(x, 2, w, b, 1e-3), shape, [shape[1:2]] * 2)
    for shape in [(2, 3, 5), (2, 3, 5, 7), (2, 2, 3, 4, 5)]:
        record("instance", lambda x, w, b: F.instance_norm(x, None, None, w, b, eps=1e-3), shape, [shape[1:2]] * 2)
    for shape in [(4, 5), (2, 3, 300)]:
        record("layer", lambda x, w, b: F.layer_norm(x, shape[-1:], w, b, 1e-3), shape, [shape[-1:]] * 2)
    for shape in [(4, 5), (2, 3, 300)]:
        record("rms", lambda x, w, b: F.rms_norm(x, shape[-1:], w, 1e-3), shape, [shape[-1:]] * 2)

    # three batches through the layer, then evaluation
    for momentum in [0.1, 0.3, None]:
        m = torch.nn.BatchNorm1d(3, momentum=momentum).double()
        for t in range(3):
            m(fixed((5, 3), 37 + t, 11))
        m.eval()
        y = m(fixed((2, 3), 19, 2))
        print([f"{v:.8f}" for v in [*m.running_mean.tolist(), *m.running_var.tolist(), *y.flatten().tolist()]], m.num_batches_tracked.item())


if __name__ == "__main__":
    main()
