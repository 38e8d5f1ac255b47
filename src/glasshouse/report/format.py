"""Numbers as text for readers."""

from __future__ import annotations


def percent(value: float, digits: int = 1) -> str:
    """A share in percent."""
    return f"{100 * value:.{digits}f} %"


def points(value: float, digits: int = 1) -> str:
    """A difference of two shares, in percentage points with its sign."""
    return signed(100 * value, digits)


def signed(value: float, digits: int = 3) -> str:
    """A difference with its sign.

    Example:
        >>> signed(-0.1234), signed(-0.0001)
        ('−0.123', '+0.000')
    """
    return f"{round(value, digits) + 0.0:+.{digits}f}".replace("-", "−")  # without a minus before 0


def rate(value: float) -> str:
    """A wanted rate, with as many digits as it has.

    Example:
        >>> rate(0.01), rate(0.0005)
        ('1 %', '0.05 %')
    """
    return f"{100 * value:.3g} %"


def whole(value: float) -> str:
    r"""A count, in groups of three.

    Example:
        >>> whole(1234567)
        '1\xa0234\xa0567'
    """
    return f"{round(value):,}".replace(",", "\u00a0")
