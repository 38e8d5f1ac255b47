"""Errors for the user: input that cannot be used, in one clear line per fault."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

_LONGEST = 2000  # characters of one fault
_MOST = 100  # faults


class InputError(ValueError):
    """Input that cannot be used: each fault is one line that names the place and says what to do.

    Example:
        >>> error = InputError("audit.yaml: shadows: 7 is odd. Use 6 or 8.")
        >>> print(error)
        audit.yaml: shadows: 7 is odd. Use 6 or 8.
    """

    def __init__(self, *faults: str) -> None:
        more = len(faults) - _MOST
        shown = [shortened(fault, most=_LONGEST, quoted=False) for fault in faults[:_MOST]]
        self.faults = (*shown, *([f"… and {more} more faults."] if more > 0 else []))
        super().__init__("\n".join(self.faults))


InputError.__module__ = "glasshouse"  # where users import it from, and what a traceback shows


class LeftOutError(InputError):
    """Parts of a long run that could not be run; all others were, and their results are kept."""


class MissingExtraError(InputError):
    """A feature was requested whose optional dependency is not installed."""

    def __init__(self, feature: str, *, package: str, extra: str) -> None:
        super().__init__(f"{feature} needs {package}, which is not installed. Run: pip install 'glasshouse[{extra}]'")


@contextmanager
def needs_extra(feature: str, *, package: str, extra: str) -> Iterator[None]:
    """Around the import of an optional dependency: where it is not installed, the error names the extra."""
    try:
        yield
    except ImportError:
        raise MissingExtraError(feature, package=package, extra=extra) from None


@contextmanager
def naming(model: str) -> Iterator[None]:
    """Around a question to one of several models: a refusal that begins with "model:" names the one it is about."""
    try:
        yield
    except InputError as error:
        if not any(fault.startswith("model:") for fault in error.faults):
            raise
        named = [model + fault.removeprefix("model") if fault.startswith("model:") else fault for fault in error.faults]
        raise InputError(*named) from error


@contextmanager
def placed(place: object) -> Iterator[None]:
    """Around what is made of a file's content: each fault of a refusal then begins with its place."""
    try:
        yield
    except InputError as error:
        raise InputError(*[f"{place}: {fault}" for fault in error.faults]) from error


def raise_faults(faults: Sequence[str]) -> None:
    """Raise one `InputError` with every fault; return if there is none."""
    if faults:
        raise InputError(*faults)


def number_faults(
    options: object,
    *,
    at_least: Mapping[str, float] | None = None,
    positive: Sequence[str] = (),
    shares: Sequence[str] = (),
) -> list[str]:
    """What is wrong with numbers among an object's options, by their names; a share is below 1."""
    given = {name: value for name, value in vars(options).items() if value is not None}
    lows = {name: least for name, least in (at_least or {}).items() if name in given and given[name] < least}
    return [
        *(f"{name}: {given[name]} is too small; use {least} or more." for name, least in lows.items()),
        *(f"{name}: {given[name]} is not positive." for name in positive if name in given and not given[name] > 0),
        *(f"{name}: {given[name]} is not a share below 1." for name in shares if not 0 <= given[name] < 1),
    ]


def first_line(error: BaseException, *, lines: int = 1) -> str:
    """Somebody else's error in one line, by the first lines of it, for the refusal of what the user brought."""
    found = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = shortened(": ".join(found[:lines]), most=200, quoted=False)
    return f"{type(error).__name__}: {told}" if told else type(error).__name__


def shortened(value: Any, *, most: int = 80, quoted: bool = True) -> str:
    """A value from outside as an error quotes it: what is long is cut in the middle, and never written out first.

    ``most`` is the number of characters, about; text is ``quoted`` as Python writes it.
    """
    if not isinstance(value, str):
        return shortened(_REPR.repr(value), most=most, quoted=False)
    half = max(1, (most - 6) // 2)
    cut = len(value) > most
    text = f"{value[:half]}…{value[-half:]}" if cut else value
    return (repr(text) if quoted else text) + (f" ({len(value)} characters)" if cut else "")


class _Repr(reprlib.Repr):
    """Python's own form of a value, without the inside of large ones."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxstring, self.maxother = 3, 80, 200

    def repr_int(self, x: int, level: int) -> str:
        # Python refuses to write very long ones
        return repr(x) if x.bit_length() < 1000 else f"a whole number of {x.bit_length()} bits"


_REPR = _Repr()
