"""More small problems for the estimate of a quick look: some that it learns from, and some that it is only tried on.

Each has a family of its own, or that of the data which it shares with a source of `cheap_problems.py`. What
is tried on was chosen before anything was seen on it, and nothing is ever learned from it.
"""

from __future__ import annotations

import ast
import functools
import itertools
import random
import sysconfig
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from sklearn.datasets import (
    load_diabetes,
    load_sample_image,
    make_blobs,
    make_friedman1,
    make_gaussian_quantiles,
)
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression

from glasshouse import Population, SklearnTrainer
from glasshouse.core.arrays import FloatArray
from glasshouse.training.trainer import Trainer

__all__ = ["LEARNED", "MORE_TRAINERS", "TRIED", "learned_problems", "tried_problems"]

_RECORDS = 2000


def _columns(name: str, columns: int = 100) -> Population:
    """Random rows and columns of the features of a graph's nodes."""
    from glasshouse.graph import load_graph

    data, rng = load_graph(name), np.random.default_rng(0)
    known = np.flatnonzero(data.y.numpy() >= 0)
    rows, kept = rng.permutation(known)[:_RECORDS], rng.permutation(data.x.shape[1])[:columns]
    return Population(data.x.numpy()[rows][:, kept], data.y.numpy()[rows])


def _words() -> Population:
    """Counts of 300 words in short texts of 6 subjects: most are 0, and many words are rare."""
    rng = np.random.default_rng(1)
    usual = 1.0 / np.arange(1, 301)
    subjects = usual * rng.gamma(0.3, size=(6, 300))
    y = rng.integers(6, size=_RECORDS)
    counts = [rng.multinomial(12, subjects[one] / subjects[one].sum()) for one in y]
    return Population(np.array(counts, dtype=np.float32), y)


def _purchases() -> Population:
    """Which of 80 goods somebody bought, by 20 kinds of customers."""
    rng = np.random.default_rng(2)
    kinds, y = rng.beta(0.6, 1.2, size=(20, 80)), rng.integers(20, size=_RECORDS)
    return Population((rng.random((_RECORDS, 80)) < 0.5 * kinds[y] + 0.15).astype(np.float32), y)


def _blobs() -> Population:
    x, y = make_blobs(_RECORDS, n_features=10, centers=8, cluster_std=4.5, random_state=3)
    return Population(x.astype(np.float32), y)


def _rings() -> Population:
    x, y = make_gaussian_quantiles(n_samples=_RECORDS, n_features=6, n_classes=4, random_state=4)
    return Population(x.astype(np.float32), y)


def _codes() -> Population:
    """Five columns of codes, one-hot; most codes are rare, and one record in eight is of the rarer class."""
    rng = np.random.default_rng(5)
    codes = np.minimum(rng.zipf(1.5, size=(_RECORDS, 5)), 30) - 1
    effect = rng.normal(size=(5, 30))
    risk = effect[np.arange(5), codes].sum(axis=1) + 1.5 * rng.normal(size=_RECORDS)
    return Population(np.eye(30, dtype=np.float32)[codes].reshape(_RECORDS, -1), (risk > np.quantile(risk, 0.88)) * 1)


def _waves() -> Population:
    """Short series of three classes, which differ in how long a shock lasts."""
    rng = np.random.default_rng(6)
    y = rng.integers(3, size=_RECORDS)
    x, lasting = np.zeros((_RECORDS, 40), dtype=np.float32), np.array([0.2, 0.5, 0.75])[y]
    for step in range(1, 40):
        x[:, step] = lasting * x[:, step - 1] + rng.normal(size=_RECORDS)
    return Population(x, y)


def _diabetes() -> Population:
    x, y = load_diabetes(return_X_y=True)
    return Population(x.astype(np.float32), (y > np.median(y)).astype(int))


