"""Attacks on language models without shadow models: what one model, and the one before fine-tuning, give away.

They cost one query per text and need no training. `stacked` with a pool finds about three times as much.
"""

from __future__ import annotations

import abc
import itertools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from glasshouse.attacks.attack import Attack, register
from glasshouse.core.arrays import FloatArray
from glasshouse.evidence import Evidence


@dataclass(frozen=True, kw_only=True)
class _OneModel(Attack):
    """What they share: they look at the target's tokens alone."""

    needs_parts: ClassVar[bool] = True
    least_models: ClassVar[int] = 0
    looks_at: ClassVar[tuple[str, ...]] = ()  # details of tokens, by name

    def score(self, evidence: Evidence) -> FloatArray:
        """Scores [N]; higher means member."""
        parts = evidence.require_parts()
        told = {name: parts.detail(name).astype(np.float64) for name in ("loss", *self.looks_at)}
        return np.array([
            self.of_text(**{name: one[start:stop] for name, one in told.items()})
            for start, stop in itertools.pairwise(parts.offsets)
        ])  # fmt: skip

    @abc.abstractmethod
    def of_text(self, loss: FloatArray, **details: FloatArray) -> float:
        """The score of one text, from the losses [T] of its tokens and the details that it looks at."""


@register("min-k")
@dataclass(frozen=True, kw_only=True)
class MinK(_OneModel):
    """Min-K% Prob (Shi et al., ICLR 2024): the mean log-probability of the least likely tokens.

    Args:
        share: of the tokens that count.

    Example:
        >>> MinK(share=0.5).of_text(np.array([0.1, 3.0, 2.0, 0.2]))
        -2.5
    """

    share: float = 0.2

    def of_text(self, loss: FloatArray, **details: FloatArray) -> float:
        """Minus the mean of the largest losses."""
        return -float(np.sort(loss)[-max(1, int(len(loss) * self.share)) :].mean())


@register("min-k++")
@dataclass(frozen=True, kw_only=True)
class MinKPlusPlus(_OneModel):
    """Min-K%++ (Zhang et al., ICLR 2025): as Min-K%, of log-probabilities standardised over the vocabulary.

    Args:
        share: of the tokens that count.

    Example:
        >>> loss, mean, spread = np.array([1.0, 3.0]), np.array([-2.0, -2.0]), np.array([1.0, 0.5])
        >>> MinKPlusPlus(share=0.5).of_text(loss, mean=mean, spread=spread)
        -2.0
    """

    share: float = 0.2
    looks_at: ClassVar[tuple[str, ...]] = ("mean", "spread")

    def of_text(self, loss: FloatArray, **details: FloatArray) -> float:
        """The mean of the smallest standardised log-probabilities."""
        standard = (-loss - details["mean"]) / np.maximum(details["spread"], 1e-6)
        return float(np.sort(standard)[: max(1, int(len(loss) * self.share))].mean())


@register("ez-mia")
@dataclass(frozen=True, kw_only=True)
class EZMIA(_OneModel):
    """Error zone (Ilić et al., 2026): at tokens that the model gets wrong, how much more it learned than it forgot.

    Of the true token's log-probability there, the sum of its rises against the reference model over that of its falls.
    The authors' program leaves out the first token, and gives 0 where nothing fell, which finds no more.

    Example:
        >>> loss, reference = -np.log([0.2, 0.1, 0.9]), -np.log([0.1, 0.2, 0.1])
        >>> round(EZMIA().of_text(loss, reference=reference, right=np.array([0.0, 0.0, 1.0])), 3)
        1.0
    """

    version: ClassVar[int] = 2
    looks_at: ClassVar[tuple[str, ...]] = ("reference", "right")

    def of_text(self, loss: FloatArray, **details: FloatArray) -> float:
        """The ratio of both sums."""
        change = (details["reference"] - loss)[details["right"] == 0]
        return float(np.maximum(change, 0).sum() / (np.maximum(-change, 0).sum() + 1e-10))


@register("wbc")
@dataclass(frozen=True, kw_only=True)
class WindowComparison(_OneModel):
    """Window-based comparison (Chen et al., USENIX Security 2026): in how many windows the model beats the reference.

    Windows of tokens slide over the text; each votes for membership if the sum of losses is below the reference's. The
    score is the mean share of votes over geometrically spaced widths.

    Args:
        widths: of the windows, in tokens.

    Example:
        >>> WindowComparison(widths=(2,)).of_text(np.array([1.0, 2.0, 0.0]), reference=np.array([2.0, 2.0, 1.0]))
        1.0
    """

    widths: tuple[int, ...] = (2, 3, 4, 6, 9, 13, 18, 25, 32, 40)
    looks_at: ClassVar[tuple[str, ...]] = ("reference",)

    def of_text(self, loss: FloatArray, **details: FloatArray) -> float:
        """The mean share of windows."""
        summed = np.concatenate([[0.0], np.cumsum(details["reference"] - loss)])
        widths = [width for width in self.widths if width <= len(loss)] or [len(loss)]
        return float(np.mean([(summed[width:] > summed[:-width]).mean() for width in widths]))


@register("zlib")
@dataclass(frozen=True, kw_only=True)
class Zlib(_OneModel):
    """The logarithm of a text's perplexity over its bytes when compressed (Carlini et al., USENIX Security 2021).

    Example:
        >>> Zlib().of_text(np.array([1.0, 3.0]), compressed=np.array([10.0, 0.0]))
        -0.2
    """

    version: ClassVar[int] = 2
    looks_at: ClassVar[tuple[str, ...]] = ("compressed",)

    def of_text(self, loss: FloatArray, **details: FloatArray) -> float:
        """Minus the mean loss over the bytes."""
        return -float(loss.mean() / details["compressed"].sum())
