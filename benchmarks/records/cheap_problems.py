"""Many small training problems with all degrees of overfitting, each audited with eight shadow models.

`cheap.py` learns from them, and tests on them, what the figures of an audit without shadow models say about one with
eight. A source is a data set or a way to make one; a problem is a source with a way to train, with three targets. The
problems are a random part of all pairs.
"""

from __future__ import annotations

import functools
import itertools
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, make_classification, make_moons
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from glasshouse import Evaluation, Population, SklearnTrainer, TorchTrainer, audit_evidence, digits, mlp, random_subsets
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import generator, seed_for
from glasshouse.data.named import adult, cifar10
from glasshouse.evaluation.thresholds import rate_with_ties
from glasshouse.evidence import Evidence
from glasshouse.pool import ShadowPool
from glasshouse.query.classify import accuracy, query
from glasshouse.query.vote_step import clipped_losses, common_resolution
from glasshouse.training.trainer import Trainer

sys.path.insert(0, str(Path(__file__).parent))

from cheap_tables import LEARNED, MORE_TRAINERS, TRIED, learned_problems, tried_problems

SHADOWS = 8
TARGETS = 3
_MORE_TARGETS = 2  # of a problem of cheap_tables.py
FPR = 0.01


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """One target of one problem: what a cheap audit sees, and what eight shadow models find.

    Args:
        source: the data.
        trainer: the way to train.
        loss: [N] of the target, as an audit without shadow models measures it.
        members: [N] of the target.
        reference: [N] losses of one reference model, trained on a random half of the records.
        train_accuracy: of the target on its members.
        test_accuracy: on the others.
        attack: the strongest attack with eight shadow models, by simulated targets.
        auc: its AUC.
        tpr: its TPR at 1 % FPR, ties broken at random.
    """

    source: str
    trainer: str
    loss: FloatArray
    members: BoolArray
    reference: FloatArray
    train_accuracy: float
    test_accuracy: float
    attack: str
    auc: float
    tpr: float


def _digits(share: float) -> Population:
    return digits(mislabelled=share).population


def _flat(population: Population, records: int) -> Population:
    rows = np.sort(generator(0, "cheap rows").permutation(len(population))[:records])
    x = np.asarray(population.x)[rows].reshape(len(rows), -1).astype(np.float32)
    return Population(x, population.y[rows], classes=np.arange(len(population.classes)))


def _images() -> Population:
    """Small grey images: the mean of the colours and of 2 x 2 pixels."""
    whole = cifar10(records=2000).population
    x = np.asarray(whole.x).mean(axis=1).reshape(-1, 16, 2, 16, 2).mean(axis=(2, 4))
    return Population(x.reshape(len(x), -1).astype(np.float32), whole.y)


def _graph(name: str) -> Population:
    """The features of a graph's nodes as records; its edges are not used."""
    from glasshouse.graph.data.load import load_graph

    graph = load_graph(name)
    return _flat(Population(graph.x.numpy(), graph.y.numpy()), 2000)


def _made(seed: int, **options: Any) -> Population:
    x, y = make_classification(n_samples=2000, random_state=seed, **options)
    return Population(x.astype(np.float32), y)


def _moons() -> Population:
    x, y = make_moons(2000, noise=0.35, random_state=0)
    return Population(x.astype(np.float32), y)


def _cancer() -> Population:
    bunch = load_breast_cancer()
    return Population(StandardScaler().fit_transform(bunch.data).astype(np.float32), bunch.target)


SOURCES: Mapping[str, Callable[[], Population]] = {
    "digits": functools.partial(_digits, 0.0),
    "digits, 10 % wrong labels": functools.partial(_digits, 0.1),
    "digits, 30 % wrong labels": functools.partial(_digits, 0.3),
    "adult": lambda: _flat(adult(records=2000).population, 2000),
    "adult, 4000": lambda: _flat(adult(records=4000, seed=1).population, 4000),
    "cifar10, 16 x 16 grey": _images,
    "cora": functools.partial(_graph, "cora"),
    "citeseer": functools.partial(_graph, "citeseer"),
    "pubmed": functools.partial(_graph, "pubmed"),
    "amazon-photo": functools.partial(_graph, "amazon-photo"),
    "breast cancer": _cancer,
    "moons": _moons,
    "made, 20 features": functools.partial(_made, 1, n_features=20, n_informative=8, flip_y=0.05),
    "made, 5 classes": functools.partial(_made, 2, n_features=40, n_informative=12, n_classes=5, flip_y=0.1),
    "made, 10 classes": functools.partial(_made, 3, n_features=60, n_informative=20, n_classes=10, flip_y=0.0),
    "made, half noise": functools.partial(_made, 4, n_features=30, n_informative=6, flip_y=0.5),
}


def family(source: str) -> str:
    """Sources of one family are left out together: they share records or a generator."""
    return source.split(",")[0].split(" ")[0]


def _network(population: Population, *, epochs: int, hidden: tuple[int, ...] = (64,), decay: float = 0.0) -> Trainer:
    optimizer = functools.partial(torch.optim.Adam, lr=2e-3, weight_decay=decay)
    module = mlp(int(np.prod(population.x.shape[1:])), len(population.classes), hidden=hidden)
    return TorchTrainer(module=module, optimizer=optimizer, epochs=epochs, batch_size=64, device="cpu")


def _estimator(make: Callable[[], Any], _: Population) -> Trainer:
    return SklearnTrainer(estimator=make())


