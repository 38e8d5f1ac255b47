"""Numbers as text for readers."""

from __future__ import annotations


def percent(value: float, digits: int = 1) -> str:
    """A share in percent."""
    return f"{100 * value:.{digits}f} %"


def points(value: float, digits: int = 1) -> str:
    """A difference of two shares, in percentage points with its sign."""
    return signed(100 * value, digits)


def signed(value: float, digits: int = 3) -> str:
    """A difference with its sign, as "−0.123"."""
    return f"{round(value, digits) + 0.0:+.{digits}f}".replace("-", "−")  # without a minus before 0


def rate(value: float) -> str:
    """A wanted rate, with as many digits as it has: "1 %", "0.05 %"."""
    return f"{100 * value:.3g} %"


def whole(value: float) -> str:
    """A count, in groups of three: "1 234 567"."""
    return f"{round(value):,}".replace(",", "\u00a0")
