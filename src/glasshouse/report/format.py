"""Numbers as text for readers."""

from __future__ import annotations


def percent(value: float, digits: int = 1) -> str:
    """A share in percent.

    Example:
        >>> percent(0.1234)
        '12.3 %'
    """
    return f"{100 * value:.{digits}f} %"


def points(value: float, digits: int = 1) -> str:
    """A difference of two shares, in percentage points with its sign.

    Example:
        >>> points(-0.1234), points(-0.0001)
        ('−12.3', '+0.0')
    """
    return signed(100 * value, digits)


def signed(value: float, digits: int = 3) -> str:
    """A difference with its sign.

    Example:
        >>> signed(-0.1234)
        '−0.123'
    """
    return f"{round(value, digits) + 0.0:+.{digits}f}".replace("-", "−")  # without a minus before 0


def of_thousand(value: float) -> str:
    r"""A share as a count.

    Example:
        >>> of_thousand(0.05), of_thousand(0.0004)
        ('50 of 1\xa0000', '0.4 of 1\xa0000')
    """
    count = 1000 * value
    return f"{whole(count) if count >= 9.5 or count == round(count) else f'{count:.1f}'} of {whole(1000)}"


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
