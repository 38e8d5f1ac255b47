"""What the manual says about the paper's figures, made from ``results/``: tables between marks, and sentences.

``python -m glasshouse_experiments.claims`` writes the tables into docs/reproduction.md and docs/authors.md again. A
test compares them, and finds every sentence of `sentences` on its page.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from glasshouse import InputError
from glasshouse.io.files import write_file
from glasshouse_experiments.authors import MARK
from glasshouse_experiments.causes import CAUSES, cause_of
from glasshouse_experiments.counting import TREE, counts_table, run_cells
from glasshouse_experiments.fidelity import fidelity_table, kept_rows
from glasshouse_experiments.roc import FIGURES, ROC_SETTINGS, ends_of
from glasshouse_experiments.roc_picture import METRIC

__all__ = ["BLOCKS", "page_with", "sentences", "written"]

DOCS = TREE / "docs"
RESULTS = TREE / "results"
_MARKS = "<!-- {}: written by python -m glasshouse_experiments.claims -->", "<!-- end of {} -->"
_SHOWN = {"cora-mismatched": "Cora, mismatched", "github-many": "GitHub, K = 128 and 64"}


def rows_of(name: str, results: Path = RESULTS) -> list[dict[str, Any]]:
    """The rows of ``NAME.csv``; none if the experiment was not run."""
    path = results / f"{name}.csv"
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())) if path.is_file() else []


def _figure(row: dict[str, Any], digits: int) -> str:
    return f"{float(row['mean']):.{digits}f} ± {float(row['std']):.{digits}f}"


def _printed(row: dict[str, Any], digits: int) -> str:
    return f"{float(row['paper_mean']):.{digits}f} ± {float(row['paper_std']):.{digits}f}"


def _digits(row: dict[str, Any]) -> int:
    return 4 if row["metric"].startswith("threshold") else 2


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def authors_table(results: Path) -> str:
    """Cells as the authors' program computes them, beside ours and the printed ones."""

    def rows() -> Iterator[tuple[str, ...]]:
        ours = {_place(row): row for row in run_cells(results)}
        for row in rows_of("authors", results):
            if row["setting"] == MARK and (same := ours.get(_place(row))):
                name = f"{row['dataset']}, {row['mode']}, K = {row['K']}, {row['attack']}, {_metric(row['metric'])}"
                digits = _digits(row)
                told = (_figure(same, digits), _figure(row, digits), _printed(row, digits), row["verdict"])
                yield name, *told

    return _table(("cell", "ours", "as their program", "printed", "their form"), rows())


def _metric(name: str) -> str:
    """A figure's name as a reader says it.

    Example:
        >>> _metric("threshold_at_fpr0.1"), _metric("tpr_at_beta0.9_pct"), _metric("auc_pct")
        ('threshold at FPR 0.1 %', 'TPR at β = 0.9', 'AUC')
    """
    plain = name.removesuffix("_pct").replace("_at_fpr", " at FPR ").replace("_at_beta", " at β = ")
    plain = plain.replace("auc", "AUC").replace("tpr", "TPR").replace("fpr at β", "FPR at β")
    return f"{plain} %" if "FPR 0.1" in plain or "FPR 1" in plain else plain


def _place(row: dict[str, Any]) -> tuple[str, ...]:
    return (row["table"], row["dataset"].lower(), row["mode"], row["K"], row["attack"], row["metric"])


def open_table(results: Path) -> str:
    """The cells that lie outside and have no cause."""

    def rows() -> Iterator[tuple[str, ...]]:
        for row in run_cells(results):
            if row["verdict"] != "within 2 sd" and cause_of(row) is None:
                name = ", ".join(
                    filter(None, (row["dataset"], row["mode"], row["K"] and f"K = {row['K']}", row["attack"]))
                )
                digits = 4 if row["metric"].startswith("threshold") or row["metric"] == "seconds" else 2
                spread = float(row["difference_sd"])
                printed = f"{float(row['paper_mean']):.{digits}f}"
                apart = f"{spread:+.1f}" if spread == spread else "–"
                yield name, _metric(row["metric"]), f"{float(row['mean']):.{digits}f}", printed, apart

    return _table(("cell", "figure", "ours", "printed", "difference in sd"), rows())


def causes_table(results: Path) -> str:
    """How many cells each cause covers."""
    outside = [row for row in run_cells(results) if row["verdict"] != "within 2 sd"]
    covered = [cause_of(row) for row in outside]
    counted = ((cause.why, str(sum(one is cause for one in covered))) for cause in CAUSES)
    return _table(("cause", "cells"), counted)


def ends_table(results: Path) -> str:
    """The ROC figures' points at 1 % and 0.1 %, ours and printed."""

    def rows() -> Iterator[tuple[str, ...]]:
        for name, figure in FIGURES.items():
            title = ROC_SETTINGS.find(name).paper_name
            some = [row for row in rows_of("roc", results) if row["dataset"] == title]
            for row in some:
                rate = float(row["metric"].removeprefix(METRIC))
                for end in ends_of(figure, row):
                    if end.fpr == rate:
                        curve = f"{_SHOWN.get(name, title)}: {row['attack']}, {row['mode']}"
                        printed = f"{100 * end.tpr:.2f} ± {100 * end.std:.2f}"
                        yield curve, f"{100 * rate:g} %", _figure(row, 2), printed

    return _table(("curve", "FPR", "TPR, ours", "TPR, printed or of May 2025"), rows())


