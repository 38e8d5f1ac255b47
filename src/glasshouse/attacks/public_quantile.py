"""Quantile regression on public records: how far the margin is above that of non-members like it (Bertran, 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.linear_model import RidgeCV

from glasshouse.arrays import FloatArray, IntArray
from glasshouse.attacks.attack import Attack
from glasshouse.attacks.quantile import usual_range
from glasshouse.attacks.query_count import QueryCount
from glasshouse.attacks.registry import register
from glasshouse.errors import InputError
from glasshouse.evidence import Evidence
from glasshouse.numerics import loss_to_margin
from glasshouse.randomness import generator

__all__ = ["PublicQuantile"]

_EXAMPLES = 10_000  # public records to learn from, at most
_COLUMNS = 1024  # of features times classes, at most
_STRENGTHS = tuple(np.logspace(0, 5, 11).tolist())  # of the ridge; the best by leaving out one record
_SMALL = 1e-3  # margins closer than this to what was expected are equally close


@register("public-quantile")
@dataclass(frozen=True, kw_only=True)
class PublicQuantile(Attack):
    """The target's margin in units of the spread that public records with such features and label have.

    Bertran et al. (2023) train one model that predicts, from the record alone, the distribution of the target's
    answer on records that it was not trained on. Here two ridge regressions predict the mean and the logarithm of the
    spread of the margin, each with its own slopes per class, from public records. No shadow model is asked, and no
    judged record is learned from.

    Args:
        seed: of the draw of public records, if there are very many.

    Example:
        >>> from glasshouse.evidence.public import PublicRecords
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(300, 1))  # how difficult a record is
        >>> loss = np.logaddexp(0, 3 * x[:, 0] + 0.3 * rng.normal(size=300) - 2 * (np.arange(300) < 100))
        >>> public = PublicRecords(loss=loss[200:], labels=np.zeros(100, dtype=np.int64), features=x[200:],
        ...                        audited=x[:200])
        >>> scores = PublicQuantile().score(Evidence(target_loss=loss[:200], labels=np.zeros(200), public=public))
        >>> bool(scores[:100].min() > scores[100:].max())  # the first hundred are members
        True
    """

    needs_public: ClassVar[bool] = True
    needs_classes: ClassVar[str] = "it learns class by class"
    least_models: ClassVar[int] = 0

    seed: int = 0

    def score(self, evidence: Evidence) -> FloatArray:
        """Standardised margins, [N]; higher means member."""
        public = evidence.public
        if public is None or evidence.labels is None:
            raise InputError(
                "public-quantile: it needs records that are known not to have trained the target: pass public=mask, or "
                "public=0.3 to set some of the non-members aside."
            )
        rows = generator(self.seed, "public").permutation(len(public))[:_EXAMPLES]
        low, high = usual_range(loss_to_margin(public.loss))
        answers = np.clip(loss_to_margin(public.loss[rows]), low, high)
        classes = int(max(public.labels.max(), evidence.labels.max())) + 1
        columns = _components(np.concatenate([public.features[rows], public.audited]), max(1, _COLUMNS // classes))
        known = _by_class(columns[: len(rows)], public.labels[rows], classes)
        asked = _by_class(columns[len(rows) :], evidence.labels, classes)
        expected, misses = _predicted(known, answers, asked)
        logs, _ = _predicted(known, np.log(misses + _SMALL), asked)
        margins = np.clip(loss_to_margin(evidence.target_loss), low, high)
        return np.asarray((margins - expected) / np.exp(logs))

    def queries(self, evidence: Evidence) -> QueryCount:
        """The target alone: once per record, and once for every public record."""
        return QueryCount(1.0, 0 if evidence.public is None else len(evidence.public))


def _predicted(known: FloatArray, answers: FloatArray, asked: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Predictions [N] for the asked rows, and how far each known row [P] is from its own when it is left out."""
    chosen = RidgeCV(_STRENGTHS).fit(known, answers)
    fitted = RidgeCV([chosen.alpha_], store_cv_results=True).fit(known, answers)
    return fitted.predict(asked), np.sqrt(fitted.cv_results_[:, 0])


def _components(features: FloatArray, most: int) -> FloatArray:
    """[R, at most ``most``] standardised columns, or their principal components where there are more."""
    spread = features.std(axis=0)
    values = (features - features.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    if values.shape[1] <= most:
        return np.asarray(values)
    _, vectors = np.linalg.eigh(values.T @ values)
    parts = values @ vectors[:, ::-1][:, :most]
    return np.asarray(parts / np.maximum(parts.std(axis=0), 1e-12))


def _by_class(columns: FloatArray, labels: IntArray, classes: int) -> FloatArray:
    """[R, C + F + C F] the class, the columns, and the columns in the place of their class."""
    own = np.eye(classes)[labels]
    crossed = (own[:, :, None] * columns[:, None, :]).reshape(len(columns), -1)
    return np.concatenate([own, columns, crossed], axis=1)
