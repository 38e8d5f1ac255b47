"""What is not a population is refused, with the line that makes one of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch.utils.data import Dataset

from glasshouse.errors import InputError
from glasshouse.population.kinds import comes_from, is_frame
from glasshouse.population.population import Parts, Population
from glasshouse.population.records import recognised

__all__ = ["advice_for", "check_population"]


def check_population(population: Any) -> None:
    """Refuse what is not a population of records.

    Example:
        >>> check_population([[0.0], [1.0]])
        Traceback (most recent call last):
        glasshouse.errors.InputError: population: list is not a Population; make one: Population(x, y). ...
    """
    if not isinstance(population, Population):
        if (records := recognised(population)) is not None:
            raise InputError(f"population: {records.advice}.")
        raise InputError(
            f"population: {type(population).__name__} is not a Population; {advice_for(population)} For a graph call "
            f"glasshouse.graph.audit(data, model=…, members=…, trainer=…)."
        )


def advice_for(given: Any) -> str:
    """The line that makes a population of what was given in its place.

    Example:
        >>> advice_for("people.csv")
        "read the file first: Population(pandas.read_csv('people.csv'), 'label')."
    """
    if recognised(given) is not None:
        return "make one: Population(graphs), and pass a trainer for these records."
    if isinstance(given, Parts):
        return "it holds two things: audit(parts.population, members=parts.members, …)."
    if isinstance(given, str | Path):
        return f"read the file first: Population(pandas.read_csv({str(given)!r}), 'label')."
    if comes_from(given, "datasets") and isinstance(given, Mapping):
        first = next(iter(given), "train")
        return f"it holds several splits; make one of each, such as Population(data[{first!r}], 'label')."
    if is_frame(given) or comes_from(given, "datasets"):
        names = list(given.columns if is_frame(given) else getattr(given, "column_names", []))
        label = names[-1] if names else "label"
        return f"make one: Population(data, {label!r}), with the name of the column that holds the labels."
    if isinstance(given, Dataset):
        return "make one: Population(dataset)."
    if isinstance(given, Mapping):
        return "make one: Population(arrays, y)."
    return "make one: Population(x, y)."
