"""Attention without an exponential per edge.

The weight of the edge from w to x is exp(leaky(source_w + target_x) - shift_x), and the leaky ReLU has two straight
branches, so it is a product of one number from w and one from x; the sign of the sum selects the branch. A node keeps
both numbers for both branches, in a message row of six parts, each as wide as the values that are sent:

====  ==========================================================
part  holds
====  ==========================================================
0, 1  values times exp(slope * (source - level)), upper and lower branch
2     source score
3     target score
4, 5  exp(slope * (target + level) - shift), upper and lower branch
====  ==========================================================

The values of a head end with a 1, so that one pass gives the weighted sum and the sum of weights. ``level`` is about
the largest source score, and cancels.
"""

from __future__ import annotations

import numpy as np

from glasshouse.arrays import Floats
from glasshouse.graph.rule.jit import inner_kernel

__all__ = ["PARTS", "QUARTER", "add_message", "cancels", "replace_message", "take_message", "write_message"]

PARTS = 6
QUARTER = 0.25  # if less is left of a sum of weights, too few digits of it are left


@inner_kernel
def write_message(
    values: Floats, scores: Floats, row: int, level: Floats, slope: float, messages: Floats, place: int
) -> None:
    """Fill messages[place] from values[row] and scores[row].

    values [., heads * width]; scores [., 2 * heads], sources then targets; messages [., PARTS, heads * (width + 1)].
    """
    heads = len(level)
    width = messages.shape[2] // heads
    for g in range(heads):
        source, target = scores[row, g], scores[row, heads + g]
        upper, lower = np.exp(source - level[g]), np.exp(slope * (source - level[g]))
        reach = target + level[g]
        shift = reach if reach > 0 else slope * reach
        first, last = g * width, (g + 1) * width
        for j in range(first, last - 1):
            messages[place, 0, j] = upper * values[row, j - g]
            messages[place, 1, j] = lower * values[row, j - g]
        messages[place, 0, last - 1] = upper
        messages[place, 1, last - 1] = lower
        to_upper, to_lower = np.exp(reach - shift), np.exp(slope * reach - shift)
        for j in range(first, last):
            messages[place, 2, j] = source
            messages[place, 3, j] = target
            messages[place, 4, j] = to_upper
            messages[place, 5, j] = to_lower


@inner_kernel
def add_message(out: Floats, to: Floats, t: int, source: Floats, s: int) -> None:
    """out[0] += the message from source[s] to to[t]."""
    for j in range(out.shape[1]):
        upper = to[t, 4, j] * source[s, 0, j]
        lower = to[t, 5, j] * source[s, 1, j]
        out[0, j] += upper if source[s, 2, j] > -to[t, 3, j] else lower


@inner_kernel
def take_message(out: Floats, to: Floats, t: int, source: Floats, s: int) -> None:
    """out[0] -= the message from source[s] to to[t]."""
    for j in range(out.shape[1]):
        upper = to[t, 4, j] * source[s, 0, j]
        lower = to[t, 5, j] * source[s, 1, j]
        out[0, j] -= upper if source[s, 2, j] > -to[t, 3, j] else lower


@inner_kernel
def replace_message(out: Floats, to: Floats, t: int, old: Floats, o: int, new: Floats, k: int) -> None:
    """out[0] += the message from new[k] less the one from old[o]."""
    for j in range(out.shape[1]):
        below, to_upper, to_lower = -to[t, 3, j], to[t, 4, j], to[t, 5, j]
        new_upper, new_lower = to_upper * new[k, 0, j], to_lower * new[k, 1, j]  # both, so that no load is conditional
        old_upper, old_lower = to_upper * old[o, 0, j], to_lower * old[o, 1, j]
        fresh = new_upper if new[k, 2, j] > below else new_lower
        stale = old_upper if old[o, 2, j] > below else old_lower
        out[0, j] += fresh - stale


@inner_kernel
def cancels(kept: Floats, row: int, changed: Floats, heads: int, share: float) -> bool:
    """Whether some sum of weights in changed[0] fell below this share of kept[row]."""
    width = changed.shape[1] // heads
    for g in range(heads):
        last = (g + 1) * width - 1
        if changed[0, last] < share * kept[row, last]:
            return True
    return False
