"""Whether more shadow models would help, and whether records are flagged by smaller pools too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glasshouse.attacks.attack import Attack
from glasshouse.attacks.in_out_moments import panels
from glasshouse.core.arrays import FloatArray
from glasshouse.core.errors import InputError
from glasshouse.evaluation.roc import auc
from glasshouse.evaluation.thresholds import Pair, Threshold, rate_with_ties
from glasshouse.evidence import Evidence
from glasshouse.evidence.simulation import left_out_models

_PANELS = 8  # sub-pools for one target; at most half of what its thresholds cost
_TARGETS = 8  # simulated targets that are scored again with fewer references


def is_cheap(attack: Attack[Any]) -> bool:
    """Whether an attack can be run on many sub-pools: it looks at losses alone, and learns at most a few numbers."""
    return attack.kind == "records" and not (attack.learns_much or attack.needs_logits)


def stability(attack: Attack[Any], evidence: Evidence, threshold: Threshold) -> FloatArray | None:
    """[N] the share of sub-pools in which each record is still flagged; None for attacks that are not cheap.

    A sub-pool is the pool without one shadow model and its complement, as for simulated targets.
    """
    if not is_cheap(attack):
        return None
    among = attack.scores_among(evidence, panels(evidence.shadow_members, _PANELS))
    flagged = [threshold.decide(scores) for scores in among if scores is not None]
    return np.sum(flagged, axis=0) / len(flagged) if flagged else None


def fewer_references(models: int) -> int:
    """How many references are half of those of a simulated target, in pairs: 4 of 6, 8 of 14."""
    return 2 * -(-(models - 2) // 4)


_MOST = 100_000  # records; more give no better answer, and each target is scored again


@dataclass(frozen=True)
class FewerReferences:
    """The mean strength of an attack on the same simulated targets, with all references and with half of them."""

    references: int  # how many shadow models judge a simulated target
    fewer: int  # half of them, in pairs
    targets: int  # how many simulated targets were compared
    fpr: float | None  # the false-positive rate of the figures; None if they are AUCs, because no rate was wanted
    strength: float  # mean TPR at that rate with all references
    fewer_strength: float  # the same with half of them
    error: float  # standard error of the mean difference, over targets

    @property
    def helps(self) -> bool:
        """Whether the larger half of the pool helped clearly: then a still larger pool may help too."""
        return self.strength - self.fewer_strength > 2 * self.error and self.strength > 1.02 * self.fewer_strength

    def sentence(self) -> str:
        """What it means for a reader."""
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


def strength(attack: Attack[Any], pair: Pair, fprs: Sequence[float]) -> float:
    """The TPR on a simulated target at the largest rate, or the AUC, by the records that `compare_references` uses.

    NaN where these are all members or all non-members, as every second record may be.
    """
    some = slice(None, None, _step(attack, len(pair[0])))
    scores, members = pair[0][some], pair[1][some]
    if members.all() or not members.any():
        return float("nan")
    return rate_with_ties(scores, members, max(fprs))[0] if fprs else auc(scores, members)


def _step(attack: Attack[Any], records: int) -> int:
    """Every how many records are compared: all of them where each has a prior of its own."""
    return -(-records // _MOST) if np.ndim(getattr(attack, "prior", 0.5)) == 0 else 1


def compare_references(
    attack: Attack[Any], evidence: Evidence, strengths: Sequence[float], fprs: Sequence[float]
) -> FewerReferences | None:
    """Score the first simulated targets again with half of the references; their `strength` with all is known.

    None for attacks that are not cheap, for pools without complementary pairs, where so few references are refused, and
    where the compared records are of one kind.
    """
    sets = left_out_models(evidence.shadow_members) if is_cheap(attack) else []
    pairs = sorted({(int(left[0, 0]), int(left[-1, 0])) for left in sets if left.shape == (2, 1)})
    if len(pairs) < 3 or 2 * len(pairs) != evidence.models:
        return None
    if (step := _step(attack, evidence.records)) > 1:
        evidence = evidence.of_records(np.arange(0, evidence.records, step))
    again, losses, fewer = list[float](), evidence.losses_alone(), fewer_references(evidence.models)
    for k in range(min(evidence.models, _TARGETS)):
        others = [pair for pair in pairs if k not in pair]
        rows = np.array(sorted(row for pair in others[: fewer // 2] for row in pair))
        try:
            scores = attack.score(losses.among(rows[:, None], model=k))
        except InputError:
            return None
        again.append(strength(attack, (scores, evidence.shadow_members[k]), fprs))
    full, half = np.array(strengths[: len(again)]), np.array(again)
    if np.isnan(full).any() or np.isnan(half).any():
        return None
    error = float((full - half).std(ddof=1) / np.sqrt(len(again)))
    fpr = max(fprs, default=None)
    return FewerReferences(evidence.models - 2, fewer, len(again), fpr, float(full.mean()), float(half.mean()), error)