TRAINERS: Mapping[str, Callable[[Population], Trainer]] = {
    "network, 5 epochs": functools.partial(_network, epochs=5),
    "network, 20 epochs": functools.partial(_network, epochs=20),
    "network, 80 epochs": functools.partial(_network, epochs=80),
    "network, weight decay": functools.partial(_network, epochs=40, decay=3e-3),
    "forest": functools.partial(_estimator, functools.partial(RandomForestClassifier, 50)),
    "forest, leaves of 10": functools.partial(
        _estimator, functools.partial(RandomForestClassifier, 50, min_samples_leaf=10)
    ),
    "extra trees, depth 8": functools.partial(_estimator, functools.partial(ExtraTreesClassifier, 50, max_depth=8)),
    "boosting": functools.partial(
        _estimator, functools.partial(HistGradientBoostingClassifier, max_iter=40, max_leaf_nodes=8)
    ),
    "tree": functools.partial(_estimator, DecisionTreeClassifier),
    "tree, depth 5": functools.partial(_estimator, functools.partial(DecisionTreeClassifier, max_depth=5)),
    "regression": functools.partial(
        _estimator, lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
    ),
    "naive Bayes": functools.partial(_estimator, GaussianNB),
}


ALL_TRAINERS: Mapping[str, Callable[[Population], Trainer]] = {**TRAINERS, **MORE_TRAINERS}
ALL_SOURCES: Mapping[str, Callable[[], Population]] = {**SOURCES, **LEARNED, **TRIED}


def problems(count: int = 61) -> list[tuple[str, str]]:
    """Pairs of a source and a way to train, in a random order: the first ``count`` of all."""
    pairs = list(itertools.product(SOURCES, TRAINERS))
    random.Random(0).shuffle(pairs)
    return pairs[:count]


def known_problems(count: int = 32) -> list[tuple[str, str]]:
    """The pairs that are learned from: round by round one of each family, so that no family outweighs the others."""
    families: dict[str, list[tuple[str, str]]] = {}
    for source, trainer in learned_problems(ALL_TRAINERS) + problems():
        families.setdefault(family(source), []).append((source, trainer))
    rounds = itertools.zip_longest(*families.values())
    return [pair for one in rounds for pair in one if pair is not None][:count]


def unseen_problems() -> list[tuple[str, str]]:
    """Pairs from cheap_tables.py that are only tried on."""
    return tried_problems(ALL_TRAINERS)


def kept_cases(source: str, trainer: str, folder: Path) -> list[Case]:
    """The cases of a problem, from a file in the folder if it is there; empty if a model cannot be trained on it."""
    path = folder / f"{source} with {trainer}.npz"
    names = [field.name for field in fields(Case)]
    if not path.is_file():
        try:
            found = list(cases(source, trainer))
        except InputError as error:  # naive Bayes underflows on some tables, and its answers are refused
            print(f"{source} with {trainer}: {error}", flush=True)
            found = []
        folder.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, Any] = {name: np.array([getattr(case, name) for case in found]) for name in names}
        np.savez(path, **arrays)
    with np.load(path, allow_pickle=False) as kept:
        columns = [kept[name] for name in names]
    return [Case(**{n: _plain(v) for n, v in zip(names, row, strict=True)}) for row in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    return value if np.ndim(value) else value.item()


def reference_loss(source: str, trainer: str, *, seed: int = 0) -> FloatArray:
    """[N] losses of the one model that an audit with ``shadows=1`` trains; it is not among the eight."""
    population = ALL_SOURCES[source]()
    (model,) = ShadowPool.plan(population, ALL_TRAINERS[trainer](population), shadows=1, seed=seed + 1)
    answers = query(model, population)
    return clipped_losses(answers.loss, answers.resolution)


def cases(source: str, trainer: str, *, targets: int | None = None, seed: int = 0) -> Iterator[Case]:
    """The targets of one problem; one pool of shadow models serves them all."""
    population = ALL_SOURCES[source]()
    train = ALL_TRAINERS[trainer](population)
    pool = ShadowPool.plan(population, train, shadows=SHADOWS, seed=seed)
    shadows = [query(model, population) for model in pool]
    reference = reference_loss(source, trainer, seed=seed)
    count = targets or (TARGETS if source in SOURCES else _MORE_TARGETS)
    masks = random_subsets(len(population), models=count, fraction=0.5, seed=seed)
    for number, members in enumerate(masks):
        answers = query(train(population, members, seed_for(seed, "target", number)), population)
        step = common_resolution(answers.resolution, [one.resolution for one in shadows])
        evidence = Evidence(
            target_loss=clipped_losses(answers.loss, step),
            shadow_loss=clipped_losses(np.stack([one.loss for one in shadows]), step),
            shadow_members=pool.members,
            labels=population.y,
        )
        result = audit_evidence(
            evidence, members=members, evaluation=Evaluation(fprs=[FPR]), seed=number, progress=False
        )
        assert result.verdict_attack is not None
        strongest = result.outcomes[result.verdict_attack.attack]
        assert strongest.metrics is not None
        yield Case(
            source=source,
            trainer=trainer,
            loss=clipped_losses(answers.loss, answers.resolution),
            members=members,
            reference=reference,
            train_accuracy=accuracy(answers, members),
            test_accuracy=accuracy(answers, ~members),
            attack=result.verdict_attack.attack,
            auc=strongest.metrics.auc,
            tpr=rate_with_ties(strongest.scores, members, FPR)[0],
        )
