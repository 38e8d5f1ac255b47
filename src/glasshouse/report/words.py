"""Numbers as text for readers."""

from __future__ import annotations

__all__ = ["percent", "rate", "whole"]


def percent(value: float, digits: int = 1) -> str:
    """A share in percent.

    Example:
        >>> percent(0.1234)
        '12.3 %'
    """
    return f"{100 * value:.{digits}f} %"


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
