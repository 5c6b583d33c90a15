"""Checks names.tsv against the installed peers.

    python tests/peers/names.py

Each peer of torch and NumPy exists, and each of its arguments is taken, or
not taken with a reason; the table names no argument that the peer lacks.
Arguments are read from the signature, or else from the documentation.
"""
import importlib
import inspect
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def find(path):
    parts = path.split(".")
    value = importlib.import_module(parts[0])
    for part in parts[1:]:
        value = getattr(value, part)
    return value


def split(text):
    """The parts between commas outside of brackets."""
    out, depth, word = [], 0, ""
    for c in text + ",":
        depth += (c in "([") - (c in ")]")
        if c == "," and not depth:
            out.append(word.strip())
            word = ""
        else:
            word += c
    return out


def documented(value, name):
    """Arguments of all forms that the documentation shows."""
    out = []
    pattern = r"(?:^|\n)\s*(?:\.\. function::\s*)?" + re.escape(name) \
        + r"\((.*?)\)\s*->"
    for m in re.finditer(pattern, value.__doc__ or "", re.S):
        for part in split(m[1].replace("\\", "")):
            word = re.split("[=:]", part)[0].strip().lstrip("*")
            word = word.split(" ")[-1]
            if word and word not in out:
                out.append(word)
    return out


def arguments(path):
    value = find(path)
    if inspect.isroutine(value) or inspect.isclass(value):
        try:
            return [p for p in inspect.signature(value).parameters
                    if p not in ("self", "args", "kwargs")]
        except ValueError:
            pass
    return documented(value, path.split(".")[-1])


def reasons(text):
    return {part.split(":")[0].strip() for part in text.split(";") if part}


def main():
    rows = [line.rstrip("\n").split("\t")
            for line in open(os.path.join(HERE, "names.tsv"))
            if not line.startswith("#")]
    general = next(reasons(r[3]) for r in rows if r[0] == "*")
    bad = looked = 0
    for name, peer, taken, left, _, _ in rows:
        if not peer.startswith(("torch.", "numpy.")):
            continue
        looked += 1
        try:
            theirs = set(arguments(peer))
        except (ImportError, AttributeError) as why:
            print(f"{name}: {why}")
            bad += 1
            continue
        ours = {part.split("=")[0] for part in taken.split()}
        spoken = ours | reasons(left)
        if not theirs:
            continue
        for word in sorted(theirs - spoken - general):
            print(f"{name}: nothing about `{word}` of {peer}")
            bad += 1
        for word in sorted(spoken - theirs):
            print(f"{name}: {peer} has no `{word}`")
            bad += 1
    print(f"names: {looked} peers, {bad} failures")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
