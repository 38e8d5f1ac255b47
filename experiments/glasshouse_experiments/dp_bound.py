"""What an ε guarantees and what an attack finds: the paper's bound on the posterior, and models trained with DP-SGD."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scipy.special import expit

from glasshouse import AuditResult, Evaluation, PrivateTrainer, TorchTrainer, audit
from glasshouse.attacks import BASE
from glasshouse.core.randomness import seed_for
from glasshouse.core.registry import Registry
from glasshouse.data import random_subsets
from glasshouse.data.named import Dataset, digits
from glasshouse.training import Trainer, mlp
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.experiment import experiment
from glasshouse_experiments.settings import Preset

__all__ = ["PrivateBench", "PrivateSetting", "dp_bound"]

BUDGETS = (1.0, 4.0, 16.0, float("inf"))
DELTA = 1e-5


@dataclass(frozen=True, kw_only=True)
class PrivateSetting:
    """Data whose models are trained once for each privacy budget."""

    paper_name: str
    load: Callable[[], Dataset]
    epochs: int
    note: str


PRIVATE: Registry[PrivateSetting] = Registry("a data set with private training")
PRIVATE.add(
    "digits",
    PrivateSetting(
        paper_name="Digits",
        load=digits,
        epochs=40,
        note="The paper derives the bound and measures nothing; these models are ours.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class PrivateBench:
    """A setting under a preset, with a pool of shadow models for every budget."""

    setting: PrivateSetting
    preset: Preset
    folder: Path
    seed: int = 0
    progress: bool | None = None

    @property
    def note(self) -> str:
        """What differs from the paper, written next to the figures."""
        return self.setting.note

    def trainer(self, epsilon: float, inputs: int, classes: int) -> Trainer:
        """DP-SGD for a budget; plain training if it is infinite."""
        module = mlp(inputs, classes, hidden=(256,))
        epochs = max(1, round(self.setting.epochs * self.preset.epochs))
        if epsilon == float("inf"):
            return TorchTrainer(module=module, epochs=epochs)
        return PrivateTrainer(module=module, epsilon=epsilon, delta=DELTA, epochs=epochs)


@experiment("dp-bound", settings=PRIVATE, bench=PrivateBench)
def dp_bound(bench: PrivateBench) -> list[Cell]:
    """For each ε the bound σ(ε) on a Bayes-optimal posterior, BASE's largest, the ε it proves, and the accuracy."""
    population = bench.setting.load().population
    members = random_subsets(
        len(population), models=bench.preset.targets, fraction=0.5, seed=seed_for(bench.seed, "targets")
    )
    cells = []
    for epsilon in BUDGETS:
        trainer = bench.trainer(epsilon, population.x.shape[1], len(population.classes))
        store = bench.folder / f"{bench.setting.paper_name.lower()}-epsilon-{epsilon:g}-{bench.preset.epochs:g}"
        found: dict[str, list[float]] = {}
        for number, who in enumerate(members):
            target = trainer(population, who, seed_for(bench.seed, "targets", number))
            result = audit(
                population,
                model=target,
                members=who,
                trainer=trainer,
                attacks=[BASE()],
                evaluation=Evaluation(fprs=[0.01]),
                pool=store,
                seed=bench.seed,
                progress=bench.progress,
            )
            for metric, value in _figures(result, epsilon).items():
                found.setdefault(metric, []).append(value)
        name = ("dp-bound", bench.setting.paper_name, "online", "8", f"epsilon={epsilon:g}", "BASE")
        cells += [Cell(*name, metric, tuple(values)) for metric, values in found.items()]
    return cells


def _figures(result: AuditResult, epsilon: float) -> dict[str, float]:
    row = next(result.table().rows())
    base = result.outcomes["base"]
    # the paper's definition; the table of an audit has an estimate
    found = float("nan") if base.metrics is None else base.metrics.rates[0].tpr
    return {
        "posterior_bound_pct": 100 * float(expit(epsilon)),
        "largest_posterior_pct": 100 * float(base.scores.max()),
        "proven_epsilon": 0.0 if result.privacy is None else result.privacy.epsilon,
        "auc_pct": 100 * float(row["auc"]),
        "tpr_at_fpr1_pct": 100 * found,
        "test_accuracy_pct": 100 * float(result.context.test_accuracy or 0.0),
    }
