"""What a policy may demand of a run: limits on figures, and on how the run was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from glasshouse.errors import InputError
from glasshouse.report.words import of_thousand, rate

__all__ = ["HEADLINE", "End", "Figure", "Limit", "Policy"]

End = Literal["upper", "estimate", "lower"]
Figure = Literal["tpr", "auc", "epsilon"]

HEADLINE = "headline"  # the attack of the verdict: the strongest one on simulated targets
EVERY = "every"


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The most that a figure may be.

    Args:
        figure: ``"tpr"``, the share of members that are found; ``"auc"``; or ``"epsilon"``, the ε that the attacks
            show, which is a lower bound.
        most: the largest value that passes.
        at_fpr: the false-positive rate of a ``"tpr"``; a run measures a few of them.
        attack: ``"headline"``, the attack of the verdict; ``"every"`` attack; or the name of one.
        group: a column of groups, such as ``"class"``: the limit is then on each of its groups.
        end: which end of the interval is compared with the limit; by default the policy's own.

    Example:
        >>> Limit(figure="tpr", most=0.05, at_fpr=0.01).words
        'TPR at 1 % FPR of the headline attack at most 5 %'
    """

    figure: Figure
    most: float
    at_fpr: float | None = None
    attack: str = HEADLINE
    group: str | None = None
    end: End | None = None

    def __post_init__(self) -> None:
        if self.figure == "tpr" and self.group is None and self.at_fpr is None:
            raise InputError("at_fpr: is missing; a TPR needs its false-positive rate, such as at_fpr: 0.01.")
        if self.at_fpr is not None and (self.figure != "tpr" or self.group is not None):
            raise InputError(
                "at_fpr: belongs to a tpr of all records; groups are judged at the attack's own threshold."
            )
        if self.figure == "epsilon" and (self.group is not None or self.attack != HEADLINE or self.end is not None):
            raise InputError("epsilon: is one bound of the whole run; it has no group, no attack and no end.")
        if self.group is not None and self.attack != HEADLINE:
            raise InputError("group: groups are measured for the headline attack alone; leave attack out.")
        if not self.most >= 0:
            raise InputError(f"most: {self.most} is not a limit; use a number that is not negative.")
        if self.figure != "epsilon" and self.most > 1:
            raise InputError(f"most: {self.most:g} is above 1, so every model keeps it; write 5 % as 0.05.")

    @property
    def words(self) -> str:
        """The limit as a part of a sentence."""
        if self.figure == "epsilon":
            return f"ε that the attacks show at most {self.most:g}"
        most = f"{self.most:g}" if self.figure == "auc" else rate(self.most)
        if self.group is not None:
            return f"{self.figure.upper()} of every group of {self.group} at most {most}"
        at = "" if self.at_fpr is None else f" at {rate(self.at_fpr)} FPR"
        who = {HEADLINE: "the headline attack", EVERY: "every attack"}.get(self.attack, self.attack)
        return f"{self.figure.upper()}{at} of {who} at most {most}"

    @property
    def plain(self) -> str:
        """The limit in counts, for a reader who knows no abbreviation.

        Example:
            >>> Limit(figure="tpr", most=0.05, at_fpr=0.01).plain.replace(chr(160), " ")
            'at most 50 of 1 000 members may be singled out where 10 of 1 000 outsiders are accused'
            >>> Limit(figure="auc", most=0.6).plain
            'the attacker may be right about at most 60 of 100 pairs of a member and an outsider'
        """
        if self.figure == "epsilon":
            return f"the privacy loss that the attacks prove may be at most {self.most:g}"
        where = "" if self.group is None else f"in every group of {self.group} "
        who = {HEADLINE: "", EVERY: " by every attack"}.get(self.attack, f" by {self.attack}")
        if self.figure == "auc":
            pairs = f"{100 * self.most:g} of 100 pairs of a member and an outsider"
            return f"{where}the attacker may be right about at most {pairs}{who}"
        price = "" if self.at_fpr is None else f" where {of_thousand(self.at_fpr)} outsiders are accused"
        return f"{where}at most {of_thousand(self.most)} members may be singled out{who}{price}"


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Limits on the figures of a run, and what the run must have been.

    Args:
        limits: on figures; one or more.
        end: which end of an interval must keep the limit. ``"upper"``: the model passes only if the limit is kept with
            confidence. ``"estimate"``: the measured value counts. ``"lower"``: it fails only if the limit is exceeded
            with confidence.
        attacks: names of attacks that the run must have tried.
        shadows: how many shadow models the run must have had, at least.
        age_days: how old the run may be.

    Example:
        >>> Policy(limits=(Limit(figure="auc", most=0.6),)).end
        'upper'
    """

    limits: Sequence[Limit]
    end: End = "upper"
    attacks: Sequence[str] = ()
    shadows: int = 0
    age_days: float | None = None

    def __post_init__(self) -> None:
        if not self.limits:
            raise InputError("limits: the policy has none; give one or more.")
