"""Answers that reveal less: rounded probabilities, or those of the likeliest classes alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax

from glasshouse.core.arrays import FloatArray
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import logits_from_probabilities
from glasshouse.data import Population
from glasshouse.query.adapters import KeptAnswers
from glasshouse.query.classify import Answers, QueryOptions, population_logits
from glasshouse.query.vote_step import Shares, whole_shares


@dataclass(frozen=True, kw_only=True)
class CoarseAnswers(QueryOptions):
    """Ask models as if they gave rounded probabilities, or those of their likeliest classes alone.

    It shows what an owner gains who answers so; the models themselves need no change, and a pool serves both questions.

    Args:
        digits: decimals that are left of each probability; None leaves all.
        top: how many of the likeliest classes are given, 0 stands for the others; None gives all.

    Example:
        >>> population = Population(np.array([[2.0], [-1.0]]), [1, 0])
        >>> CoarseAnswers(digits=1).answers(lambda x: x[:, 0], population).loss.round(3)
        array([0.105, 0.357])
    """

    classes_only: ClassVar[bool] = True

    digits: int | None = None
    top: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.digits is not None and not 1 <= self.digits <= 6:
            raise InputError(f"digits: {self.digits} is not a number of decimals from 1 to 6.")
        if self.top is not None and self.top < 1:
            raise InputError(f"top: {self.top} is too small; give 1 class or more.")

    def answers(self, model: Any, population: Population) -> Answers:
        """Losses of one model from what is left of its probabilities."""
        known = softmax(self.kept(model, population).population_logits, axis=1)
        return super().answers(KeptAnswers(logits_from_probabilities(self._coarse(known))), population)

    def kept(self, model: Any, population: Population) -> KeptAnswers:
        """All that a model answers, so that a pool can be asked any question of this kind."""
        if isinstance(model, KeptAnswers):
            model.check_question(labels_only=False)
            return model
        return KeptAnswers(population_logits(model, population, how=self))

    @property
    def question(self) -> QueryOptions:
        """That of whole answers, which are kept."""
        return QueryOptions()

    def _coarse(self, known: FloatArray) -> FloatArray:
        """Probabilities [N, C] that sum to 1, of which only the given part was read."""
        if self.top is not None and self.top < known.shape[1]:
            least = np.sort(known, axis=1)[:, -self.top, None]
            known = whole_shares(np.where(known >= least, known, 0.0), Shares("top"))
        if self.digits is not None:
            known = whole_shares(known.round(self.digits), Shares("rounded", 10.0**-self.digits))
        return known
