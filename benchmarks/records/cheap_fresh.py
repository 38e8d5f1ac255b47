"""A fresh test of a quick look's estimate: tables that it was not learned from. Writes cheap_fresh.md beside itself.

Run: GLASSHOUSE_DATA=… python benchmarks/records/cheap_fresh.py [--kept FOLDER]. The tables are those of
`cheap_tables.TRIED`. What eight shadow models find is the figure of the verdict's attack, as in cheap.py.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from glasshouse import Evidence
from glasshouse.evaluation.intervals import clopper_pearson
from glasshouse.evaluation.quick_estimate import FEW_MODELS, quick_estimate_of

sys.path.insert(0, str(Path(__file__).parent))

from cheap_problems import Case, kept_cases, unseen_problems


class Try(NamedTuple):
    """One target: what eight shadow models found, and the estimate's intervals from ``models`` of them."""

    table: str
    trainer: str
    models: int
    auc: float
    auc_interval: tuple[float, float]
    tpr: float
    tpr_interval: tuple[float, float]

    @property
    def held(self) -> tuple[bool, bool]:
        """Whether the intervals hold the AUC and the TPR."""
        low, high = self.auc_interval
        least, most = self.tpr_interval
        return low <= self.auc <= high, least <= self.tpr <= most


def tries(cases: Sequence[Case]) -> Iterator[Try]:
    """The estimates from no shadow model and from one; those that are withheld are left out."""
    for case in cases:
        for models in range(FEW_MODELS):
            pool: dict[str, Any] = (
                {"shadow_loss": case.reference[None], "shadow_members": ~case.members[None]} if models else {}
            )
            found = quick_estimate_of(Evidence(target_loss=case.loss, **pool), case.members)
            if found is not None:
                (low, high), (least, most) = found.auc_interval, found.tpr_interval
                yield Try(case.source, case.trainer, models, case.auc, (low, high), case.tpr, (least, most))


def page(found: Sequence[Try]) -> list[str]:
    """The page, line by line."""
    held = np.array([one.held for one in found])
    area, rate = (int(count) for count in held.sum(axis=0))
    names = sorted({one.table for one in found})
    ends = np.array([(*one.auc_interval, *one.tpr_interval) for one in found])  # [tries, 4]
    widths = np.median(ends[:, [1, 3]] - ends[:, [0, 2]], axis=0)
    lines = [
        "# The estimate of a quick look, on fresh tables",
        "",
        "`python benchmarks/records/cheap_fresh.py`. Tables that neither the line nor the interval was learned "
        "from, and on",
        "which nothing was chosen: features of GitHub's developers, functions and lines of Python's own library,",
        "patients with diabetes, squares of two photographs, and a made-up one (`cheap_tables.py`). What eight shadow",
        "models found, and the 90 % intervals from no shadow model and from one.",
        "",
        f"The interval held the AUC of {area} of {len(held)} and the TPR of {rate} of {len(held)}.",
        "",
        f"If all were independent, the 95 % intervals of these shares would be {_share(area, len(held))} and "
        f"{_share(rate, len(held))}.",
        f"They are not: there are {len(names)} tables, and targets of one table are held or missed together.",
        f"The intervals are wide: their median width is {widths[0]:.2f} (AUC) and {100 * widths[1]:.0f} points (TPR).",
        "",
        "| table | AUC held | TPR held |",
        "| --- | --- | --- |",
    ]
    for name in names:
        rows = np.array([one.held for one in found if one.table == name])
        lines.append(f"| {name} | {rows[:, 0].sum()} of {len(rows)} | {rows[:, 1].sum()} of {len(rows)} |")
    lines += [
        "",
        "| table | model | from | AUC | interval | TPR at 1 % | interval |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in found:
        first, second = ("" if inside else " (outside)" for inside in one.held)
        lines.append(
            f"| {one.table} | {one.trainer} | {one.models} | {one.auc:.3f}{first} | {one.auc_interval[0]:.3f} to "
            f"{one.auc_interval[1]:.3f} | {100 * one.tpr:.1f} %{second} | {100 * one.tpr_interval[0]:.1f} to "
            f"{100 * one.tpr_interval[1]:.1f} % |"
        )
    return lines


def _share(successes: int, trials: int) -> str:
    low, high = clopper_pearson(successes, trials)
    return f"{100 * low:.0f} to {100 * high:.0f} %"


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kept", type=Path, default=Path(tempfile.gettempdir()) / "glasshouse-cheap")
    kept = parser.parse_args().kept
    torch.set_num_threads(1)
    cases = [one for source, trainer in unseen_problems() for one in kept_cases(source, trainer, kept)]
    lines = page(list(tries(cases)))
    print("\n".join(lines))
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
