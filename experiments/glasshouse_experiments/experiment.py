"""What an experiment is, and how one is made known to ``glasshouse reproduce``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from glasshouse.core.registry import Registry
from glasshouse.core.table import Table
from glasshouse_experiments.bench import Bench
from glasshouse_experiments.cells import Cell, compared, markdown
from glasshouse_experiments.settings import SETTINGS, Preset

__all__ = ["EXPERIMENTS", "Experiment", "Part", "experiment"]

TABLE_1 = ("cora", "citeseer", "pubmed", "flickr", "amazon-photo", "github", "synthetic")
Run = Callable[[Any], list[Cell]]


@dataclass(frozen=True, kw_only=True)
class Part:
    """A share of an experiment's cells that is run, and kept in files, on its own.

    Args:
        name: ends the names of its files, as in ``pubmed-many.csv``; the first part has none.
        holds: whether a row of a table belongs to this part. A file of the first part that already holds such rows,
            from before the experiment had parts, counts for both.
        wanted: whether a preset runs it.

    Example:
        >>> from glasshouse_experiments.settings import PRESETS
        >>> Part(name="many", holds=lambda row: row["K"] == "128").wanted(PRESETS.find("quick"))
        True
    """

    name: str = ""
    holds: Callable[[dict[str, Any]], bool] = lambda _: False
    wanted: Callable[[Preset], bool] = lambda _: True


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or figure of the paper on one kind of data.

    Args:
        run: from a bench to cells.
        settings: its data sets by name.
        datasets: the names that it runs on.
        part: which part of the experiment, if it has several on the same data.
        bench: makes a bench from a setting, a preset and a folder.
        heavy: data sets that a light preset leaves out.
        alone: whether nothing else may run beside it, because it measures seconds.
        compare: from cells to a table with verdicts; beside the paper's own cell by default.
        page: from that table, a title and notes to Markdown.
        picture: draws one data set's table as an SVG.
        overview: draws the table of all data sets.
    """

    run: Run
    settings: Registry[Any]
    datasets: tuple[str, ...]
    bench: Callable[..., Any]
    part: Part = Part()
    heavy: tuple[str, ...] = ()
    alone: bool = False
    compare: Callable[[Iterable[Cell]], Table] = compared
    page: Callable[[Table, str, Sequence[str]], str] = markdown
    picture: Callable[[Table], str] | None = None
    overview: Callable[[Table], str] | None = None


# several under one name if graphs and other data share a table of the paper, or if a table has parts
EXPERIMENTS: Registry[list[Experiment]] = Registry("an experiment")


def experiment(
    name: str,
    *,
    datasets: Sequence[str] | None = None,
    further: Sequence[str] = (),
    settings: Registry[Any] = SETTINGS,
    bench: Callable[..., Any] = Bench,
    **more: Any,
) -> Callable[[Run], Run]:
    """Decorator that makes an experiment known to ``glasshouse reproduce``.

    Args:
        name: of the experiment; a second experiment with the same name is for other data, or another part.
        datasets: what it runs on; the columns of Table 1 by default, or all of other settings.
        further: more data sets.
        settings: where data sets are looked up.
        bench: makes a bench from ``setting``, ``preset``, ``folder``, ``seed`` and ``progress``.
        **more: ``part``, ``heavy``, ``alone``, ``compare``, ``page``, ``picture`` and ``overview`` of `Experiment`.
    """
    chosen = tuple(datasets or (TABLE_1 if settings is SETTINGS else settings.names())) + tuple(further)

    def decorate(run: Run) -> Run:
        part = Experiment(run=run, settings=settings, datasets=chosen, bench=bench, **more)
        if name not in EXPERIMENTS.names():
            EXPERIMENTS.add(name, [])
        EXPERIMENTS.find(name).append(part)
        return run

    return decorate
