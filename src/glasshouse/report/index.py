"""Many runs on one page: rating, model and date of each, and what changed since the run before on the same data."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from glasshouse.core.errors import InputError
from glasshouse.report.decision.next_steps import model_words
from glasshouse.report.decision.rating import Rating, rating_of
from glasshouse.report.format import percent, rate
from glasshouse.report.html import render_page
from glasshouse.report.policy import policy_of
from glasshouse.report.run_folder import read_run
from glasshouse.report.summary import Summary

_DEPTH = 4  # folders below the one that is indexed
_MOST = 2000  # runs


@dataclass(frozen=True)
class IndexedRun:
    """One run of an index."""

    place: str  # its folder, below the one that is indexed
    summary: Summary
    rating: Rating  # by the policy that the run was saved with, or the usual one
    change: str  # since the run before on the same data; empty for the first

    @property
    def link(self) -> str:
        """To its page, from a page in the folder that is indexed."""
        return quote(f"{self.place}/report.html")

    @property
    def date(self) -> str:
        """When it was saved."""
        written = self.summary.written
        return f"{written.astimezone(UTC):%Y-%m-%d %H:%M}" if written is not None else "not known"


@dataclass(frozen=True)
class RunIndex:
    """All runs below a folder."""

    runs: tuple[IndexedRun, ...]  # those that could be read, the newest first
    refused: dict[str, str]  # the others, by their folder, each with the first fault

    def page(self, *, title: str) -> str:
        """One HTML page, to be saved in the folder that is indexed."""
        return render_page("index.html.j2", title=title, index=self, model_words=model_words)


def index_runs(folder: Path | str) -> RunIndex:
    """Read all runs below a folder; a run that is damaged is named with its fault, and the others are shown."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder. Give the one that holds your runs.")
    places = sorted(_run_folders(folder))[:_MOST]
    if not places:
        raise InputError(f"{folder}: there is no run below it (no run.json). Give the folder that holds your runs.")
    found: list[tuple[Path, Summary, Rating]] = []
    refused: dict[str, str] = {}
    for place in places:
        try:
            summary = read_run(place)
            found.append((place, summary, rating_of(summary, policy_of(place))))
        except InputError as error:
            refused[str(place.relative_to(folder))] = error.faults[0]
    found.sort(key=lambda one: one[1].written or datetime.min.replace(tzinfo=UTC))
    last: dict[str, IndexedRun] = {}  # by its data
    runs = []
    for place, summary, rating in found:
        data = summary.context.fingerprint or summary.context.title
        change = _change(last[data], summary, rating) if data in last else ""
        last[data] = IndexedRun(str(place.relative_to(folder)), summary, rating, change)
        runs.append(last[data])
    return RunIndex(tuple(reversed(runs)), refused)


def _run_folders(folder: Path) -> Iterable[Path]:
    for place, inside, files in os.walk(folder):
        below = Path(place)
        if "run.json" in files:
            inside.clear()  # a run holds no runs
            yield below
        deep = len(below.relative_to(folder).parts) >= _DEPTH
        inside[:] = [] if deep else [name for name in inside if not name.startswith(".")]


def _change(before: IndexedRun, now: Summary, rating: Rating) -> str:
    """What changed since the run before, in words; overlapping intervals are said to overlap."""
    was = before.rating.word
    said = [] if was == rating.word else [f"{was} → {rating.word}"]
    one, other = before.summary.conclusion.measured, now.conclusion.measured
    if one is not None and other is not None:
        if one.rate is not None and other.rate is not None and one.rate.wanted == other.rate.wanted:
            figures = f"{percent(one.rate.tpr)} → {percent(other.rate.tpr)} at {rate(one.rate.wanted)} FPR"
            ends = one.rate.tpr_interval, other.rate.tpr_interval
        else:
            figures = f"AUC {one.auc:.3f} → {other.auc:.3f}"
            ends = one.auc_interval, other.auc_interval
        apart = ends[0].low > ends[1].high or ends[1].low > ends[0].high
        said.append(figures if apart else f"{figures} (the intervals overlap)")
    return "; ".join(said) or "nothing that both runs measured"
