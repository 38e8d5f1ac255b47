"""The first page of a report, as plain data: for the one who decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC

from glasshouse.evaluation.groups import GroupLeak
from glasshouse.report.exposure import Exposure, exposure_of, pairs_sentence, unit_of
from glasshouse.report.model_words import model_words
from glasshouse.report.next_steps import Step, next_steps
from glasshouse.report.policy import Policy
from glasshouse.report.rating import Rating, rating_of
from glasshouse.report.summarise import Summary
from glasshouse.report.tried import Tried, tried_of
from glasshouse.report.words import whole

__all__ = ["FirstPage", "first_page"]

_SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class FirstPage:
    """Everything on the first page.

    Args:
        rating: in a word, with its rule.
        named: what the page says about whom it names.
        exposure: what an attacker can do, in counts; None where that is not known.
        pairs: the same about pairs; empty where it is not known.
        groups: the groups to show, the largest of each column and all that stand out.
        groups_text: which of them stand out.
        tried: what was tried and what not.
        steps: what to do next.
        facts: date, model, data and so on, each with its name.
        unit: what is audited, in the plural.
    """

    rating: Rating
    named: str
    exposure: Exposure | None
    pairs: str
    groups: tuple[GroupLeak, ...]
    groups_text: str
    tried: Tried
    steps: tuple[Step, ...]
    facts: tuple[tuple[str, str], ...]
    unit: str


def first_page(summary: Summary, policy: Policy | None = None) -> FirstPage:
    """Gather the first page.

    Args:
        summary: of the run.
        policy: of the owner; the usual one by default.

    Example:
        >>> from glasshouse import Evidence, audit_evidence
        >>> losses = {"target_loss": [0.1, 2.0], "shadow_loss": [[0.1, 1.0], [1.2, 0.2]]}
        >>> evidence = Evidence(**losses, shadow_members=[[1, 0], [0, 1]])
        >>> page = first_page(audit_evidence(evidence, attacks=["loss"], members=[1, 0]).summary())
        >>> page.unit, page.named.split(".")[0]
        ('records', 'Confidential')
    """
    rating = rating_of(summary, policy)
    trusted = bool(pairs := pairs_sentence(summary))
    groups = _shown(summary.groups) if trusted else ()
    return FirstPage(
        rating=rating,
        named=_named(summary),
        exposure=exposure_of(summary),
        pairs=pairs,
        groups=groups,
        groups_text=_groups_text(summary.groups, leak=rating.level != "none") if groups else "",
        tried=tried_of(summary),
        steps=next_steps(summary, rating, policy),
        facts=tuple((name, text) for name, text in _facts(summary) if text),
        unit=unit_of(summary),
    )


def _named(summary: Summary) -> str:
    unit, count = unit_of(summary), summary.top_records.height
    if summary.context.redacted:
        return (
            f"Ids of {unit} are replaced by keyed hashes. Who has the key can look them up (glasshouse lookup); it is "
            f"not in this file. Classes, groups and scores of single {unit} are still shown."
        )
    told = f"names {count} {unit} by their ids and says which of them trained the model"
    if summary.members is None:
        told = f"names {count} {unit} by their ids, those that look most like training data first"
    return f"Confidential. This report {told}. To pass it on, replace the ids: glasshouse report RUN --redact."


def _shown(groups: Sequence[GroupLeak]) -> tuple[GroupLeak, ...]:
    """Groups that stand out, and the largest others, in their order."""
    measured = [one for one in groups if one.tpr is not None or one.auc is not None]
    order = sorted(measured, key=lambda one: (not one.singled_out, -one.members))[:_SHOWN]
    return tuple(one for one in measured if one in order)


def _groups_text(groups: Sequence[GroupLeak], *, leak: bool) -> str:
    compared = sum(one.judged for one in groups)
    more = [f"{one.column} {one.group}" for one in groups if one.singled_out == "more"]
    less = [f"{one.column} {one.group}" for one in groups if one.singled_out == "less"]
    told = []
    if more:
        told.append(f"More exposed than the others of their kind: {', '.join(more)}.")
    if less:
        told.append(f"Less exposed: {', '.join(less)}.")
    if not told and compared and leak:
        told.append(f"None of the {compared} groups that could be compared is shown to be more or less exposed.")
    if not told and compared:
        told.append("Where no leak is shown, no group is singled out.")
    small = sum(not one.judged for one in groups)
    if small:
        told.append(f"{whole(small)} {'group was' if small == 1 else 'groups were'} too small to compare.")
    return " ".join(told)


def _facts(summary: Summary) -> list[tuple[str, str]]:
    context = summary.context
    members = "" if summary.members is None else f", {whole(summary.members)} of them trained on"
    versions = context.versions.get("glasshouse", "")
    return [
        ("Date", f"{summary.written.astimezone(UTC):%d %B %Y, %H:%M} UTC" if summary.written is not None else ""),
        ("Author", context.author or "not named (--author)"),
        ("Model", model_words(str(context.settings.get("trainer", "")))),
        ("How good it is", _accuracy(summary)),
        (
            "Data",
            " ".join(filter(None, [context.about, f"{whole(summary.records)} {unit_of(summary)} audited{members}."])),
        ),
        ("Data fingerprint", context.fingerprint or ""),
        ("Seed", "" if context.seed is None else str(context.seed)),
        ("Made with", f"Glasshouse {versions}" if versions else ""),
    ]


def _accuracy(summary: Summary) -> str:
    context = summary.context
    if context.train_accuracy is not None and context.test_accuracy is not None:
        return (
            f"right about {100 * context.train_accuracy:.0f} of 100 {unit_of(summary)} of the training data and "
            f"{100 * context.test_accuracy:.0f} of 100 outsiders"
        )
    if context.train_rmse is not None and context.test_rmse is not None:
        return f"typical error {context.train_rmse:.4g} on the training data and {context.test_rmse:.4g} on outsiders"
    return ""
