"""The door to JSON: a dictionary with each key once, numbers that are numbers, and no deep nesting."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from glasshouse.errors import InputError, shortened
from glasshouse.reading.doors import guarded, read_content
from glasshouse.reading.memory import check_memory

__all__ = ["parse_json", "read_json"]

_TIMES = 3  # the bytes, the text and the texts in it
_OF_ENTRY = 64  # bytes that Python needs for a value besides its letters
_DEPTH = 200
_DIGITS = 400  # of the largest float there are 309


def read_json(path: Path, *, advice: str = "", missing: str = "there is no such file.") -> dict[str, Any]:
    """A JSON file that holds a dictionary.

    Args:
        path: of the file.
        advice: what to do about a damaged one, a sentence.
        missing: what is said if there is none.

    Example:
        >>> read_json(Path("no/such.json"))
        Traceback (most recent call last):
        glasshouse.errors.InputError: no/such.json: there is no such file.
    """
    content = read_content(path, times=_TIMES, missing=missing)
    found = parse_json(content, place=str(path), advice=advice)
    if not isinstance(found, dict):
        raise InputError(f"{path}: is damaged: it does not hold keys and values. {advice}".rstrip())
    return found


def parse_json(content: bytes, *, place: str, advice: str = "") -> Any:
    """JSON as plain data: no NaN, no infinite number, no key twice, at most 200 levels.

    Example:
        >>> parse_json(b'{"auc": NaN}', place="metrics.json")
        Traceback (most recent call last):
        glasshouse.errors.InputError: metrics.json: is damaged, or is not JSON (ValueError: NaN is not a number).
    """
    entries = sum(content.count(sign) for sign in (b",", b"[", b"{", b":"))
    check_memory(_TIMES * len(content) + _OF_ENTRY * entries, place=place, what="once read it may take")
    with guarded(place, what="JSON", advice=advice):
        found = json.loads(
            content, parse_constant=_refused, parse_float=_number, parse_int=_whole, object_pairs_hook=_once
        )
        _check_depth(found)
        return found


def _refused(text: str) -> Any:
    raise ValueError(f"{text} is not a number")


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{shortened(text)} is too large")
    return value


def _whole(text: str) -> int:
    if len(text) > _DIGITS:
        raise ValueError(f"a number has {len(text)} digits")
    return int(text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"{shortened(twice)} is there twice")
    return found


def _check_depth(found: Any) -> None:
    level, depth = [found], 0
    while level:
        if depth > _DEPTH:
            raise RecursionError
        nested = [one for one in level if isinstance(one, dict | list)]
        level = [inside for one in nested for inside in (one.values() if isinstance(one, dict) else one)]
        depth += 1