def tempered_table(results: Path) -> str:
    """What a temperature, and an estimate of Λ beside it, bring online; from the benchmark beside the results."""
    known = json.loads((results.parent / "benchmarks" / "paper" / "tempered.json").read_text(encoding="utf-8"))
    aims = ("AUC", "TPR at 1 %")

    def rows() -> Iterator[tuple[str, ...]]:
        for found in known.values():
            some = [row for row in found if row["tuned for"] == "AUC" and row["mode"] == "online"]
            for attack in dict.fromkeys(row["attack"] for row in some):
                plain, with_ratio = (row for row in some if row["attack"] == attack)
                told = [f"{plain[aim]:.1f}" for aim in aims]
                for row in (plain, with_ratio):
                    told += [f"{row[f'gain in {aim}']:+.1f} ± {row[f'se {aim}']:.1f}" for aim in aims]
                yield plain["data set"], attack, *told

    head = ("graph", "attack", *aims, "with T: AUC", "TPR", "with T and Λ: AUC", "TPR")
    return _table(head, rows())


def page_table(name: str) -> Callable[[Path], str]:
    """The tables of a page under ``benchmarks/paper``, with the headings above them."""

    def of(results: Path) -> str:
        lines = (results.parent / "benchmarks" / "paper" / name).read_text(encoding="utf-8").splitlines()
        kept = [f"**{line.lstrip('# ')}**" if line.startswith("## ") else line for line in lines[1:]]
        return "\n".join(kept).strip()

    return of


BLOCKS: dict[str, tuple[str, Callable[[Path], str]]] = {
    "counts": ("reproduction.md", counts_table),
    "fidelity": ("reproduction.md", lambda results: fidelity_table(kept_rows(results / "fidelity.csv"))),
    "causes": ("reproduction.md", causes_table),
    "open cells": ("reproduction.md", open_table),
    "end points": ("reproduction.md", ends_table),
    "range": ("reproduction.md", page_table("mismatch_range.md")),
    "enumeration": ("reproduction.md", page_table("theorem_1.md")),
    "tempered": ("reproduction.md", tempered_table),
    "authors": ("authors.md", authors_table),
}


def page_with(page: str, name: str, text: str) -> str:
    """The page with this text between the marks of a block.

    Example:
        >>> page_with(" old ".join(mark.format("counts") for mark in _MARKS), "counts", "new").count("new")
        1
    """
    opening, closing = (mark.format(name) for mark in _MARKS)
    before, begin, rest = page.partition(opening)
    _, end, after = rest.partition(closing)
    if not begin or not end:
        raise InputError(f"the marks of the table are missing from the page: {opening} and {closing}.")
    return f"{before}{opening}\n\n{text}\n\n{closing}{after}"


def written(results: Path = RESULTS) -> dict[str, str]:
    """The pages by name, with every block as it follows from the results."""
    pages = {page: (DOCS / page).read_text(encoding="utf-8") for page, _ in BLOCKS.values()}
    for name, (page, text) in BLOCKS.items():
        pages[page] = page_with(pages[page], name, text(results))
    return pages


def sentences(results: Path = RESULTS) -> dict[str, list[str]]:
    """Figures in running text that a page must hold, word for word, as they follow from the results."""
    cells = {_place(row): row for row in run_cells(results)}

    def mean(table: str, dataset: str, mode: str, count: str, attack: str, metric: str, digits: int) -> str:
        return f"{float(cells[table, dataset, mode, count, attack, metric]['mean']):.{digits}f}"

    beta = [
        tuple(
            mean("rmia_fixed_beta_graph", name, "online", "256", "RMIA", f"{rate}_at_beta0.9_pct", 1)
            for rate in ("tpr", "fpr")
        )
        for name in ("cora", "citeseer")
    ]
    shift = [mean("model-distr-shift", "cora", "online", "8", "G-BASE (MIA)", "auc_pct", 1)]
    shift.append(mean("model-distr-shift", "cora", "offline", "4", "G-BASE (MIA)", "auc_pct", 1))
    many = [row for row in cells.values() if row["metric"].startswith(("auc", "tpr_at_fpr"))]
    inside = sum(row["verdict"] == "within 2 sd" for row in many)
    found = [
        f"Of AUC and TPR cells that were run, {100 * inside / len(many):.1f} % agree",
        f"on Cora {beta[0][0]} % + {beta[0][1]} %, on CiteSeer {beta[1][0]} % + {beta[1][1]} %",
        f"G-BASE's AUC on Cora is now {shift[0]} online and {shift[1]} offline",
    ]
    return {"reproduction.md": found}


def main() -> None:
    """Write the pages."""
    for page, text in written().items():
        write_file(DOCS / page, text)


if __name__ == "__main__":
    main()
