"""PyTorch's own sample inputs and error inputs, run through tlang.

    python tests/peers/op_db.py TLANG [--match TEXT] [--dtypes f32,f64] [--write]

For every entry of torch.testing's op_db that as_tlang.py can write: values,
gradients, in f64 second order too, interpreted and compiled.  --write keeps
the figures in op_db.tsv.  Tolerances are those with which PyTorch compares
its own operations (torch.testing.assert_close); two units of the largest
element more in f16 and bf16, where orders of sums differ.  What is further
off passes if it is no further from the result in double than PyTorch's is.
"""
import argparse
import collections
import fnmatch
import os
import sys
import types
import unittest
import warnings

# imported by torch.testing and not used here
if "expecttest" not in sys.modules:
    stub = types.ModuleType("expecttest")
    stub.TestCase = unittest.TestCase
    sys.modules["expecttest"] = stub

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import logging  # noqa: E402

logging.disable(logging.WARNING)
warnings.simplefilter("ignore")
import torch  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

import feed  # noqa: E402
from as_tlang import ENTRY, Expr, Inexpressible, NotTaken  # noqa: E402
import as_tlang_nn  # noqa: E402,F401
import as_tlang_shapes  # noqa: E402,F401
import as_tlang_windows  # noqa: E402,F401

DTYPES = {v: k for k, v in feed.NAMES.items()}
HERE = os.path.dirname(os.path.abspath(__file__))


def full_name(op):
    return op.name + ("/" + op.variant_test_name if op.variant_test_name
                      else "")


def results_of(y):
    """Result tensors of a call, in order."""
    if isinstance(y, torch.Tensor):
        return [y]
    if isinstance(y, (tuple, list)):
        return [t for t in y]
    return [torch.tensor(y)]


def with_gradients(case, wanted, second):
    """Adds upstream gradients and what PyTorch makes of them."""
    make = torch.Generator().manual_seed(len(case.key))
    outs = [y for y in wanted if y.requires_grad]
    wrt = [i for i, x in enumerate(case.inputs)
           if x.dtype.is_floating_point and x.requires_grad]
    if not outs or not wrt:
        return
    ups = [torch.rand(y.shape, generator=make).to(y.dtype) + 0.5
           if y.requires_grad else None for y in wanted]
    xs = [case.inputs[i] for i in wrt]
    first = torch.autograd.grad(outs, xs, [u for u in ups if u is not None],
                                allow_unused=True, create_graph=second)
    case.wrt, case.ups = wrt, ups
    case.grads = [torch.zeros_like(x) if g is None else g
                  for g, x in zip(first, xs)]
    if not second:
        return
    case.vs = [torch.rand(x.shape, generator=make).to(x.dtype) - 0.5
               for x in xs]
    reach = [(g, v) for g, v in zip(first, case.vs)
             if g is not None and g.requires_grad]
    again = [None] * len(xs)
    if reach:
        try:
            again = torch.autograd.grad([g for g, _ in reach], xs, [
                v for _, v in reach], allow_unused=True)
        except RuntimeError:  # PyTorch has no second order here
            case.vs = None
            return
    case.seconds = [torch.zeros_like(x) if g is None else g
                    for g, x in zip(again, xs)]


