"""What an audit file asks for, judged by the limit on memory before anything is made."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from glasshouse.reading import check_memory

__all__ = ["check_network", "check_shadows"]

_COPIES = 4 * 4  # bytes of a weight in float32, with its gradient and two moments of Adam
_PER_RECORD = 9  # bytes of a shadow model about a record: the loss, and whether it was a member


def check_network(widths: Sequence[int], *, place: str) -> None:
    """Refuse layers whose weights alone take more than the limit while they are trained.

    Args:
        widths: of the input, of each layer, and of the output.
        place: the key of the file.

    Example:
        >>> check_network([64, 512, 10], place="trainer.hidden")
        >>> check_network([64, 10**11, 10], place="trainer.hidden")
        Traceback (most recent call last):
        glasshouse.errors.InputError: trainer.hidden: training such a network takes 107.6 TiB, and the limit is ...
    """
    weights = sum(first * second for first, second in itertools.pairwise(widths))
    check_memory(weights * _COPIES, place=place, what="training such a network takes")


def check_shadows(shadows: int, records: int) -> None:
    """Refuse more shadow models than what is known about them has room for.

    Example:
        >>> check_shadows(10**8, 2000)
        Traceback (most recent call last):
        glasshouse.errors.InputError: shadows: 100000000 models and 2000 records take 1.6 TiB, and the limit is ...
    """
    check_memory(shadows * records * _PER_RECORD, place="shadows", what=f"{shadows} models and {records} records take")
