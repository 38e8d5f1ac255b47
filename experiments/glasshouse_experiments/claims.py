"""What the manual says about the paper's figures, made from ``results/``: tables between marks, and sentences.

``python -m glasshouse_experiments.claims`` writes the tables into the pages of `BLOCKS` again. A test compares them,
finds every sentence of `sentences` on its page, and no other figure in running text that a named file does not hold.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from pathlib import Path
from typing import Any

from glasshouse import InputError
from glasshouse.io.files import write_file
from glasshouse_experiments.authors import MARK
from glasshouse_experiments.causes import CAUSES, cause_of
from glasshouse_experiments.clocks import LOOP, OURS
from glasshouse_experiments.counting import TREE, counts_table, run_cells
from glasshouse_experiments.fidelity import fidelity_table, kept_rows
from glasshouse_experiments.rivals import rivals_count
from glasshouse_experiments.roc import FIGURES, ROC_SETTINGS, ends_of
from glasshouse_experiments.roc_picture import METRIC

__all__ = ["BLOCKS", "page_with", "sentences", "unsupported", "written"]

DOCS = TREE / "docs"
RESULTS = TREE / "results"
_MARKS = "<!-- {}: written by python -m glasshouse_experiments.claims -->", "<!-- end of {} -->"


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
                        curve = f"{figure.title or title}: {row['attack']}, {row['mode']}"
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


_RANKS = ("auc_pct", "tpr_at_fpr1_pct", "tpr_at_fpr0.1_pct")
_TOLD = {
    "Cora": "Cora GCN",
    "Citeseer": "CiteSeer GAT",
    "Pubmed": "PubMed GraphSAGE",
    "Amazon-Photo": "Amazon-Photo GAT",
    "Github": "GitHub GraphSAGE",
}


def _three(rows: Iterable[dict[str, Any]], *, mean: str = "mean", std: str = "std", spread: bool = True) -> str:
    """AUC, and TPR at 1 % and 0.1 % FPR, of one attack; a dash where nothing is known."""
    found = {row["metric"]: row for row in rows}

    def one(metric: str) -> str:
        row = found.get(metric)
        if row is None or not isfinite(float(row[mean])):
            return "–"
        return f"{float(row[mean]):.1f} ± {float(row[std]):.1f}" if spread else f"{float(row[mean]):.1f}"

    return " / ".join(map(one, _RANKS))


def _columns(rows: Iterable[dict[str, Any]]) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    """The rows of each data set, mode and K, in their order."""
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["dataset"], row["mode"], row["K"]), []).append(row)
    return found


def rivals_table(name: str, attack: str, *, printed: bool) -> Callable[[Path], str]:
    """Our attack beside the best of the paper's in each column: on the same targets, and as printed."""

    def of(results: Path) -> str:
        def rows() -> Iterator[tuple[str, ...]]:
            for (dataset, mode, count), some in _columns(rows_of(name, results)).items():
                if ours := [row for row in some if row["attack"] == attack]:
                    told = [_three(ours), _three(ours, mean="rival_mean", std="rival_std")]
                    told += [_three(ours, mean="paper_mean", std="paper_std")] if printed else []
                    yield f"{_TOLD.get(dataset, dataset)}, {mode}, K = {count}", *told

        head = ("AUC / TPR at 1 % / at 0.1 % FPR", f"`{attack}`", "the paper's best, same targets")
        return _table((*head, *(("its best printed",) if printed else ())), rows())

    return of


def records_table(results: Path) -> str:
    """Our attack on records beside two others, eight shadow models, online."""

    def rows() -> Iterator[tuple[str, ...]]:
        for (dataset, mode, count), some in _columns(rows_of("beyond", results)).items():
            by = {name: [row for row in some if row["attack"] == name] for name in ("stacked", "BASE", "bavaria")}
            if (mode, count) == ("online", "8") and by["stacked"]:
                yield dataset, *(_three(found, spread=False) for found in by.values())

    return _table(("K = 8, online", "`stacked`", "BASE", "BaVarIA"), rows())


def by_dataset(name: str, key: str, title: str) -> Callable[[Path], str]:
    """One row for each value of a column, one column for each data set; online with eight shadow models."""

    def of(results: Path) -> str:
        some = [row for row in rows_of(name, results) if row["mode"] == "online"]
        datasets = list(dict.fromkeys(row["dataset"] for row in some))

        def rows() -> Iterator[tuple[str, ...]]:
            for value in dict.fromkeys(row[key] for row in some):
                cells = [[row for row in some if (row["dataset"], row[key]) == (one, value)] for one in datasets]
                yield value, *(_three(cell, spread=False) for cell in cells)

        return _table((title, *datasets), rows())

    return of


