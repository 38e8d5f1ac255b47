"""The policy that rates a run where its owner gave none: stated in every report that uses it."""

from __future__ import annotations

from glasshouse.report.policy.limits import Limit, Policy
from glasshouse.report.summarise import Summary

__all__ = ["USUAL_RATIO", "usual_policy"]

USUAL_RATIO = 5.0  # an attacker's odds on an accused record are at most so many times those of a blind guess
_USUAL_AUC = 0.6


def usual_policy(summary: Summary) -> Policy:
    """At most five times as many members found as outsiders accused, and every claimed ε kept.

    Where ties or a small sample leave no such rate to measure, the area under the curve is limited instead.

    Example:
        >>> from glasshouse import Evidence, audit_evidence
        >>> losses = {"target_loss": [0.1, 2.0], "shadow_loss": [[0.1, 1.0], [1.2, 0.2]]}
        >>> evidence = Evidence(**losses, shadow_members=[[1, 0], [0, 1]])
        >>> summary = audit_evidence(evidence, attacks=["loss"], members=[1, 0]).summary()
        >>> [limit.words for limit in usual_policy(summary).limits]
        ['AUC of the headline attack at most 0.6']
    """
    rate = None if summary.headline is None else summary.headline.rate
    if rate is not None and rate.reached and USUAL_RATIO * rate.wanted < 1:
        limits = [Limit(figure="tpr", at_fpr=rate.wanted, most=USUAL_RATIO * rate.wanted)]
    else:
        limits = [Limit(figure="auc", most=_USUAL_AUC)]
    privacy = summary.privacy
    if privacy is not None and privacy.claim is not None:
        limits.append(Limit(figure="epsilon", most=privacy.claim.epsilon))
    return Policy(limits=tuple(limits))
