"""Several targets in one audit: what holds for a way to train, and not only for one model."""

from __future__ import annotations

import contextlib
import importlib.util
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from glasshouse.auditing.call import audit
from glasshouse.auditing.options import Attacker, documented
from glasshouse.auditing.result import AuditResult
from glasshouse.core.errors import InputError, raise_faults
from glasshouse.core.progress import note_work
from glasshouse.core.randomness import seed_for
from glasshouse.core.table import Table
from glasshouse.data import Population, as_population, random_subsets
from glasshouse.evaluation import AcrossTargets, Metrics, across_targets
from glasshouse.io.files import check_free, is_free, new_folder, write_file
from glasshouse.report.format import table_of
from glasshouse.report.policy import Policy
from glasshouse.training.sklearn import as_trainer
from glasshouse.training.trainer import Trainer


@dataclass(frozen=True, eq=False, repr=False)
class SeveralTargets:
    """The outcome of an audit of several targets.

    Args:
        results: one for each target.
        confidence: of the intervals over targets.
    """

    results: tuple[AuditResult, ...]
    confidence: float = 0.95

    def figures(self) -> dict[str, dict[str, AcrossTargets]]:
        """By attack: AUC, balanced accuracy and TPRs over the targets that the attack has an outcome for."""
        found: dict[str, list[Metrics]] = {}
        for result in self.results:
            for name, outcome in result.outcomes.items():
                found.setdefault(name, []).extend([] if outcome.metrics is None else [outcome.metrics])
        return {name: dict(across_targets(metrics, confidence=self.confidence)) for name, metrics in found.items()}

    def table(self) -> Table:
        """One row per attack: mean over targets, and the ends of its interval, of AUC and of TPR at each FPR."""
        rows = []
        for name, figures in self.figures().items():
            row: dict[str, Any] = {"attack": name, "targets": figures["auc"].targets}
            for key, figure in figures.items():
                row |= {key: figure.mean, f"{key}_interval": figure.interval}
            rows.append(row)
        return table_of(rows)

    def __repr__(self) -> str:
        return f"SeveralTargets({len(self.results)} targets, the first: {self.results[0]!r})"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def save(self, folder: Path | str, *, overwrite: bool = False, policy: Policy | None = None) -> Path:
        """Write ``table.csv``, and the run of each target in a folder of its own, ``target-1`` and so on.

        Args:
            folder: where to write them.
            overwrite: replace the earlier runs there, one after the other; a folder with anything else is refused.
            policy: that rates each run in its report; Glasshouse's usual one by default.
        """
        folder = Path(folder)
        runs = {f"target-{number}": result for number, result in enumerate(self.results, start=1)}
        replaced = overwrite and not is_free(folder)
        if replaced:
            there = sorted(folder.iterdir()) if folder.is_dir() else [folder]
            strange = [path for path in there if path == folder or path.name not in ("table.csv", *runs)]
            raise_faults([f"{path}: would not be replaced. Choose another folder, or delete it." for path in strange])
            for name in runs:
                check_free(folder / name, overwrite=True)
        with contextlib.nullcontext(folder) if replaced else new_folder(folder) as place:
            for name, result in runs.items():
                result.save(place / name, overwrite=True, policy=policy)
            write_file(place / "table.csv", self.table().to_csv())
        return folder


@documented
def audit_targets(
    data: Any,
    *,
    trainer: Trainer | Any,
    targets: int = 5,
    confidence: float = 0.95,
    attacker: Attacker = Attacker(),
    pool: Path | str | None = None,
    seed: int = 0,
    **options: Any,
) -> SeveralTargets:
    """Train several targets on random members, audit each, and give means with intervals over targets.

    The interval of one audit covers which records were drawn for one given model. Another model, trained in the same
    way on other members, differs by more. The shadow models are trained once, and attack every target.

    Args:
        data: a `Population` for `glasshouse.audit`, or a graph for `glasshouse.graph.audit`.
        trainer: ``(data, members, seed) -> model``, or an estimator, for targets and shadow models.
        targets: how many; two or more.
        confidence: of the intervals over targets (Student's t).
        attacker: what the attacker knows; a target is trained on the same share of the records as a shadow model.
        pool: the shadow pool's folder; by default a temporary one. On a graph, a trainer of your own therefore needs a
            method ``restore``.
        options: of `glasshouse.audit` or `glasshouse.graph.audit`, but not ``model`` and ``members``.

    Example:
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from glasshouse import SklearnTrainer
        >>> rng = np.random.default_rng(0)
        >>> population = Population(rng.normal(size=(200, 3)), rng.integers(2, size=200))
        >>> trainer = SklearnTrainer(estimator=DecisionTreeClassifier())
        >>> found = audit_targets(population, trainer=trainer, targets=3, attacks=["base"], shadows=4)
        >>> row = next(found.table().rows())
        >>> row["targets"], row["auc_low"] < row["auc"] < row["auc_high"]
        (3, True)
    """
    if targets < 2:
        raise InputError(f"targets: {targets} given; an interval over targets needs two or more.")
    if given := sorted({"model", "members"} & options.keys()):
        raise InputError(f"{given[0]}: every target is trained here on its own random members; leave it out.")
    trainer = as_trainer(trainer)
    run = audit_of(data)
    count, units = len(as_population(data)), getattr(data, "unit", None)
    masks = random_subsets(count, models=targets, fraction=attacker.fraction, seed=seed, units=units)
    results = []
    with tempfile.TemporaryDirectory() if pool is None else contextlib.nullcontext(pool) as folder:
        for number, members in enumerate(masks):
            note_work(f"Target {number + 1} of {targets} was being trained.")
            model = trainer(data, members, seed_for(seed, "target", number))
            common = {"trainer": trainer, "attacker": attacker, "pool": folder, "seed": seed}
            results.append(run(data, model=model, members=members, **common, **options))
    return SeveralTargets(tuple(results), confidence)


def audit_of(data: Any, *, edges: bool = False) -> Callable[..., AuditResult]:
    """The audit for this kind of data, of a graph's nodes or its ``edges``.

    Without the extra ``graph`` it is that of records, which says what it takes.
    """
    if isinstance(data, Population) or importlib.util.find_spec("torch_geometric") is None:
        return audit
    # an optional extra, and a later room
    return cast(
        "Callable[..., AuditResult]",
        getattr(importlib.import_module("glasshouse.graph"), "audit_edges" if edges else "audit"),
    )