def clocks_table(results: Path) -> str:
    """G-BASE's seconds online beside the loop over nodes and the paper's."""

    def rows() -> Iterator[tuple[str, ...]]:
        found = rows_of("wall-clock", results)
        loops = {(row["dataset"], row["setting"], row["attack"]): row for row in found if row["metric"] == LOOP}
        for row in found:
            place = (row["dataset"], row["setting"], row["attack"])
            if row["metric"] == OURS and row["mode"] == "online" and place in loops and row["verdict"] != "not printed":
                figures = [float(one) for one in (row["mean"], loops[place]["mean"], row["paper_mean"])]
                name = ", ".join((row["dataset"], row["attack"], row["setting"]))
                yield name, *(f"{one:.2g}" if one < 10 else f"{one:.0f}" for one in figures)

    return _table(("K = 8, online", "ours", "loop over nodes", "paper"), rows())


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
    "clocks": ("reproduction.md", clocks_table),
    "what it gives": ("beyond.md", rivals_table("beyond", "g-stacked", printed=True)),
    "another kind": ("beyond.md", rivals_table("beyond-mismatch", "g-stacked", printed=False)),
    "records": ("beyond.md", records_table),
    "signals": ("beyond.md", by_dataset("ablation", "setting", "one round")),
    "samplers": ("beyond.md", by_dataset("beyond-samplers", "attack", "G-BASE")),
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

    def told(place: tuple[str, ...], digits: int = 1, column: str = "mean") -> str:
        return f"{float(cells[place][column]):.{digits}f}"

    def both(place: tuple[str, ...], digits: int = 1) -> tuple[str, str]:
        return told(place, digits), told(place, digits, "paper_mean")

    beta = [
        both(("rmia_fixed_beta_graph", name, "online", "256", "RMIA", f"{rate}_at_beta0.9_pct"))
        for name in ("cora", "citeseer")
        for rate in ("tpr", "fpr")
    ]
    places = (("online", "8"), ("offline", "4"))
    shift = [both(("model-distr-shift", "cora", *place, "G-BASE (MIA)", "auc_pct")) for place in places]
    drawn = [both(("est-threshold", "cora", *place, "LiRA", "tpr_at_estimated_threshold_pct")) for place in places]
    chains = [
        both(("sampling-strategies", name, "online", "8", "Metropolis-Hastings", "auc_pct"))
        for name in ("cora", "citeseer")
    ]
    images, cycle = (
        {row["metric"]: f"{float(row['mean']):.1f}" for row in rows_of(f"accuracy/{name}", results)}
        for name in ("cifar10", "cifar10-fast")
    )
    area = ("iid", "cifar-10", "online", "8", "BASE", "auc_pct")
    apart = [f"{float(cells[area][name]):.1f}" for name in ("std", "paper_std")]
    base = [both(("thresholds_iid", *area[1:5], "threshold_at_fpr1"), 2)]
    github = both(("accuracy", "github", "", "", "", "train_accuracy_pct"))
    below = [both(("MIAGNN", "cora", *places[0], name, "auc_pct"))[1] for name in ("G-BASE (MIA)", "BASE")]
    citeseer = both(("model-distr-shift", "citeseer", *places[1], "G-BASE (MIA)", "tpr_at_fpr1_pct"))[1]
    many = [row for row in cells.values() if row["metric"].startswith(("auc", "tpr_at_fpr"))]
    inside = sum(row["verdict"] == "within 2 sd" for row in many)
    bound = {
        (row["setting"].partition("=")[2], row["metric"]): float(row["mean"]) for row in rows_of("dp-bound", results)
    }
    largest, allowed, proven = (
        [bound[epsilon, metric] for epsilon in ("1", "4", "16", "inf")]
        for metric in ("largest_posterior_pct", "posterior_bound_pct", "proven_epsilon")
    )
    reproduction = [
        f"Of AUC and TPR cells that were run, {100 * inside / len(many):.1f} % agree",
        f"on Cora {beta[0][0]} % + {beta[1][0]} %, on CiteSeer {beta[2][0]} % + {beta[3][0]} %",
        f"The paper prints {beta[0][1]} % + {beta[1][1]} % and {beta[2][1]} % + {beta[3][1]} %",
        f"G-BASE's AUC on Cora is now {shift[0][0]} online and {shift[1][0]} offline (printed: {shift[0][1]} and "
        f"{shift[1][1]})",
        f"The models of `results/` ({drawn[0][0]} and {drawn[1][0]}) are one such draw",
        f"agree ({chains[0][0]} and {chains[1][0]}; the paper prints {chains[0][1]} and {chains[1][1]})",
        f"its train accuracy ({github[0]} % against {github[1]} %)",
        f"in the paper too (Cora: {below[0]} against {below[1]})",
        f"and their print {citeseer}",
        f"right on {images['train_accuracy_pct']} % of members and {images['test_accuracy_pct']} % of other images",
        f"BASE's AUC is {both(area)[0]} where {both(area)[1]} is printed",
        f"standard deviation between targets, {apart[0]}, is the printed {apart[1]}",
        f"BASE's threshold at 1 % online is {base[0][0]} (printed: {base[0][1]})",
        f"right on {cycle['train_accuracy_pct']} % of members and {cycle['test_accuracy_pct']} % of others",
        f"BASE's largest posterior is {largest[0]:.0f}, {largest[1]:.0f} and {largest[2]:.0f} %, and the bound allows "
        f"{allowed[0]:.1f}, {allowed[1]:.1f} and {allowed[2]:.0f} %; on average the attack proves an ε of "
        f"{proven[0]:.2f}, {proven[1]:.2f} and {proven[2]:.2f}, and {proven[3]:.1f} for training without noise",
    ]
    return {"reproduction.md": reproduction, "beyond.md": _beyond_sentences(results)}


