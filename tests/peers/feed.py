"""Runs many small cases through tlang, and compares what comes out.

A case is an expression over the inputs x0, x1, ...  All cases of a batch go
into one program, which reads the inputs from a safetensors file, evaluates
each expression interpreted and inside of an @compile function, takes the
gradients of sum(y * u) for a given u, of second order where asked, and saves
everything to another file; what fails prints the case, the code and the
message.  A batch whose process ends otherwise than by itself is halved until
the case is found.
"""
import dataclasses
import os
import subprocess
import tempfile

import torch
from safetensors.torch import load_file, save_file

NAMES = {torch.float64: "f64", torch.float32: "f32", torch.float16: "f16",
         torch.bfloat16: "bf16", torch.int64: "i64", torch.int32: "i32",
         torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8",
         torch.bool: "bool"}

HEAD = """d = load("in.safetensors")
o = {"none": zeros(1)}
fn wide(y) = y if y.dtype == f64 else f32(y)
fn parts(y) = [p for p in y] if typeof(y) == "tuple" or typeof(y) == "list" else [y]
fn dot(ys, us):
    s = 0.0
    for i, y in enumerate(parts(ys)):
        if us[i] != none:
            s = s + (wide(y) * wide(us[i])).sum()
    return s
"""


@dataclasses.dataclass
class Case:
    """`want` holds the results expected, or is None where tlang has to refuse.

    ups: the weights of the results, None for one without gradient; grads: of
    the inputs wrt; seconds: of sum(v * first gradients), weights in vs."""
    key: str
    expr: str
    inputs: list
    want: list = None
    wrt: list = dataclasses.field(default_factory=list)
    ups: list = None
    grads: list = None
    vs: list = None
    seconds: list = None
    stored: list = None  # what the file holds; the inputs themselves
    form: list = None  # how the program makes an input of what it loads
    compiled: bool = True
    many: bool = False  # the result is a tuple or a list
    note: object = None
    # what came out: key -> tensor, or the text of an error
    got: dict = dataclasses.field(default_factory=dict)
    error: dict = dataclasses.field(default_factory=dict)


def names(prefix, n):
    return ", ".join(f"{prefix}{i}" for i in range(n))


def save_lines(n, key, value, count, many=False):
    if count == 1 and not many:
        return [f'o["{n}.{key}0"] = {value}']
    return [f'o["{n}.{key}{i}"] = {value}[{i}]' for i in range(count)]


def attempt(n, part, lines):
    return (["try:"] + ["    " + line for line in lines]
            + ["catch e:", f'    print("{n}.{part}", e.code, e.msg)'])


def inputs_of(n, case):
    form = case.form or ["{}"] * len(case.inputs)
    return [f"x{i} = " + form[i].format(f'd["{n}.x{i}"]')
            for i in range(len(case.inputs))]


def program_of(n, case, compiled):
    """The lines of case number n."""
    xs = names("x", len(case.inputs))
    wrt = ", ".join(f"x{i}" for i in case.wrt)
    load = inputs_of(n, case)
    lines = [f"fn of_{n}({xs}) = {case.expr}"]
    count = len(case.want) if case.want is not None else 1
    lines += attempt(n, "y", load + [f"y = of_{n}({xs})"]
                     + (save_lines(n, "y", "y", count, case.many)
                        if case.want is not None else []))
    if case.want is None:
        return lines
    both = compiled and case.compiled
    if both:
        lines += ["@compile", f"fn compiled_{n}({xs}):", f"    return of_{n}({xs})"]
        lines += attempt(n, "k", load + [f"y = compiled_{n}({xs})"]
                         + save_lines(n, "k", "y", count, case.many))
    if case.grads is None:
        return lines
    us = "[" + ", ".join("none" if u is None else f'd["{n}.u{i}"]'
                         for i, u in enumerate(case.ups)) + "]"
    lines += attempt(n, "g", load + [
        f"us = {us}", f"g = grad loss wrt {wrt}:",
        f"    loss = dot(of_{n}({xs}), us)"]
        + save_lines(n, "g", "g", len(case.wrt)))
    if both:
        lines += ["@compile", f"fn gradient_{n}({xs}, us):",
                  f"    g = grad loss wrt {wrt}:",
                  f"        loss = dot(of_{n}({xs}), us)", "    return g"]
        lines += attempt(n, "h", load + [
            f"us = {us}", f"g = gradient_{n}({xs}, us)"]
            + save_lines(n, "h", "g", len(case.wrt)))
    if case.seconds is not None:
        vs = "[" + ", ".join(f'd["{n}.v{i}"]' for i in range(len(case.vs))) + "]"
        lines += attempt(n, "s", load + [
            f"us = {us}", f"vs = {vs}", f"s = grad outer_loss wrt {wrt}:",
            f"    g = grad loss wrt {wrt}:",
            f"        loss = dot(of_{n}({xs}), us)",
            "    outer_loss = dot(g, vs)"]
            + save_lines(n, "s", "s", len(case.wrt)))
    return lines


