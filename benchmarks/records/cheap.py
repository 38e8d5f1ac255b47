"""The cheap tier against eight shadow models: its figures, its cost, and how often its estimate holds.

Run: python benchmarks/records/cheap.py [--kept FOLDER] [--learn]. Writes cheap.md beside itself. ``--kept`` keeps the
audits of the small problems, which take most of the time; ``--learn`` only learns from them and prints the numbers for
``src/glasshouse/evaluation/quick_estimate.py``.
"""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn.ensemble import RandomForestClassifier

from glasshouse import (
    Attacker,
    Evaluation,
    LossTrace,
    Population,
    SklearnTrainer,
    TorchTrainer,
    audit,
    digits,
    mlp,
    random_subsets,
)
from glasshouse.auditing.result import AuditResult
from glasshouse.core.randomness import seed_for
from glasshouse.data.named import adult, cifar10
from glasshouse.evaluation import quick_estimate
from glasshouse.evaluation.quick_estimate import FEW_MODELS, QuickEstimate, Table, quick_estimate_of
from glasshouse.evaluation.thresholds import rate_with_ties
from glasshouse.training import cnn
from glasshouse.training.trainer import Trainer

sys.path.insert(0, str(Path(__file__).parent))

from cheap_learning import learned_table, tested, usual_misses
from cheap_problems import FPR, Case, family, kept_cases, known_problems

_TOP = 0.05  # of the members, by what their owner can know for free
_PUBLIC = 0.5


# --- three data sets, measured in full


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A data set, a way to train on it, and how many targets."""

    name: str
    data: Callable[[], Population]
    trainer: Callable[[Population], Trainer]
    targets: int
    family: str


def _adult() -> Population:
    whole = adult(records=6000).population
    return Population(whole.x.astype(np.float32), whole.y)


def _perceptron(population: Population, *, epochs: int) -> Trainer:
    module = mlp(int(np.prod(population.x.shape[1:])), len(population.classes), hidden=(128,))
    return TorchTrainer(module=module, epochs=epochs, batch_size=64, device="cpu")


def _images(population: Population) -> Trainer:
    optimizer = functools.partial(torch.optim.Adam, lr=3e-3)
    module = cnn(3, 10, widths=(8, 16, 32))
    return TorchTrainer(module=module, optimizer=optimizer, epochs=12, batch_size=64, device="cpu")


SETTINGS: Sequence[Setting] = (
    Setting(
        name="digits (1 797, 10 % wrong labels), perceptron, 60 epochs",
        data=lambda: digits().population,
        trainer=functools.partial(_perceptron, epochs=60),
        targets=2,
        family="digits",
    ),
    Setting(
        name="Adult (6 000 records), perceptron, 40 epochs",
        data=_adult,
        trainer=functools.partial(_perceptron, epochs=40),
        targets=2,
        family="adult",
    ),
    Setting(
        name="Adult (6 000 records), forest of 50 trees",
        data=_adult,
        trainer=lambda _: SklearnTrainer(estimator=RandomForestClassifier(50)),
        targets=2,
        family="adult",
    ),
    Setting(
        name="CIFAR-10 (5 000 images), small CNN, 12 epochs",
        data=lambda: cifar10(records=5000).population,
        trainer=_images,
        targets=2,
        family="cifar10",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one target shows.

    Args:
        figures: AUC and TPR at 1 % FPR by attack, of audits with 0, 1 and 8 shadow models.
        seconds: processor seconds of each audit, shadow models included, the target's training not.
        strongest: the strongest attack with eight shadow models.
        estimates: from 0 and from 1 model, learned without the family of this data; None if it is too unlike.
        rankings: share of the members found with eight shadow models among the first 5 % by LT-IQR, by the fall of the
            loss, and among all members; empty without a trace.
    """

    figures: Mapping[str, tuple[float, float]]
    seconds: Mapping[int, float]
    strongest: str
    estimates: Mapping[int, QuickEstimate | None]
    rankings: Mapping[str, float]


