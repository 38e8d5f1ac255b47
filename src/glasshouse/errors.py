"""Errors for the user: input that cannot be used, in one clear line per fault."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

__all__ = ["InputError", "MissingExtraError", "first_line", "needs_extra", "raise_faults"]


class InputError(ValueError):
    """Input that cannot be used: each fault is one line that names the place and says what to do.

    Example:
        >>> error = InputError("audit.yaml: shadows: 7 is odd. Use 6 or 8.")
        >>> print(error)
        audit.yaml: shadows: 7 is odd. Use 6 or 8.
    """

    def __init__(self, *faults: str) -> None:
        self.faults = faults
        super().__init__("\n".join(faults))


class MissingExtraError(InputError):
    """A feature was requested whose optional dependency is not installed.

    Example:
        >>> print(MissingExtraError("DP-SGD", package="opacus", extra="dp"))
        DP-SGD needs opacus, which is not installed. Run: pip install 'glasshouse[dp]'
    """

    def __init__(self, feature: str, *, package: str, extra: str) -> None:
        super().__init__(f"{feature} needs {package}, which is not installed. Run: pip install 'glasshouse[{extra}]'")


@contextmanager
def needs_extra(feature: str, *, package: str, extra: str) -> Iterator[None]:
    """Around the import of an optional dependency: where it is not installed, the error names the extra.

    Example:
        >>> with needs_extra("Weather", package="barometer", extra="weather"):
        ...     import barometer
        Traceback (most recent call last):
        glasshouse.errors.MissingExtraError: Weather needs barometer, which is not installed. Run: ...
    """
    try:
        yield
    except ImportError:
        raise MissingExtraError(feature, package=package, extra=extra) from None


def raise_faults(faults: Sequence[str]) -> None:
    """Raise one `InputError` with every fault; return if there is none.

    Example:
        >>> raise_faults([])
    """
    if faults:
        raise InputError(*faults)


def first_line(error: BaseException) -> str:
    """Somebody else's error in one line, for the refusal of what the user brought.

    Example:
        >>> first_line(ValueError("no"))
        'ValueError: no'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {(lines or [''])[0][:200]}"