def sample_cases(op, dtype, count):
    """Cases of an entry; count[...] of what can't be a case."""
    grad = dtype.is_floating_point and dtype in op.supported_backward_dtypes(
        "cpu") and op.supports_autograd
    torch.manual_seed(1)
    for i, s in enumerate(op.sample_inputs("cpu", dtype, requires_grad=grad)):
        key = f"{full_name(op)}:{feed.NAMES[dtype]}:{i}"
        count["samples"] += 1
        count["plain"] += feed.NAMES[dtype] in PLAIN
        e = Expr()
        try:
            text = ENTRY[full_name(op)](e, s)
        except NotTaken as why:
            count["refused"] += 1
            count["plain refused"] += feed.NAMES[dtype] in PLAIN
            count["by " + str(why)] += 1
            continue
        except Inexpressible as why:
            count["samples"] -= 1
            count["left out: " + str(why)] += 1
            continue
        try:
            y = op(s.input, *s.args, **s.kwargs)
        except (RuntimeError, IndexError, TypeError, ValueError):
            count["samples"] -= 1
            count["left out: PyTorch fails"] += 1
            continue
        wanted = results_of(y)
        case = feed.Case(key, text, e.inputs, want=wanted,
                         many=not isinstance(y, torch.Tensor),
                         note=(op, dtype, s))
        if grad:
            with_gradients(case, wanted, dtype == torch.float64
                           and op.supports_gradgrad)
        yield case


def error_cases(op, count):
    """Cases of an entry's error inputs."""
    if op.error_inputs_func is None:
        return
    for i, bad in enumerate(op.error_inputs("cpu")):
        s = bad.sample_input
        e = Expr()
        try:
            text = ENTRY[full_name(op)](e, s)
        except (NotTaken, Inexpressible):
            count["errors not expressible"] += 1
            continue
        except (AttributeError, IndexError, TypeError, RuntimeError,
                ZeroDivisionError, ValueError, StopIteration):
            count["errors not expressible"] += 1
            continue
        count["errors"] += 1
        yield feed.Case(f"{full_name(op)}:error:{i}", text, e.inputs,
                        note=(op, None, s))


LOW = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


def tolerance(dtype):
    """(rtol, atol) of torch.testing."""
    return {torch.float64: (1e-7, 1e-7), torch.float32: (1.3e-6, 1e-5),
            torch.float16: (1e-3, 1e-5), torch.bfloat16: (1.6e-2, 1e-5),
            }.get(dtype, (0, 0))


def differs(got, want):
    """Why a result is not the wanted one, or None."""
    if got.dtype != want.dtype:
        return f"dtype {feed.NAMES[got.dtype]}, not " \
            f"{feed.NAMES.get(want.dtype, want.dtype)}"
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, not {list(want.shape)}"
    rtol, atol = tolerance(want.dtype)
    a, b = got.to(torch.float64), want.detach().to(torch.float64)
    if want.dtype in LOW and want.numel():  # as much as the largest is off
        atol += LOW[want.dtype] * b.nan_to_num(0, 0, 0).abs().max().item()
    if torch.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
        return None
    bad = ~torch.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    i = int(bad.flatten().nonzero()[0])
    return f"{a.flatten()[i]!r}, not {b.flatten()[i]!r} at {i} " \
        f"({int(bad.sum())} of {bad.numel()})".replace("tensor", "")


def sorted_by(case):
    """Does the last result tell where the first one's elements came from?"""
    name = case.key.split(":")[0]
    return name in ("topk", "sort", "argsort")


def same_picks(case, got, want):
    """Indices of equal elements may come in any order."""
    op, _, s = case.note
    x = case.inputs[0].detach()
    dim = s.args[1 if case.key.startswith("topk") else 0] if len(s.args) > (
        1 if case.key.startswith("topk") else 0) else s.kwargs.get("dim", -1)
    if x.dim() == 0 or got.shape != want.shape:
        return torch.equal(got, want)
    return torch.equal(x.gather(dim, got), x.gather(dim, want))


