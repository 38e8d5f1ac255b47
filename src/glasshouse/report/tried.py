"""What an audit tried, and what it did not: no reader should take silence for safety."""

from __future__ import annotations

from dataclasses import dataclass

from glasshouse.report.exposure import unit_of
from glasshouse.report.summarise import Summary
from glasshouse.report.verdict import attackers

__all__ = ["Tried", "tried_of"]

_NOT_TRIED = (
    "An attacker who sees the model's inside: its weights, gradients, or how it changed while it learned.",
    "Guessing a person's unknown attributes, or properties of the training data as a whole.",
    "Getting training data back out of the model, word by word or pixel by pixel.",
    "An attacker who put records into the training data, or who sees the model before and after an update.",
)
_LABELS = "An attacker who sees only the model's decision, without its confidence (it would find less, or as much)."
_CONFIDENCE = "An attacker who sees how sure the model is: it would find more, or as much."


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What was tried, in plain sentences.

    Args:
        attacker: what the attacker knew and could do.
        attacks: names of the attacks.
        left_out: attacks that did not run, each with its reason.
        not_tried: kinds of attack that this audit does not cover.
    """

    attacker: str
    attacks: tuple[str, ...]
    left_out: tuple[str, ...]
    not_tried: tuple[str, ...]


def tried_of(summary: Summary) -> Tried:
    """What a run tried.

    Example:
        >>> from glasshouse import Evidence, audit_evidence
        >>> losses = {"target_loss": [0.1, 2.0], "shadow_loss": [[0.1, 1.0], [1.2, 0.2]]}
        >>> evidence = Evidence(**losses, shadow_members=[[1, 0], [0, 1]])
        >>> tried_of(audit_evidence(evidence, attacks=["loss"], members=[1, 0]).summary()).attacks
        ('loss',)
    """
    context, unit = summary.context, unit_of(summary)
    answers = _answers(summary)
    models = (
        f"{context.shadows} look-alike models (shadow models)" if context.shadows else "no models to compare it with"
    )
    trained = "trained" if context.shadows else "had"
    told = (
        f"The attacker can ask the model about any of the {unit}, sees {answers}, knows what the training looked like, "
        f"and {trained} {models}"
    )
    if context.shadows and context.mode == "online":
        told += ", also on the very ones that it asks about"
    told += "."
    left_out = tuple(f"{name}: {reason.rstrip('.')}." for name, reason in summary.left_out.items())
    missing = _LABELS if answers != _DECISION else _CONFIDENCE
    regression = context.test_rmse is not None
    return Tried(
        attacker=told,
        attacks=tuple(attack.title for attack in attackers(summary.attacks)),
        left_out=left_out,
        not_tried=_NOT_TRIED if regression else (missing, *_NOT_TRIED),
    )


_DECISION = "only the model's decision"


def _answers(summary: Summary) -> str:
    if summary.context.settings.get("answers") == "labels alone":
        return _DECISION
    if summary.context.test_rmse is not None:
        return "the number that it predicts"
    return "how sure the model is of every answer"
