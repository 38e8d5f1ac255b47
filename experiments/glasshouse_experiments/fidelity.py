"""How true to the paper's setting each cell was run, and how many agree by two measures; and authors against authors.

``python -m glasshouse_experiments.fidelity`` counts, and writes ``results/fidelity.csv``. With ``--authors FILE`` it
also compares the authors' run of May 2025 with their own print; without, that row stays as it was counted before.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scipy.stats import t as student

from glasshouse.io.files import write_file
from glasshouse_experiments.cells import printed_cell
from glasshouse_experiments.counting import TREE, run_cells

__all__ = ["AUTHORS", "KINDS", "Agreement", "agreement", "fidelity_of", "fidelity_rows", "fidelity_table", "p_value"]

FILE = TREE / "results" / "fidelity.csv"
AUTHORS = "the authors' run of May 2025 against their own print"
KINDS = (
    "exactly the paper's setting",
    "other data (GitHub's features)",
    "other training (CIFAR-10, the mismatched adversary)",
    "another machine (seconds)",
)
_HEAD = (
    "how true to the paper",
    "cells run",
    "within 2 sd",
    "by Welch's test",
    "within 2 sd of AUC and TPR",
    "by Welch",
)
_TARGETS = 10  # behind every printed mean
_LEVEL = 0.05
_RANKING = "auc", "tpr_at_fpr"


class Agreement(NamedTuple):
    """How many cells were compared, lie within two printed deviations, and do not differ by Welch's test."""

    cells: int
    within: int
    welch: int


def fidelity_of(row: Mapping[str, Any]) -> str:
    """How true to the paper's setting a row of our results is, one of `KINDS`.

    Example:
        >>> fidelity_of({"table": "MIAGNN", "dataset": "Github"})
        "other data (GitHub's features)"
    """
    if row["table"] == "wall-clock-time":
        return KINDS[3]
    if row["dataset"].startswith("CIFAR") or row["table"] == "model-distr-shift":
        return KINDS[2]
    return KINDS[1] if row["dataset"].lower() == "github" else KINDS[0]


def p_value(mean: float, std: float, n: int, printed: float, deviation: float, *, last_digit: float) -> float:
    """Two-sided Welch's test of ours, n targets, against a printed mean and deviation of ten.

    Their program prints deviations with n in the denominator, ours have n - 1. A printed spread of 0 is half of its
    last digit, and rounding adds its own variance.

    Example:
        >>> round(p_value(82.0, 1.0, 10, 83.0, 1.0, last_digit=0.01), 3)
        0.043
    """
    rounding = last_digit**2 / 12
    ours = max(std, last_digit / 2) ** 2 / n
    theirs = max(deviation, last_digit / 2) ** 2 / (_TARGETS - 1) + rounding
    freedom = (ours + theirs) ** 2 / (ours**2 / (n - 1) + theirs**2 / (_TARGETS - 1))
    return float(2 * student.sf(abs(mean - printed) / (ours + theirs) ** 0.5, freedom))


def agreement(rows: Iterable[Mapping[str, Any]]) -> Agreement:
    """The counts of some rows of results."""
    cells = list(rows)
    welch = 0
    for row in cells:
        last_digit = 1e-4 if row["metric"].startswith("threshold") else 0.01
        mean, std, printed, deviation = (float(row[name]) for name in ("mean", "std", "paper_mean", "paper_std"))
        same = p_value(mean, std, int(float(row["n"])), printed, deviation, last_digit=last_digit) >= _LEVEL
        welch += same
    return Agreement(len(cells), sum(row["verdict"] == "within 2 sd" for row in cells), welch)


def fidelity_rows(results: Path) -> list[tuple[str, Agreement, Agreement]]:
    """For each kind: all of its cells, and those of AUC and of TPR at a fixed FPR; seconds have no spread to test."""
    rows = run_cells(results)
    found = []
    for kind in KINDS[:3]:
        some = [row for row in rows if fidelity_of(row) == kind]
        found.append((kind, agreement(some), agreement(row for row in some if row["metric"].startswith(_RANKING))))
    return found


def authors_row(path: Path) -> tuple[str, Agreement, Agreement]:
    """The authors' earlier run, as a CSV with the columns of the paper's cells, against their print."""
    rows = []
    for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        place = (row["table"], row["dataset"], row["mode"], row["K"])
        printed = printed_cell(*place, "", row["attack"], row["metric"])
        if printed is None:
            continue
        mean, deviation = printed
        inside = abs(float(row["mean"]) - mean) <= 2 * max(deviation, 0.005)
        spread = float(row["std"]) * (_TARGETS / (_TARGETS - 1)) ** 0.5
        figures = {"mean": row["mean"], "std": spread, "n": _TARGETS, "paper_mean": mean, "paper_std": deviation}
        rows.append(figures | {"metric": row["metric"], "verdict": "within 2 sd" if inside else "outside"})
    return AUTHORS, agreement(rows), agreement(row for row in rows if row["metric"].startswith(_RANKING))


def kept_rows(path: Path = FILE) -> list[tuple[str, Agreement, Agreement]]:
    """What was counted before."""
    if not path.is_file():
        return []
    rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))[1:]
    return [(row[0], Agreement(*map(int, row[1:4])), Agreement(*map(int, row[4:7]))) for row in rows]


def fidelity_table(rows: Iterable[tuple[str, Agreement, Agreement]]) -> str:
    """The counts as Markdown."""
    lines = [f"| {' | '.join(_HEAD)} |", "|" + " --- |" * len(_HEAD)]
    for kind, whole, ranking in rows:
        told = [str(whole.cells)]
        for some in (whole, ranking):
            told += [f"{count} ({100 * count / max(1, some.cells):.0f} %)" for count in (some.within, some.welch)]
        lines.append(f"| {kind} | {' | '.join(told)} |")
    return "\n".join(lines)


def main() -> None:
    """Count, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--authors", type=Path, help="the authors' run of May 2025, as a CSV")
    options = parser.parse_args()
    theirs = [authors_row(options.authors)] if options.authors else [row for row in kept_rows() if row[0] == AUTHORS]
    names = ("cells", "within 2 sd", "by Welch")
    lines = [",".join(["kind", *names, *(f"{name} (AUC and TPR)" for name in names)])]
    for kind, whole, ranking in fidelity_rows(TREE / "results") + theirs:
        lines.append(",".join([f'"{kind}"', *map(str, (*whole, *ranking))]))
    write_file(FILE, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