def in_double(case, part, shake=None):
    """The results, or gradients, of a case in double; None if impossible.

    shake: a generator; inputs move by up to half a unit of their last place.
    """
    op, _, s = case.note
    twin = {}

    def moved(v):
        d = v.detach().double()
        if shake is None:
            return d
        by = torch.rand(d.shape, generator=shake, dtype=d.dtype) - 0.5
        return d * (1 + torch.finfo(v.dtype).eps * by)

    def up(v):
        if isinstance(v, torch.Tensor) and v.dtype.is_floating_point:
            twin[id(v)] = moved(v).requires_grad_(part == "g"
                                                  and v.requires_grad)
            return twin[id(v)]
        if isinstance(v, (list, tuple)):
            return type(v)(up(w) for w in v)
        return v.detach() if isinstance(v, torch.Tensor) else v
    ys = results_of(op(up(s.input), *up(s.args),
                       **{k: up(v) for k, v in s.kwargs.items()}))
    if part == "y":
        return ys
    pairs = [(y, moved(u)) for y, u in zip(ys, case.ups) if u is not None]
    return torch.autograd.grad([y for y, _ in pairs],
                               [twin[id(case.inputs[i])] for i in case.wrt],
                               [u for _, u in pairs], allow_unused=True)


def noise(case, part, i, exact):
    """How far the rounding of its inputs alone moves a result."""
    shake = torch.Generator().manual_seed(1)
    return max((in_double(case, part, shake)[i] - exact).detach().abs()
               .nan_to_num().max() for _ in range(8))


def no_further(case, part, i, got):
    """Is a result as near to that in double as PyTorch's is, or as the
    rounding of its inputs leaves it?"""
    dtype = case.note[1]
    if part == "s" or dtype is None or not dtype.is_floating_point or \
            dtype == torch.float64:
        return False
    try:
        exact = in_double(case, part)[i]
    except (RuntimeError, KeyError):
        return False
    wanted = (case.want if part == "y" else case.grads)[i].detach()
    if exact is None or got.shape != exact.shape or got.dtype != wanted.dtype \
            or not got.numel():
        return False
    ours = (got.double() - exact).abs().nan_to_num().max()
    theirs = (wanted.double() - exact).abs().nan_to_num().max()
    if ours <= 2 * theirs:
        return True
    if getattr(case, "sums", False) and \
            ours <= 4 * torch.finfo(dtype).eps * exact.detach().abs().max():
        return True
    return bool(ours <= 2 * noise(case, part, i, exact))


def judge(case):
    """The first thing that is wrong with a case, or None."""
    end = case.error.get("end")
    if case.want is None:  # refused, by the operation or by load
        refused = "y" in case.error or (end and "error[E" in end)
        return None if refused else end or "no error"
    if end:
        return end
    for part, letter, wanted in (("y", "y", case.want), ("g", "g", case.grads),
                                 ("s", "s", case.seconds)):
        if part in case.error:
            return f"{part}: {case.error[part]}"
        for i, want in enumerate(wanted or []):
            got = case.got.get(f"{letter}{i}")
            if got is None:
                return f"{part}: nothing came out"
            why = differs(got, want)
            if why and not want.dtype.is_floating_point and sorted_by(case):
                why = None if same_picks(case, got, want) else why
            if why and not no_further(case, part, i, got):
                return f"{part}{i}: {why}"
    for part, letter, plain in (("k", "y", case.want), ("h", "g", case.grads)):
        if part in case.error:
            if case.error[part].startswith("E0602"):
                continue  # refused by rule: sizes that depend on data
            return f"compiled {part}: {case.error[part]}"
        for i in range(len(plain or [])):
            a, b = case.got.get(f"{part}{i}"), case.got.get(f"{letter}{i}")
            if a is not None and not feed.same_bits(a, b):
                return f"compiled {part}{i}: other bits"
    return None


def rules():
    """Rows of differences.tsv: entry, text of the finding, reason."""
    with open(os.path.join(HERE, "differences.tsv")) as f:
        rows = [line.rstrip("\n").split("\t") for line in f]
    return [r for r in rows if r[0] and not r[0].startswith(("#", "entry"))]


def deliberate(case, why, table):
    """Is it a difference that differences.tsv lists?"""
    entry = case.key.split(":")[0]
    kind = case.key.split(":")[1]
    for name, text, *_ in table:
        if fnmatch.fnmatch(entry, name) and fnmatch.fnmatch(
                f"{kind}: {why}", text):
            return True
    return False