def measure(setting: Setting, tables: Mapping[int, Table], *, targets: int | None = None) -> list[Found]:
    """Every audit of every target of a setting; the eight shadow models serve all targets and are timed once."""
    population = setting.data()
    trainer = setting.trainer(population)
    masks = random_subsets(len(population), models=targets or setting.targets, fraction=0.5, seed=7)
    found: list[Found] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, members in enumerate(masks):
            trace = LossTrace(population) if isinstance(trainer, TorchTrainer) else None
            extra = {} if trace is None else {"after_epoch": trace.record}
            model = trainer(population, members, seed_for(7, "target", number), **extra)
            given = {"model": model, "members": members, "seed": 7, "progress": False}
            given["evaluation"] = Evaluation(fprs=[FPR])
            figures: dict[str, tuple[float, float]] = {}
            seconds: dict[int, float] = {}
            results: dict[int, AuditResult] = {}
            for models in (0, 1, 8):
                began = time.process_time()
                more = {"attacker": Attacker(trace=trace)} if models == 0 else {"trainer": trainer}
                place = Path(folder) / str(models) if models == 8 else None
                results[models] = audit(population, shadows=models, pool=place, **more, **given)
                seconds[models] = time.process_time() - began
                figures |= {f"{models} {name}": pair for name, pair in _figures(results[models]).items()}
            public = audit(
                population, shadows=0, attacker=Attacker(public=_PUBLIC), attacks=["public-quantile", "loss"], **given
            )
            figures |= {f"public {name}": pair for name, pair in _figures(public).items()}
            if found:  # the pool was trained for the first target
                seconds[8] = found[0].seconds[8]
            assert results[8].verdict_attack is not None
            strongest = results[8].verdict_attack.attack
            found.append(
                Found(
                    figures=figures,
                    seconds=seconds,
                    strongest=strongest,
                    estimates={k: quick_estimate_of(results[k].evidence, members, tables=tables) for k in (0, 1)},
                    rankings={} if trace is None else _rankings(results[8], strongest, trace),
                )
            )
    return found


def _figures(result: AuditResult) -> dict[str, tuple[float, float]]:
    assert result.members is not None
    return {
        name: (one.metrics.auc, rate_with_ties(one.scores, result.members, FPR)[0])
        for name, one in result.outcomes.items()
        if one.metrics is not None
    }


def _rankings(result: AuditResult, strongest: str, trace: LossTrace) -> dict[str, float]:
    """Among the first members by what their owner can know for free: the share that eight shadow models find."""
    assert result.members is not None
    members, scores = result.members, result.outcomes[strongest].scores
    found = scores > np.quantile(scores[~members], 1 - FPR, method="higher")
    many = max(1, round(_TOP * int(members.sum())))
    shares = {"all members": float(found[members].mean())}
    for name, order in {"LT-IQR": trace.ranges(), "fall of the loss": trace.falls()}.items():
        first = np.argsort(-order[members], kind="stable")[:many]
        shares[f"first 5 % by {name}"] = float(found[members][first].mean())
    return shares


# --- the page


def page(cases: Sequence[Case], measured: Mapping[str, Sequence[Found]]) -> str:
    """cheap.md."""
    return "\n".join([*_opening(), *_measured(measured), *_tests(cases)]) + "\n"


def _opening() -> list[str]:
    return [
        "# The cheap tier against eight shadow models",
        "",
        "`python benchmarks/records/cheap.py`; one thread. Figures are means over the targets of a row. "
        "Seconds are processor",
        "seconds of a whole audit, with the shadow models and without the training of the target; the ratio is to the",
        "audit with eight shadow models in the same run. `public-quantile` sets half of the non-members aside to learn",
        "from, and is judged on the rest (the loss on the same rest is beside it). `trace` uses losses from the",
        "training run, which no attacker has.",
        "",
    ]