def _beyond_sentences(results: Path) -> list[str]:
    """The same for our own attacks: how often they are above the paper's, and whether their output can be trusted."""
    found = [
        f"above by more than one standard deviation in {above} of {above + level + below} columns, at least as good in "
        f"{level} and below in {below}"
        for name in ("beyond", "beyond-mismatch")
        for above, level, below in [rivals_count(rows_of(name, results), "g-stacked")]
    ]

    def values(name: str, metric: str) -> list[float]:
        rows = rows_of(name, results)
        return [float(row["mean"]) for row in rows if (row["attack"], row["metric"]) == ("g-stacked", metric)]

    kept, rates = values("beyond", "threshold_kept_pct"), values("beyond", "fpr_at_threshold_pct")
    errors, missed = values("beyond-mismatch", "ece_pct"), values("beyond-mismatch", "fpr_at_threshold_pct")
    above_floor = max(values("beyond", "ece_above_floor_pct"))
    return [
        *found,
        f"within {above_floor:.1f} percentage points of the error that a perfect score has",
        f"gave {min(rates):.1f} to {max(rates):.1f} % on average, and was inside its stated interval for "
        f"{sum(kept) / 10:.0f} of {10 * len(kept)} targets",
        f"the calibration error is {min(errors):.0f} to {max(errors):.0f} points, and thresholds for 1 % give "
        f"{min(missed):.0f} to {max(missed):.0f} %",
    ]


_FIGURE = re.compile(r"(?<![\w.])(?:\d+\.\d+(?![\w.])|\d+(?= (?:%|points?|s|times|minutes)(?!\w)))")
_NO_FIGURE = re.compile(r"`[^`]*`|\[[^]]*\]\([^)]*\)|(?:0\.)?1 %")  # code, links, and the rates of a TPR
_SOURCE = re.compile(r"`((?:benchmarks|results|experiments|tests)/[\w./-]+\.(?:md|csv|json|py))`")


def unsupported(page: str, results: Path = RESULTS) -> dict[str, list[str]]:
    """Paragraphs of a page with figures that follow neither from the results nor from a file that they name."""
    text = (DOCS / page).read_text(encoding="utf-8")
    opening, closing = _MARKS
    for name, (owner, _) in BLOCKS.items():
        if owner == page:
            before, _, rest = text.partition(opening.format(name))
            text = before + rest.partition(closing.format(name))[2]
    text, found = re.sub(r"```.*?```", "", text, flags=re.DOTALL), {}
    known = sentences(results).get(page, [])
    for paragraph in re.split(r"\n\s*\n(?!\*From)|\n(?=- )", text):
        flat = " ".join(paragraph.split())
        for sentence in known:
            flat = flat.replace(sentence, "")
        files = [TREE / path for path in _SOURCE.findall(flat)]
        sources = "".join(path.read_text(encoding="utf-8") for path in files if path.is_file())
        figures = _FIGURE.findall(_NO_FIGURE.sub("", flat))
        if left := [one for one in figures if not re.search(rf"(?<![\d.]){re.escape(one)}(?!\d)", sources)]:
            found[flat] = left
    return found


def main() -> None:
    """Write the pages."""
    for page, text in written().items():
        write_file(DOCS / page, text)


if __name__ == "__main__":
    main()
