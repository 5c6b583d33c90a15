"""Records scikit-learn's figures as tests/golden/run/peer_metrics.tl.

    python tests/peers/metrics.py > tests/golden/run/peer_metrics.tl

Needs scikit-learn and PyTorch; BLEU is written out from the paper (section 2),
with n-gram counts by collections.Counter.
"""
import collections
import math

import numpy as np
import sklearn.metrics as sk
import torch

rng = np.random.default_rng(3)
scores = rng.normal(size=(40, 5)).round(2)
y = rng.integers(0, 5, 40)
scores[np.arange(40), y] += 1
pred = scores.argmax(1)
pred[pred == 3] = 2  # a class that is never predicted
b_scores = rng.normal(size=60).round(1)  # with ties
b_y = (b_scores + rng.normal(size=60) > 0).astype(int)
b_pred = (b_scores > 0.2).astype(int)
cands = ["the cat sat on the mat today", "there is a dog in the old house", "it is what it is"]
refs = [["the cat sat on a mat today", "a cat was sitting on the mat today"],
        ["a dog is in the old house now", "there is a dog in that old house"],
        ["it is what it is and no more than that"]]


def grams(words, n):
    return collections.Counter(tuple(words[i:i + n]) for i in range(len(words) - n + 1))


def bleu(n):
    right, total, c, r = [0] * n, [0] * n, 0, 0
    for s, many in zip(cands, refs):
        w, many = s.split(), [t.split() for t in many]
        c += len(w)
        r += min((abs(len(t) - len(w)), len(t)) for t in many)[1]
        for k in range(1, n + 1):
            ref = collections.Counter()
            for t in many:
                ref |= grams(t, k)
            right[k - 1] += sum((grams(w, k) & ref).values())
            total[k - 1] += max(len(w) - k + 1, 0)
    return math.exp(sum(math.log(a / b) for a, b in zip(right, total)) / n + min(0, 1 - r / c))


def t(a):
    return "tensor(" + str(np.asarray(a).tolist()) + ")"


print("# Figures are scikit-learn's; written by tests/peers/metrics.py.\nimport metrics\n")
print("scores = " + t(scores))
print(f"y = {t(y)}\npred = {t(pred)}")
print(f"b_scores = {t(b_scores)}\nb_y = {t(b_y)}\nb_pred = {t(b_pred)}")
print(f"cands = {str(cands).replace(chr(39), chr(34))}\nrefs = {str(refs).replace(chr(39), chr(34))}")
print('''
fn check(name, got, wanted):
    print(name, abs(float(got) - wanted) < 1e-6 or got)
''')
names = []


def check(call, value, name=None):
    name = name or call.split("(")[0].split(".")[1]
    names.append(name)
    print(f'check("{name}", {call}, {float(value)!r})')


check("metrics.accuracy(scores, y)", sk.accuracy_score(y, scores.argmax(1)))
check("metrics.accuracy(pred, y)", sk.accuracy_score(y, pred))
check("metrics.topk(scores, y, k=2)", sk.top_k_accuracy_score(y, scores, k=2))
check("metrics.perplexity(scores, y)",
      math.exp(torch.nn.functional.cross_entropy(torch.tensor(scores), torch.tensor(y)).item()))
for f, g in [("precision", sk.precision_score), ("recall", sk.recall_score), ("f1", sk.f1_score)]:
    check(f"metrics.{f}(b_pred, b_y)", g(b_y, b_pred))
    check(f"metrics.{f}(b_pred == 1, b_y == 1)", g(b_y, b_pred))
    for average in ["macro", "micro", "weighted"]:
        check(f'metrics.{f}(pred, y, average="{average}")', g(y, pred, average=average, zero_division=0))
    check(f'metrics.{f}(pred, y, average="none")[2]', g(y, pred, average=None, zero_division=0)[2])
check("metrics.auc(b_scores, b_y)", sk.roc_auc_score(b_y, b_scores))
check("metrics.auc(-b_scores, b_y == 1)", sk.roc_auc_score(b_y, -b_scores))
for n in [1, 2, 4]:
    check(f"metrics.bleu(cands, refs, n={n})", bleu(n))
print(f"print((metrics.confusion(pred, y) == {t(sk.confusion_matrix(y, pred))}).all())")
for name in names:
    print(f"# expect: {name} true")
print("# expect: true")
