"""Texts as a population for language models: token numbers with their padding, and how well each text compresses."""

from __future__ import annotations

import csv
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.errors import InputError
from glasshouse.data.labels import listed
from glasshouse.data.population import Population
from glasshouse.io.guarded import file_size, guarded


def tokenized(
    texts: Sequence[str] | Path | Any,
    tokenizer: Callable[[str], Any],
    *,
    column: str = "text",
    length: int = 512,
    ids: Sequence[Any] | NDArray[Any] | None = None,
    unit: Any = None,
) -> Population:
    """Texts as records of a language model, each cut after ``length`` tokens and padded on the right.

    Args:
        texts: [N] a list, or a column of a data frame or of a Hugging Face dataset; or the path of a file: ``.jsonl``
            or ``.csv`` with a column of texts, or any other with one text per line.
        tokenizer: from one text to its token numbers: a tokenizer of ``transformers``, or any function.
        column: the name of the texts in a file.
        length: most tokens of a text. What comes after them is not audited.
        ids: [N] stable, unique names of the texts; their positions by default.
        unit: [N] whose each text is, as for `Population`.

    Example:
        >>> population = tokenized(["ab", "abc"], lambda text: [ord(letter) - 96 for letter in text])
        >>> population.x["input_ids"]
        array([[1, 2, 0],
               [1, 2, 3]])
        >>> population.x["attention_mask"].sum(axis=1)
        array([2, 3])
    """
    given = listed(_from_file(texts, column) if isinstance(texts, Path) else texts)
    if given.ndim != 1 or not len(given) or not all(isinstance(one, str) for one in given.tolist()):
        raise InputError("texts: give one text per record, such as list(frame['text']).")
    rows = [_numbers(tokenizer(one))[:length] for one in given.tolist()]
    short = next((at for at, row in enumerate(rows) if len(row) < 2), None)
    if short is not None:
        raise InputError(f"texts: record {short} has fewer than two tokens, of which none is predicted; leave it out.")
    numbers = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
    mask = np.zeros_like(numbers)
    for at, row in enumerate(rows):
        numbers[at, : len(row)], mask[at, : len(row)] = row, 1
    compressed = np.array([[len(zlib.compress(one.encode()))] for one in given.tolist()])
    return Population.for_loss({"input_ids": numbers, "attention_mask": mask}, compressed, ids=ids, unit=unit)


def token_arrays(x: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """[N, T] token numbers and padding."""
    if not isinstance(x, Mapping) or not {"input_ids", "attention_mask"} <= x.keys():
        raise InputError("population: a language model needs token numbers; make it by tokenized(texts, tokenizer).")
    return np.asarray(x["input_ids"]), np.asarray(x["attention_mask"])


def text_tokens(population: Population, decode: Callable[[int], str]) -> list[list[str]]:
    """The tokens of every text in words, for ``Evaluation(words=…)``.

    Args:
        population: from `tokenized`.
        decode: from a token's number to its text, such as ``lambda number: tokenizer.decode([number])``.

    Example:
        >>> population = tokenized(["ab", "abc"], lambda text: [ord(letter) - 96 for letter in text])
        >>> text_tokens(population, lambda number: chr(number + 96))
        [['a', 'b'], ['a', 'b', 'c']]
    """
    rows = zip(population.x["input_ids"], population.x["attention_mask"], strict=True)
    told = [[int(number) for number in numbers[mask > 0]] for numbers, mask in rows]
    known = {number: decode(number) for number in sorted({number for row in told for number in row})}
    return [[known[number] for number in row] for row in told]


def _from_file(path: Path, column: str) -> list[str]:
    """The texts of a file, in their order."""
    file_size(path)
    with guarded(path, what="a file of texts"), path.open(encoding="utf-8", newline="") as file:
        if path.suffix not in (".jsonl", ".csv"):
            return [line for line in map(str.strip, file) if line]
        rows = (
            list(csv.DictReader(file)) if path.suffix == ".csv" else [json.loads(line) for line in file if line.strip()]
        )
    for at, row in enumerate(rows):
        if not isinstance(row, dict) or not isinstance(row.get(column), str):
            raise InputError(f"{path}: record {at} has no text named {column!r}; say column=… with its name.")
    return [row[column] for row in rows]


def _numbers(told: Any) -> list[int]:
    """Token numbers of one text, from what a tokenizer gave."""
    found = told["input_ids"] if hasattr(told, "keys") else getattr(told, "ids", told)
    return [int(one) for one in found]