def _measured(measured: Mapping[str, Sequence[Found]]) -> list[str]:
    lines = []
    for name, found in measured.items():
        lines += [f"## {name}", "", "| attack | shadow models | AUC | TPR at 1 % FPR |", "| --- | --- | --- | --- |"]
        for key in found[0].figures:
            models, attack = key.split(" ")
            count = "0, half of the non-members public" if models == "public" else models
            strongest = " (strongest)" if models == "8" and attack == found[0].strongest else ""
            areas, rates = zip(*(one.figures[key] for one in found), strict=True)
            lines.append(f"| {attack}{strongest} | {count} | {np.mean(areas):.3f} | {100 * np.mean(rates):.1f} % |")
        cost = {models: float(np.mean([one.seconds[models] for one in found])) for models in (0, 1, 8)}
        spent = "; ".join(f"{m} models: {s:.1f} s (1 : {cost[8] / s:.0f})" for m, s in cost.items())
        lines += ["", f"Cost: {spent}.", ""]
        lines += [*_estimates(found), *_ranked(found)]
    return lines


def _estimates(found: Sequence[Found]) -> list[str]:
    lines = [
        "| target | estimate from | AUC: estimate, interval | found with 8 | TPR: estimate, interval | found with 8 |"
    ]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for number, one in enumerate(found, start=1):
        area, rate = one.figures[f"8 {one.strongest}"]
        for models, estimate in one.estimates.items():
            if estimate is None:
                lines.append(f"| {number} | {models} models | none: unlike all that is known | {area:.3f} | | |")
                continue
            (low, high), (least, most) = estimate.auc_interval, estimate.tpr_interval
            first, second = _mark(low <= area <= high), _mark(least <= rate <= most)
            lines.append(
                f"| {number} | {models} models | {estimate.auc:.3f}, {low:.3f} to {high:.3f} | {area:.3f}{first} | "
                f"{100 * estimate.tpr:.1f} %, {100 * least:.1f} to {100 * most:.1f} % | {100 * rate:.1f} %{second} |"
            )
    return [*lines, ""]


def _mark(held: bool) -> str:
    return "" if held else " (outside)"


def _ranked(found: Sequence[Found]) -> list[str]:
    if not found[0].rankings:
        return []
    parts = [f"{key} {100 * np.mean([one.rankings[key] for one in found]):.0f} %" for key in found[0].rankings]
    return [f"Members that the strongest attack with eight shadow models finds at 1 % FPR: {', '.join(parts)}.", ""]


def _tests(cases: Sequence[Case]) -> list[str]:
    lines = [
        "## How often the estimate's interval holds",
        "",
        f"{len(cases)} targets of {len({(one.source, one.trainer) for one in cases})} problems: "
        f"{len({one.source for one in cases})} sources of data (networks, forests, trees, boosting, regressions, naive",
        "Bayes; 569 to 4 000 records, half of them members). A whole family of sources is left out, the line and the",
        f"{100 * quick_estimate.LEVEL:g} % interval are learned from the others, and the family's targets are tried.",
        "",
    ]
    for models in range(FEW_MODELS):
        table, (area, rate) = learned_table(cases, models), usual_misses(cases, models)
        lines += [
            f"### From {'one reference model' if models else 'no shadow model'}",
            "",
            f"The AUC was held for {100 * table.auc.held:.0f} % of the targets, the TPR for "
            f"{100 * table.tpr.held:.0f} %. Half of the estimates miss by less than {area:.3f} (AUC) and "
            f"{100 * rate:.1f} points (TPR).",
            "",
            "| left out | AUC held | TPR held |",
            "| --- | --- | --- |",
            *tested(cases, models),
            "",
        ]
    return lines


def main() -> None:
    """Learn, measure and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kept", type=Path, default=Path(tempfile.gettempdir()) / "glasshouse-cheap")
    parser.add_argument("--learn", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    cases = [one for source, trainer in known_problems() for one in kept_cases(source, trainer, options.kept)]
    if options.learn:
        for models in range(FEW_MODELS):
            print(f"    {models}: {learned_table(cases, models)},")
        return
    measured = {}
    for setting in SETTINGS:
        others = [one for one in cases if family(one.source) != setting.family]
        tables = {models: learned_table(others, models) for models in range(FEW_MODELS)}
        measured[setting.name] = measure(setting, tables)
        print(f"{setting.name}: done", flush=True)
    Path(__file__).with_suffix(".md").write_text(page(cases, measured), encoding="utf-8")


if __name__ == "__main__":
    main()
