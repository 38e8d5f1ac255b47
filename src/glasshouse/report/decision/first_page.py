"""The first page of a report, as plain data: for the decision-maker. It also says what was tried and what was not.

What an attacker can do is told in counts instead of rates: "of 1 000 members, about 40 could be identified".
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from glasshouse.evaluation.groups import GroupLeak
from glasshouse.report.decision.conclusion import attackers
from glasshouse.report.decision.next_steps import Step, model_words, next_steps
from glasshouse.report.decision.rating import Rating, rating_of
from glasshouse.report.decision.verdict import cell_sentence
from glasshouse.report.figures import RateFigure
from glasshouse.report.format import whole
from glasshouse.report.policy import Policy
from glasshouse.report.summary import Summary

_USUAL, _MOST = 1000, 1_000_000


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """The strongest attack's figure as counts, out of ``per`` members and ``per`` non-members."""

    unit: str  # what is counted, in the plural
    per: int  # 1 000, or more where fewer than one of 1 000 non-members may be flagged
    found: float  # members that are identified
    low: float  # lower end of its interval
    high: float  # upper end of it
    wrong: float  # non-members that are flagged with them
    chance: float  # members that guessing identifies with as many wrong flags
    members: int  # how many members the figure was measured on
    others: int  # how many non-members
    confidence: float  # of the interval
    reached: bool = True  # False if no threshold flags so few non-members as wanted, because scores are tied
    leak: bool = True  # whether a leak is shown; without one members are flagged as guessing flags them

    def sentence(self) -> str:
        """The counts in words, with the interval."""
        per, members = whole(self.per), f"Of {whole(self.per)} {self.unit} in the training data"
        found, wrong = counted(self.found), counted(self.wrong)
        between = f"(between {counted(self.low)} and {counted(self.high)})"
        if not self.leak:
            return (
                f"No better than guessing: {found} against {wrong}. {members} {found} are flagged {between}, and of "
                f"{per} non-members {wrong}."
            )
        return (
            f"{members}, an attacker could identify about {found} {between}, while wrongly flagging {wrong} of {per} "
            f"non-members. Guessing, with as many wrong flags, would identify about {counted(self.chance)}."
        )

    def measured(self) -> str:
        """What the counts rest on."""
        told = (
            f"Measured on {whole(self.members)} {self.unit} of the training data and {whole(self.others)} non-members. "
            f"“Between” holds with {100 * self.confidence:g} % confidence."
        )
        if self.reached:
            return told
        return f"{told} The model gives the same answer for many {self.unit}, so no attacker can flag fewer."


def exposure_of(summary: Summary) -> Exposure | None:
    """The counts of a run, without a leak those of the attack's own threshold; None where there is nothing to count."""
    shown = summary.conclusion.measured
    if shown is None or shown.rate is None:
        return None
    known: dict[str, Any] = {"unit": summary.unit, "leak": bool(summary.conclusion.leak)}
    known |= {"members": shown.members, "others": shown.non_members}
    found = exposure_at(shown.rate, confidence=shown.confidence, **known)
    flags = summary.attack(shown.attack).first_flags
    if found.leak or flags is None:
        return found
    low, high = (found.per * end for end in flags.tpr_interval)
    wrong = found.per * flags.fpr
    return dataclasses.replace(found, found=found.per * flags.tpr, low=low, high=high, wrong=wrong, chance=wrong)


def exposure_at(figure: RateFigure, *, confidence: float, **known: Any) -> Exposure:
    """One rate as counts; the first that can be reached, where the wanted one cannot."""
    wrong = figure.wanted if figure.reached else figure.fpr
    per = _USUAL
    while per * wrong < 1 and per < _MOST:
        per *= 10
    return Exposure(
        per=per,
        found=per * figure.tpr,
        low=per * figure.tpr_interval.low,
        high=per * figure.tpr_interval.high,
        wrong=per * wrong,
        chance=per * figure.chance,
        confidence=confidence,
        reached=figure.reached,
        **known,
    )


