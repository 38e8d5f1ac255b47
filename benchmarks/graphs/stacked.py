"""What learning costs g-stacked, and its power: the recipe before and the recipe now. Writes a table beside itself.

Run: GLASSHOUSE_DATA=… python benchmarks/graphs/stacked.py [--graphs cora pubmed] [--targets 3] [--only now]
[--offline]. The recipe before grew 150 trees of 63 leaves twice for every fit, in all three rounds of eight samples,
with one more fit on everything for the true target, one fit after another, and drew samples independently. Both
recipes are run on the same pool and targets; where both are run, their difference has a standard error over the
targets. ``made-17716`` and ``made-34493`` are made-up graphs of these sizes, for the time alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from joblib import cpu_count
from made_graphs import wide_graph
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits
from torch_geometric.data import Data

from glasshouse.attacks.cross_fit import CrossFit, cross_fit
from glasshouse.attacks.learners import Boosted, Learner, Linear, Predictor
from glasshouse.attacks.regressed import record_folds
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.randomness import generator, seed_for
from glasshouse.data import complementary_halves, random_subsets
from glasshouse.evaluation import auc, tpr_at_fpr
from glasshouse.evidence import Mode
from glasshouse.graph import GNNTrainer, GStacked, Scene, load_graph
from glasshouse.graph.attacks import g_stacked
from glasshouse.graph.attacks.stacking import learn, pool_signals
from glasshouse.graph.attacks.stacking.features import GraphContext
from glasshouse.graph.attacks.stacking.similar_nodes import SimilarNodes
from glasshouse.graph.data.synthetic import citation_graph
from glasshouse_experiments.settings import SETTINGS

GRAPHS = ("cora", "citeseer", "pubmed", "amazon-photo")  # with the paper's trainers
MADE: Mapping[str, Callable[[], Data]] = {
    "made-17716": lambda: citation_graph(nodes=17_716, classes=4, words=1_639, mean_degree=6.0),
    "made-34493": wide_graph,
}
STEPS = ("learning", "asking", "kin")
SEED = 3  # not a seed on which anything was chosen


@dataclass(frozen=True, kw_only=True)
class LinearBefore(Linear):
    """The regression as it was: L-BFGS, on all rows."""

    examples: int = 10**9

    def fit(self, rows: FloatArray, members: BoolArray, *, seed: int) -> Predictor:
        """Learn from rows [R, F] and members [R]."""

        def solved(scaled: FloatArray, members: BoolArray, *, strength: float) -> FloatArray:
            columns = np.concatenate([scaled, scaled**2], axis=1)
            fitted = LogisticRegression(C=strength, max_iter=2000).fit(columns, members)
            return np.append(fitted.coef_[0], fitted.intercept_)

        with patch("glasshouse.attacks.learners._regression", solved):
            return super().fit(rows, members, seed=seed)


BEFORE = GStacked(
    samples=(8, 8, 8),
    boosted=Boosted(rounds=150, rate=0.05, leaves=63, bins=255, fits=2, examples=600_000),
    linear=LinearBefore(),
    jobs=1,
)
NOW = GStacked()


def learn_before(pool: pool_signals.PoolSignals) -> learn.Learned:
    """`learn` as it was: every learner in every round, and one fit on everything for the true target."""
    attack, known = pool.attack, learn.Learned(pool=pool)
    learners = {"linear": attack.linear, "boosted": attack.boosted}  # there were no networks
    members = pool.members[pool.plan.targets]
    folds = record_folds(pool.members.shape[1], mode=attack.mode, folds=attack.folds, seed=attack.seed)[pool.at]
    for number in range(1 + len(known.samples)):
        rows, own = known.simulated(), seed_for(attack.seed, "round", number)
        fit = _timed("learning", _fit_before)(rows, members, pool.plan.groups, folds, learners, own, attack.jobs)
        known = dataclasses.replace(known, rounds=(*known.rounds, fit))
    return known


def _fit_before(
    rows: FloatArray,
    members: BoolArray,
    groups: NDArray[np.intp],
    folds: NDArray[np.intp],
    learners: Mapping[str, Learner],
    seed: int,
    jobs: int,
) -> CrossFit:
    found = cross_fit(
        lambda *at: rows[at], members, groups=groups, folds=folds, learners=learners, seed=seed, jobs=jobs
    )
    whole: dict[str, tuple[tuple[Predictor, ...], ...]] = {}
    with threadpool_limits(1, user_api="blas"):
        for name, learner in learners.items():
            parts = []
            for fold in range(int(folds.max()) + 1):
                at = folds != fold if folds.max() else folds == fold
                chosen = rows[:, at].reshape(-1, rows.shape[2]), members[:, at].reshape(-1)
                parts.append((learner.fit(*chosen, seed=seed_for(seed, -1, fold)),))
            whole[name] = tuple(parts)
    return dataclasses.replace(found, predictors=whole)


def _coins(chances: FloatArray, *, samples: int, random: np.random.Generator) -> BoolArray:
    """Training sets [M, n] as they were drawn: independently."""
    return np.asarray(random.random((samples, len(chances))) < chances)


@contextmanager
def _as_before() -> Iterator[None]:
    with (
        patch.object(g_stacked, "learn", learn_before),
        patch.object(learn, "draw_training_sets", _coins),
        patch.object(pool_signals, "draw_training_sets", _coins),
    ):
        yield


_SPENT: dict[str, float] = defaultdict(float)


def _timed(step: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            _SPENT[step] += time.perf_counter() - start

    return timed


@contextmanager
def stopwatch() -> Iterator[dict[str, float]]:
    """Seconds of wall time spent on each step inside the block."""
    _SPENT.clear()
    with (
        patch(f"{learn.__name__}.cross_fit", _timed("learning", cross_fit)),
        patch(f"{pool_signals.__name__}.sampled_answers", _timed("asking", pool_signals.sampled_answers)),
        patch(f"{pool_signals.__name__}.plain_answers", _timed("asking", pool_signals.plain_answers)),
        patch.object(GraphContext, "of", _timed("kin", GraphContext.of)),
        patch.object(SimilarNodes, "expected", _of_method("kin", SimilarNodes.expected)),
    ):
        yield _SPENT


def _of_method(step: str, method: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *args: _timed(step, method)(self, *args)


def scenes(graph: str, *, targets: int, seed: int = SEED) -> list[tuple[Scene, BoolArray]]:
    """Targets with half of the nodes audited, evenly split, and their members there; all with one pool of eight."""
    if graph in MADE:
        data, trainer = MADE[graph](), GNNTrainer(architecture="gcn", hidden=64, epochs=50)
    else:
        data, trainer = load_graph(graph), SETTINGS.find(graph).trainer
    count = int(data.num_nodes)
    members = complementary_halves(count, models=8, seed=seed)
    own = random_subsets(count, models=targets, fraction=0.5, seed=seed_for(seed, "targets"))
    seeds = [seed_for(seed, "shadow", k) for k in range(8)] + [seed_for(seed, "target", k) for k in range(targets)]
    models = trainer.train_many(data, np.concatenate([members, own]), seeds)
    made = []
    for number, truth in enumerate(own):
        random = generator(seed, "audited", number)
        nodes = np.concatenate([random.permutation(np.flatnonzero(side))[: count // 4] for side in (truth, ~truth)])
        made.append((Scene(data, models[8 + number], models[:8], members, nodes=nodes), truth[nodes]))
    return made


def measure(attack: GStacked, given: list[tuple[Scene, BoolArray]], *, before: bool = False) -> dict[str, Any]:
    """Seconds until the first target is scored, in all and by step; and the power over each target [T], in percent."""
    with _as_before() if before else nullcontext(), stopwatch() as spent:
        start, work = time.perf_counter(), time.process_time()
        tuned = attack.tuned(given[0][0])
        scores = [tuned.score(given[0][0])]
        found: dict[str, Any] = {"seconds": time.perf_counter() - start, "processor": time.process_time() - work}
        found |= {step: spent[step] for step in STEPS}
    found["rest"] = found["seconds"] - sum(found[step] for step in STEPS)
    with _as_before() if before else nullcontext():
        scores += [tuned.score(scene) for scene, _ in given[1:]]
    truths = [truth for _, truth in given]
    for name, rate in {"auc": None, "tpr1": 0.01, "tpr01": 0.001}.items():
        found[name] = 100 * np.array(
            [
                auc(one, truth) if rate is None else tpr_at_fpr(one, truth, rate)
                for one, truth in zip(scores, truths, strict=True)
            ]
        )
    return found


def line(graph: str, recipe: str, found: Mapping[str, Any]) -> str:
    """One row of the table: seconds, and means over the targets."""
    seconds = [f"{found[name]:.1f}" for name in ("seconds", "processor", *STEPS, "rest")]
    power = [f"{found[name].mean():.2f}" for name in POWER]
    return f"| {graph} | {recipe} | {' | '.join([*seconds, *power])} |"


def difference(graph: str, now: Mapping[str, Any], before: Mapping[str, Any]) -> str:
    """A row of differences in power, now less before, with standard errors over the targets."""
    each = [now[name] - before[name] for name in POWER]
    cells = [f"{one.mean():+.2f} ± {one.std(ddof=1) / len(one) ** 0.5:.2f}" if len(one) > 1 else "–" for one in each]
    return f"| {graph} | now less before | {' | '.join(['–'] * 6 + cells)} |"


POWER = ("auc", "tpr1", "tpr01")
HEAD = """# What learning costs g-stacked (K = 8, {mode}) on {device}