def _patches() -> Population:
    """Squares of 8 x 8 pixels, grey, from two photographs: which of the two?"""
    rng = np.random.default_rng(7)
    found: list[FloatArray] = []
    for name in ("china.jpg", "flower.jpg"):
        image = load_sample_image(name).mean(axis=2) / 255.0
        corners = rng.integers([image.shape[0] - 8, image.shape[1] - 8], size=(_RECORDS // 2, 2))
        found += [image[top : top + 8, left : left + 8].ravel() for top, left in corners]
    return Population(np.array(found, dtype=np.float32), np.arange(_RECORDS) // (_RECORDS // 2))


def _lines() -> Population:
    """Lines of five modules of Python's own library as counts of three letters: which module?"""
    folder, rng = Path(sysconfig.get_paths()["stdlib"]), np.random.default_rng(8)
    texts, y = [], []
    for number, name in enumerate(("argparse", "datetime", "inspect", "tarfile", "typing")):
        whole = (folder / f"{name}.py").read_text(encoding="utf-8").splitlines()
        lines = sorted({line.strip() for line in whole if len(line.strip()) > 20})
        chosen = rng.permutation(len(lines))[: _RECORDS // 5]
        texts += [lines[one] for one in chosen]
        y += [number] * len(chosen)
    counts = HashingVectorizer(analyzer="char", ngram_range=(3, 3), n_features=256).transform(texts)
    return Population(counts.toarray().astype(np.float32), np.array(y))


def _functions() -> Population:
    """Functions of four packages of Python's own library as counts of the kinds of nodes in them: which package?"""
    folder, rng = Path(sysconfig.get_paths()["stdlib"]), np.random.default_rng(10)
    kinds = sorted(name for name, kind in vars(ast).items() if isinstance(kind, type) and issubclass(kind, ast.AST))
    rows, y = [], []
    for number, name in enumerate(("asyncio", "email", "importlib", "multiprocessing")):
        trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted((folder / name).glob("*.py"))]
        functions = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        for one in rng.permutation(len(functions))[: _RECORDS // 4]:
            counts = Counter(type(node).__name__ for node in ast.walk(functions[one]))
            rows.append([np.log1p(counts[kind]) for kind in kinds])
            y.append(number)
    x = np.array(rows, dtype=np.float32)
    return Population(x[:, x.any(axis=0)], np.array(y))


def _friedman() -> Population:
    x, y = make_friedman1(_RECORDS, n_features=12, noise=2.0, random_state=9)
    return Population(x.astype(np.float32), np.digitize(y, np.quantile(y, [1 / 3, 2 / 3])))


LEARNED: Mapping[str, Callable[[], Population]] = {
    "pubmed, 100 columns": functools.partial(_columns, "pubmed"),
    "amazon-photo, 100 columns": functools.partial(_columns, "amazon-photo"),
    "citeseer, 100 columns": functools.partial(_columns, "citeseer"),
    "words": _words,
    "purchases": _purchases,
    "blobs": _blobs,
    "rings": _rings,
    "codes": _codes,
    "waves": _waves,
}

TRIED: Mapping[str, Callable[[], Population]] = {
    "github, 100 columns": functools.partial(_columns, "github"),
    "functions": _functions,
    "diabetes": _diabetes,
    "patches": _patches,
    "lines": _lines,
    "friedman": _friedman,
}


def _estimator(make: Callable[[], object], _: Population) -> Trainer:
    return SklearnTrainer(estimator=make())


MORE_TRAINERS: Mapping[str, Callable[[Population], Trainer]] = {
    "forest, depth 8": functools.partial(_estimator, functools.partial(RandomForestClassifier, 50, max_depth=8)),
    "regression, hardly held back": functools.partial(
        _estimator, functools.partial(LogisticRegression, C=10, max_iter=200)
    ),
    "boosting, large trees": functools.partial(
        _estimator, functools.partial(HistGradientBoostingClassifier, max_iter=30)
    ),
}


def learned_problems(trainers: Mapping[str, object]) -> list[tuple[str, str]]:
    """Tables of words with the models on which a first interval failed, and three random models on each made table."""
    graphs = [source for source in LEARNED if source.endswith("columns")]
    first = list(itertools.product(graphs, ("forest", *MORE_TRAINERS)))
    return first + _drawn([source for source in LEARNED if source not in graphs], trainers, count=3, seed=1)


def tried_problems(trainers: Mapping[str, object]) -> list[tuple[str, str]]:
    """Four random models on each table that nothing is learned from."""
    return _drawn(list(TRIED), trainers, count=4, seed=2)


def _drawn(sources: list[str], trainers: Mapping[str, object], *, count: int, seed: int) -> list[tuple[str, str]]:
    rng = random.Random(seed)
    return [(source, trainer) for source in sources for trainer in rng.sample(sorted(trainers), count)]