def pairs_sentence(summary: Summary) -> str:
    """The area under the curve in words: how often the attacker is right about a pair; empty where it says nothing."""
    shown = summary.conclusion.measured
    if shown is None:
        return ""
    low, high = shown.auc_interval
    one = summary.unit.removesuffix("s")
    return (
        f"Given one {one} of the training data and one non-member, the attacker can tell which is which in about "
        f"{100 * shown.auc:.0f} of 100 cases (between {100 * low:.0f} and {100 * high:.0f}); guessing is right in 50."
    )


def counted(value: float) -> str:
    """A count: whole, but never a 0 that was not measured."""
    return "fewer than 1" if 0 < value < 0.5 else whole(value)


_NOT_TRIED = (
    "An attacker with access to the model itself: its weights, its gradients, or its states during training.",
    "Inferring unknown attributes of a person, or properties of the training data as a whole.",
    "Reconstructing training data, such as texts or images, from the model{but}.",
    "An attacker who inserted records into the training data, or who sees the model before and after an update.",
)
_LABELS = "An attacker who sees only the predicted class, without its confidence (it would identify no more)."
_CONFIDENCE = "An attacker who sees the model's confidence (it would identify at least as many)."


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What was tried, in plain sentences."""

    attacker: str  # what the attacker knew and could do
    attacks: tuple[str, ...]  # their names
    left_out: tuple[str, ...]  # attacks that did not run, each with its reason
    not_tried: tuple[str, ...]  # kinds of attack that this audit does not cover


def tried_of(summary: Summary) -> Tried:
    """What a run tried."""
    context, unit = summary.context, summary.unit
    regression, labels_only = context.test_rmse is not None, context.settings.get("answers") == "labels alone"
    own = "loss" in context.settings
    answers = "the predicted number" if regression else "the confidence of every answer"
    answers = "only the predicted class" if labels_only else "what gives the loss of each" if own else answers
    answers = "the log-probability of every token" if summary.texts is not None else answers
    extracted = summary.texts is not None and summary.texts.extraction is not None
    rest = [one.format(but=", but for the likeliest continuation of texts" * extracted) for one in _NOT_TRIED]
    models = f"trained {context.shadows} similar models (shadow models)"
    told = (
        f"The attacker can query the model about any of the {unit}, sees {answers}, knows how the model was trained, "
        f"and {models if context.shadows else 'had no models to compare it with'}"
    )
    if context.shadows and context.mode == "online":
        told += f", including on the {unit} in question"
    return Tried(
        attacker=f"{told}.",
        attacks=tuple(attack.title for attack in attackers(summary.attacks)),
        left_out=tuple(f"{name}: {reason.rstrip('.')}." for name, reason in summary.left_out.items()),
        not_tried=(*([] if regression or own else [_CONFIDENCE if labels_only else _LABELS]), *rest),
    )


_SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class FirstPage:
    """Everything on the first page."""

    rating: Rating  # in a word, with its rule
    subtitle: str  # the model and the data
    named: tuple[str, str]  # what the page says about whom it names: in short, and how to share it
    exposure: Exposure | None  # what an attacker can do, in counts; None where that is not known
    pairs: str  # the same about pairs; empty where it is not known
    groups: tuple[GroupLeak, ...]  # the groups to show: all that differ, and the largest others
    groups_text: str  # which of them differ
    tried: Tried  # what was tried and what not
    steps: tuple[Step, ...]  # what to do next
    facts: tuple[tuple[str, str], ...]  # date, model, data and so on, each with its name


def first_page(summary: Summary, policy: Policy | None = None) -> FirstPage:
    """Gather the first page; the policy is that of the user, the usual one by default."""
    rating, pairs = rating_of(summary, policy), pairs_sentence(summary)
    groups = _shown(summary) if pairs else ()
    return FirstPage(
        rating=rating,
        subtitle=f"{model_words(str(summary.context.settings.get('trainer', '')))}; {_counts(summary)}",
        named=_named(summary),
        exposure=exposure_of(summary),
        pairs=pairs,
        groups=groups,
        groups_text=_groups_text(summary) if groups else "",
        tried=tried_of(summary),
        steps=next_steps(summary, rating, policy),
        facts=tuple((name, text) for name, text in _facts(summary) if text),
    )


def _named(summary: Summary) -> tuple[str, str]:
    unit, count = summary.unit, summary.top_records.height
    if summary.context.redacted:
        return "Ids are keyed hashes.", (
            f"Ids of {unit} are replaced by keyed hashes. The holder of the key, which is not in this file, can look "
            f"them up (glasshouse lookup). Classes, groups and scores of individual {unit} are still shown."
        )
    if not count:
        return (
            f"This report lists no {unit}.",
            f"This report lists no {unit}, since no leak is shown. Other files of the run have the ids of all.",
        )
    told = f"names {count} {unit} by their ids and says which of them trained the model"
    if summary.members is None:
        told = f"names {count} {unit} by their ids, those that look most like training data first"
    share = "To share it, replace the ids: glasshouse report RUN --redact."
    return f"Confidential: names {count} {unit} by their ids.", f"Confidential. This report {told}. {share}"


def _shown(summary: Summary) -> tuple[GroupLeak, ...]:
    """Groups that differ, and the largest others, in their order."""
    measured = [one for one in summary.groups if one.tpr is not None or one.auc is not None]
    order = sorted(measured, key=lambda one: (not one.singled_out, -one.members))[:_SHOWN]
    return tuple(one for one in measured if one in order)


def _groups_text(summary: Summary) -> str:
    groups, told = summary.groups, []
    compared = sum(one.judged for one in groups)
    for which, words in (("more", "More exposed than the other groups of their column"), ("less", "Less exposed")):
        if named := [f"{one.column} {one.group}" for one in groups if one.singled_out == which]:
            told.append(f"{words}: {', '.join(named)}.")
    if not told and compared and summary.conclusion.leak:
        told.append(f"None of the {compared} compared groups differs significantly from the others.")
    elif not told and compared:
        told.append("Since no leak is shown, no group is reported as different.")
    if summary.worst_cell is not None:
        told.append(cell_sentence(summary.worst_cell))
    if small := len(groups) - compared:
        told.append(f"{whole(small)} {'group was' if small == 1 else 'groups were'} too small to compare.")
    return " ".join(told)


def _facts(summary: Summary) -> list[tuple[str, str]]:
    context = summary.context
    version = context.versions.get("glasshouse", "")
    about = f"{context.about} " if context.about else ""
    return [
        ("Date", f"{summary.written.astimezone(UTC):%d %B %Y, %H:%M} UTC" if summary.written is not None else ""),
        ("Author", context.author or "not named (--author)"),
        ("Model", model_words(str(context.settings.get("trainer", "")))),
        ("Loss", str(context.settings.get("loss", ""))),
        ("Quality", _quality(summary)),
        ("Data", f"{about}{_counts(summary)}."),
        ("Data fingerprint", context.fingerprint or ""),
        ("Seed", "" if context.seed is None else str(context.seed)),
        ("Made with", f"Glasshouse {version}" if version else ""),
    ]


def _counts(summary: Summary) -> str:
    members = "" if summary.members is None else f", {whole(summary.members)} of them training data"
    return f"{whole(summary.records)} {summary.unit} audited{members}"


def _quality(summary: Summary) -> str:
    context = summary.context
    if summary.texts is not None and summary.texts.perplexities is not None:
        low, high = summary.texts.perplexities
        return f"perplexity {low:.1f} on the training data and {high:.1f} on non-members"
    if context.train_accuracy is not None and context.test_accuracy is not None:
        inside = f"{100 * context.train_accuracy:.0f} of 100 {summary.unit} of the training data"
        return f"correct for {inside} and {100 * context.test_accuracy:.0f} of 100 non-members"
    if context.train_rmse is not None and context.test_rmse is not None:
        return f"typical error {context.train_rmse:.4g} on the training data and {context.test_rmse:.4g} on non-members"
    return ""
