"""The entries of ``attacks``: names, or names with parameters, each tried before anything is trained."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator

from glasshouse.attacks import create
from glasshouse.attacks.registry import find_attack
from glasshouse.errors import first_line, shortened

__all__ = ["AttackEntry", "known_attack"]

_MOST = 10**6  # epochs, examples, samples or folds; more is a slip of the hand, or malice
_WIDEST = 10**5


def _whole(value: Any, most: int = _MOST) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= most


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _all(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _word(value: Any) -> bool:
    return isinstance(value, str)


# by how a class writes the type of a parameter: whether a value of a file fits it, and how an error calls it
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "bool": (lambda value: isinstance(value, bool), "true or false"),
    "int": (_whole, "a whole number up to a million"),
    "float": (_number, "a number"),
    "str": (_word, "a word"),
    "Mode": (_word, "a word"),
    "Hops": (_word, "a word"),
    "Literal": (_word, "a word"),
    "None": (lambda value: value is None, "null"),
    "ArrayLike": (_all(_number), "a list of numbers"),
    "Sequence[str]": (_all(_word), "a list of words"),
    "tuple[float, ...]": (_all(_number), "a list of numbers"),
    "tuple[int, ...]": (_all(lambda value: _whole(value, _WIDEST)), "a list of whole numbers up to 100 000"),
}


def known_attack(choice: str | dict[str, Any]) -> str | dict[str, Any]:
    """An entry whose attack can be made, as it is; pydantic adds its place in the list to an error.

    Example:
        >>> known_attack({"name": "regressed", "folds": [3]})
        Traceback (most recent call last):
        ValueError: folds: [3] is not a whole number up to a million.
    """
    parameters = {"name": choice} if isinstance(choice, str) else dict(choice)
    name = str(parameters.pop("name", ""))
    _refuse_infinite(parameters)
    try:
        attack: Any = find_attack(name)
        for field in dataclasses.fields(attack):
            if field.name in parameters:
                _refuse_other_kinds(field, parameters[field.name])
        create(name, **parameters)
    except ValueError as error:  # ours, and those of the attack itself
        raise ValueError(str(error)) from error
    except Exception as error:  # a parameter of a wrong type can fail in any way
        raise ValueError(first_line(error)) from error
    return choice


def _refuse_infinite(value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a number that an attack can use.")
    for inside in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _refuse_infinite(inside)


def _refuse_other_kinds(field: dataclasses.Field[Any], value: Any) -> None:
    """Refuse what is not of the type that the class says; what a file cannot write can only be given in Python."""
    if field.name == "seed":
        if not _whole(value, 2**63) or value < 0:
            raise ValueError(f"seed: {shortened(value)} is not a whole number from 0.")
        return
    names = re.split(r"\s*\|\s*", re.sub(r"Literal\[[^]]*\]", "Literal", str(field.type)))
    known = [_KINDS[name] for name in names if name in _KINDS]
    if not known:
        raise ValueError(f"{field.name}: can only be given in Python; leave it out.")
    if not any(fits(value) for fits, _ in known):
        wanted = " or ".join(dict.fromkeys(called for _, called in known))
        raise ValueError(f"{field.name}: {shortened(value)} is not {wanted}.")


AttackEntry = Annotated[str | dict[str, Any], AfterValidator(known_attack)]