def tensors_of(n, case):
    out = {f"{n}.x{i}": x for i, x in enumerate(case.stored or case.inputs)}
    for letter, values in (("u", case.ups), ("v", case.vs)):
        for i, u in enumerate(values or []):
            if u is not None:
                out[f"{n}.{letter}{i}"] = u
    return {k: t.detach().clone().contiguous() for k, t in out.items()}


def run_once(cases, tlang, folder, timeout, compiled):
    """Exit code of one program for all cases; fills in what came out."""
    tensors, lines = {}, [HEAD]
    for n, case in enumerate(cases):
        tensors.update(tensors_of(n, case))
        lines += program_of(n, case, compiled)
    lines.append('save("out.safetensors", o)')
    tensors.setdefault("none", torch.zeros(1))
    save_file(tensors, os.path.join(folder, "in.safetensors"))
    with open(os.path.join(folder, "cases.tl"), "w") as f:
        f.write("\n".join(lines) + "\n")
    out = os.path.join(folder, "out.safetensors")
    if os.path.exists(out):
        os.unlink(out)
    try:
        done = subprocess.run([tlang, "cases.tl"], cwd=folder, text=True,
                              errors="replace", capture_output=True,
                              timeout=timeout)
    except subprocess.TimeoutExpired:
        return "no end", ""
    if done.returncode != 0:
        return done.returncode, done.stderr
    got = load_file(out) if os.path.exists(out) else {}
    got.pop("none", None)
    for key, value in got.items():
        n, part = key.split(".")
        cases[int(n)].got[part] = value
    for line in done.stdout.splitlines():
        where, _, text = line.partition(" ")
        n, _, part = where.partition(".")
        if n.isdigit() and part in ("y", "k", "g", "h", "s"):
            cases[int(n)].error[part] = text
    return 0, done.stderr


def run(cases, tlang, batch=100, timeout=100, compiled=True):
    """Runs all cases; one that ends the process has error["end"]."""
    tlang = os.path.abspath(tlang)
    keep = os.environ.get("PEERS_KEEP")
    with tempfile.TemporaryDirectory() as scratch:
        folder = keep or scratch
        todo = [cases[i:i + batch] for i in range(0, len(cases), batch)]
        while todo:
            part = todo.pop(0)
            code, text = run_once(part, tlang, folder, timeout, compiled)
            if code == 0:
                continue
            if len(part) == 1:
                part[0].error["end"] = f"exit {code}: {text[:300]}"
            else:
                half = len(part) // 2
                todo[:0] = [part[:half], part[half:]]
    return cases


def same_bits(a, b):
    """Equal bits; any NaN equals any NaN."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if not a.dtype.is_floating_point:
        return torch.equal(a, b)
    ints = {8: torch.int64, 4: torch.int32, 2: torch.int16}[a.element_size()]
    a, b = a.contiguous(), b.contiguous()
    return bool(((a.isnan() & b.isnan()) | (a.view(ints) == b.view(ints))).all())
