"""Whether more shadow models would help: an attack on simulated targets with all references and with half of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glasshouse.attacks.attack import Attack
from glasshouse.evaluation.roc import auc
from glasshouse.evaluation.simulated import rate_with_ties
from glasshouse.evaluation.subpools import fewer_references, is_cheap, with_fewer_references
from glasshouse.evaluation.thresholds import Scored
from glasshouse.evidence import Evidence

__all__ = ["FewerReferences", "compare_references"]

_MOST = 100_000  # records; more give no better answer, and each target is scored again


@dataclass(frozen=True, kw_only=True)
class FewerReferences:
    """The mean strength of an attack on the same simulated targets, with all references and with half of them.

    Args:
        references: how many shadow models judge a simulated target.
        fewer: half of them, in pairs.
        targets: how many simulated targets were compared.
        fpr: the false-positive rate of the figures; None if they are AUCs, because no rate was wanted.
        strength: mean TPR at that rate with all references.
        fewer_strength: the same with half of them.
        error: standard error of the mean difference, over targets.
    """

    references: int
    fewer: int
    targets: int
    fpr: float | None
    strength: float
    fewer_strength: float
    error: float

    @property
    def helps(self) -> bool:
        """Whether the larger half of the pool helped clearly: then a still larger pool may help too."""
        return self.strength - self.fewer_strength > 2 * self.error and self.strength > 1.02 * self.fewer_strength

    def sentence(self) -> str:
        """What it means for a reader.

        Example:
            >>> found = dict(references=6, fewer=4, targets=8, fpr=0.01, error=0.002)
            >>> FewerReferences(**found, strength=0.11, fewer_strength=0.08).sentence().split(" attack ")[1]
            'finds 8.0 % of the members instead of 11.0 % (at 1 % FPR): more shadow models would probably help.'
        """
        if self.fpr is None:
            figures = f"reaches an AUC of {self.fewer_strength:.3f} instead of {self.strength:.3f}"
        else:
            figures = (
                f"finds {100 * self.fewer_strength:.1f} % of the members instead of {100 * self.strength:.1f} % (at "
                f"{100 * self.fpr:g} % FPR)"
            )
        advice = "would probably help" if self.helps else "would hardly help"
        return (
            f"On {self.targets} simulated targets, judged by {self.fewer} instead of {self.references} shadow models, "
            f"the same attack {figures}: more shadow models {advice}."
        )


def compare_references(
    attack: Attack[Any], evidence: Evidence, scored: Scored, fprs: Sequence[float]
) -> FewerReferences | None:
    """Score simulated targets again with half of their references; None for attacks for which that is not cheap.

    Args:
        attack: tuned for the whole pool.
        evidence: what it looks at.
        scored: scores [N] and members [N] of each simulated target, with all references.
        fprs: wanted false-positive rates; the largest is used, since it rests on most records.

    Example:
        >>> from glasshouse.attacks import create
        >>> from glasshouse.population import complementary_halves
        >>> members = complementary_halves(400, models=8, seed=0)
        >>> loss = np.random.default_rng(0).exponential(np.where(members, 0.5, 1.0))
        >>> evidence = Evidence(target_loss=loss[0], shadow_loss=loss, shadow_members=members)
        >>> attack = create("base")
        >>> compare_references(attack, evidence, list(attack.simulated_scores(evidence)), [0.1]).fewer
        4
    """
    if not is_cheap(attack):
        return None
    step = -(-evidence.records // _MOST)
    if step > 1 and np.ndim(getattr(attack, "prior", 0.5)) == 0:  # a prior per record belongs to all records
        evidence = evidence.of_records(np.arange(0, evidence.records, step))
        scored = [(scores[::step], members[::step]) for scores, members in scored]
    again = with_fewer_references(attack, evidence)
    if again is None:
        return None
    fpr = max(fprs, default=None)

    def strengths(pairs: Scored) -> np.ndarray:
        return np.array([auc(*pair) if fpr is None else rate_with_ties(*pair, fpr)[0] for pair in pairs])

    full, half = strengths(scored[: len(again)]), strengths(again)
    return FewerReferences(
        references=evidence.models - 2,
        fewer=fewer_references(evidence.models),
        targets=len(again),
        fpr=fpr,
        strength=float(full.mean()),
        fewer_strength=float(half.mean()),
        error=float((full - half).std(ddof=1) / np.sqrt(len(again))),
    )