def table_row(name, count):
    refused = "; ".join(f"{k[3:]} {v}" for k, v in sorted(count.items())
                        if k.startswith("by ") and k != "by rule")
    out = "; ".join(f"{k[10:]} {v}" for k, v in sorted(count.items())
                    if k.startswith("left out"))
    return "\t".join([name] + [str(count[k]) for k in (
        "samples", "passed", "by rule", "refused", "failed", "errors",
        "errors passed", "errors by rule")] + [refused, out])


HEAD = "\t".join(["entry", "samples", "passed", "by rule", "refused",
                  "failed", "errors", "errors passed", "errors by rule",
                  "refused by", "left out"])


PLAIN = ("f32", "f64", "i64")  # of these at most a tenth may be refused


def unlisted(refused):
    """Refused arguments that no row of names.tsv lists as not taken."""
    rows = [line.rstrip("\n").split("\t")
            for line in open(os.path.join(HERE, "names.tsv"))
            if not line.startswith("#")]
    out = set()
    for entry, argument in refused:
        base = entry.split("/")[0].split(".")[-1].replace("_copy", "")
        known = any(argument in {part.split(":")[0].strip()
                                 for part in r[3].split(";")}
                    for r in rows if r[0] in (base, "*")
                    or r[1].split(".")[-1] in (base, "vector_" + base))
        if not known:
            out.add(f"{entry}: {argument}")
    return sorted(out)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("tlang")
    p.add_argument("--match", default="*")
    p.add_argument("--dtypes", default="f32,f64,i64,bool")
    p.add_argument("--write", action="store_true")
    p.add_argument("--verbose", action="store_true")
    o = p.parse_args()
    dtypes = [DTYPES[d] for d in o.dtypes.split(",")]
    counts, cases = collections.defaultdict(collections.Counter), []
    for op in op_db:
        name = full_name(op)
        if name not in ENTRY or not fnmatch.fnmatch(name, o.match):
            continue
        for dtype in dtypes:
            if op.supports_dtype(dtype, "cpu"):
                cases += sample_cases(op, dtype, counts[name])
        cases += error_cases(op, counts[name])
    feed.run(cases, o.tlang)
    table, bad = rules(), 0
    for case in cases:
        name = case.key.split(":")[0]
        why = judge(case)
        pre = "errors " if case.want is None else ""
        if why is None:
            counts[name][pre + "passed"] += 1
        elif deliberate(case, why, table):
            counts[name][pre + "by rule"] += 1
        else:
            counts[name]["failed"] += 1
            bad += 1
            print(f"{case.key}\t{case.expr}\t" + " ".join(
                f"{feed.NAMES[x.dtype]}{list(x.shape)}" for x in case.inputs)
                + f"\t{why}")
    rows = [table_row(n, counts[n]) for n in sorted(counts)]
    if o.write:
        with open(os.path.join(HERE, "op_db.tsv"), "w") as f:
            f.write("\n".join([HEAD] + rows) + "\n")
    total = sum(counts.values(), collections.Counter())
    fed = max(1, total["samples"] - total["refused"])
    plain = total["plain refused"] / max(1, total["plain"])
    print(f"op_db: {len(counts)} entries, {total['samples']} samples, "
          f"{total['refused']} refused ({plain:.1%} of f32, f64 and i64), "
          f"{total['passed']} passed ({total['passed'] / fed:.1%} of the "
          f"others), {total['by rule']} by rule, {bad} failures; "
          f"{total['errors']} error inputs, {total['errors passed']} refused, "
          f"{total['errors by rule']} by rule")
    strange = unlisted({(name, k[3:]) for name, count in counts.items()
                        for k in count if k.startswith("by ")
                        and k != "by rule"})
    for line in strange:
        print(f"refused by what names.tsv does not list: {line}")
    return 1 if bad or strange else 0


if __name__ == "__main__":
    sys.exit(main())