{targets} targets, seed {seed}. Seconds until the first target is scored: wall time, processor time of all threads, and
the wall time of its steps. Power: the mean over the targets, in percent.

| graph | recipe | seconds | processor | learning | asking | kin | rest | AUC | TPR at 1 % FPR | TPR at 0.1 % FPR |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


def main() -> None:
    """Measure, print, and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", choices=[*GRAPHS, *MADE], default=["cora"])
    parser.add_argument("--targets", type=int, default=3)
    parser.add_argument("--only", choices=["before", "now"])
    parser.add_argument("--offline", action="store_true")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, help="fits in parallel, for both recipes; the same bytes with any number")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "stacked.md")
    options = parser.parse_args()
    mode: Mode = "offline" if options.offline else "online"
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{cpu_count()} cores"
    lines = [HEAD.format(targets=options.targets, seed=options.seed, mode=mode, device=device)]
    print(lines[0])
    for graph in options.graphs:
        given = scenes(graph, targets=options.targets, seed=options.seed)
        found = {}
        for recipe, attack in {"now": NOW, "before": BEFORE}.items():
            if options.only in (None, recipe):
                jobs = attack.jobs if options.jobs is None else options.jobs
                chosen = dataclasses.replace(attack, mode=mode, jobs=jobs)
                found[recipe] = measure(chosen, given, before=recipe == "before")
                lines.append(line(graph, recipe, found[recipe]))
                print(lines[-1], flush=True)
        if len(found) == 2:
            lines.append(difference(graph, found["now"], found["before"]))
            print(lines[-1], flush=True)
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
