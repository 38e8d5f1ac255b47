"""What a run can say to a clause: each function gives statements, and each statement says what kind it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from glasshouse.attacks.registry import attack_names, find_attack
from glasshouse.report.next_questions import groups_sentence, power_sentences
from glasshouse.report.summarise import Summary
from glasshouse.report.words import percent, whole

__all__ = [
    "Statement",
    "attacks_tried",
    "by_groups",
    "claimed",
    "drawn_at_random",
    "how_well",
    "likelihood_ratio",
    "outcome",
    "repeatable",
    "same_answers",
    "smallest_leak",
    "trained_alike",
    "training",
    "who_was_trained_on",
]


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One sentence of a run, and where it comes from.

    Args:
        kind: ``"measured"`` by the audit, ``"declared"`` by whoever ran it, or ``"assumed"`` by the method.
        text: the sentence.

    Example:
        >>> Statement(kind="declared", text="The trainer is a forest.").kind
        'declared'
    """

    kind: Literal["measured", "declared", "assumed"]
    text: str


def outcome(summary: Summary) -> Iterator[Statement]:
    """The verdict, after every warning about the input."""
    for warning in summary.context.warnings:
        yield Statement(kind="measured", text=f"Warning of the audit: {warning}")
    yield Statement(kind="measured", text=summary.verdict)


def attacks_tried(summary: Summary) -> Iterator[Statement]:
    """Which attacks ran, with how many shadow models, and which did not."""
    names = ", ".join(attack.name for attack in summary.attacks)
    shadows = summary.context.shadows
    strength = (
        f"{shadows} shadow models ({summary.context.mode})"
        if shadows
        else "no shadow model, so the attacks are weak ones"
    )
    yield Statement(kind="measured", text=f"Membership inference was tried with {strength}: {names}.")
    for name, reason in summary.left_out.items():
        yield Statement(kind="measured", text=f"Not run: {name}. {reason}")
    if summary.members is not None:
        others = whole(summary.records - summary.members)
        text = f"{whole(summary.members)} records of the training and {others} others were judged."
        yield Statement(kind="measured", text=text)


def likelihood_ratio(summary: Summary) -> Iterator[Statement]:
    """Which of the attacks compare likelihoods, and which learn from shadow models."""
    tried = [attack.name for attack in summary.attacks]
    known = tuple(name for name in attack_names(graph=False) if find_attack(name).likelihood_ratio)
    ratio = [name for name in tried if name.startswith(known)]  # a name may go on with its parameters
    found = (
        f"Likelihood-ratio attacks among them: {', '.join(ratio)}." if ratio else "No likelihood-ratio attack was run."
    )
    yield Statement(kind="measured", text=found)
    if not summary.context.shadows:
        yield Statement(kind="measured", text="No shadow model was trained, so there is no shadow-model simulation.")


def smallest_leak(summary: Summary) -> Iterator[Statement]:
    """Which leak this audit could have shown."""
    if summary.power is not None:
        for text in power_sentences(summary.power):
            yield Statement(kind="measured", text=text)
    text = "Figures are for the attacks that were tried. A stronger one may find more."
    yield Statement(kind="assumed", text=text)


def by_groups(summary: Summary) -> Iterator[Statement]:
    """Whether some groups of records leak more."""
    if text := groups_sentence(summary.groups):
        yield Statement(kind="measured", text=text)


def how_well(summary: Summary) -> Iterator[Statement]:
    """How well the model does on its training records and on others: a gap is where leaks come from."""
    context = summary.context
    if context.train_accuracy is not None and context.test_accuracy is not None:
        inside, outside = percent(context.train_accuracy), percent(context.test_accuracy)
        text = f"Accuracy {inside} on training records, {outside} on others."
        yield Statement(kind="measured", text=text)
    if context.train_rmse is not None and context.test_rmse is not None:
        text = (
            f"Root mean squared error {context.train_rmse:.4g} on training records, {context.test_rmse:.4g} on others."
        )
        yield Statement(kind="measured", text=text)


def training(summary: Summary) -> Iterator[Statement]:
    """How the model was trained, as whoever ran the audit described it."""
    context = summary.context
    if context.about:
        yield Statement(kind="declared", text=f"Data: {context.about}")
    for name, value in context.settings.items():
        yield Statement(kind="declared", text=f"{name}: {value}")


def claimed(summary: Summary) -> Iterator[Statement]:
    """A claimed guarantee, and what the attacks show about it."""
    privacy = summary.privacy
    if privacy is None or privacy.claim is None:
        yield Statement(kind="declared", text="No differential-privacy guarantee was claimed to the audit.")
    else:
        text = f"Claimed: ε = {privacy.claim.epsilon:g} at δ = {privacy.claim.delta:g}."
        yield Statement(kind="declared", text=text)
    if privacy is not None:
        yield Statement(kind="measured", text=privacy.sentence())
        text = "A bound that attacks show is a lower one. It can contradict a claimed ε, but never prove it."
        yield Statement(kind="assumed", text=text)


def drawn_at_random(summary: Summary) -> Iterator[Statement]:
    """Whether members differ from the others in other ways than by the training."""
    if summary.drawn is not None:
        yield Statement(kind="measured", text=summary.drawn.sentence())
    text = "The records of the training were drawn at random from the same population as the others."
    yield Statement(kind="assumed", text=text)


def who_was_trained_on(summary: Summary) -> Iterator[Statement]:
    """The members are what the owner says."""
    known = summary.members is not None
    text = "Which records trained the model is what its owner said; the audit cannot check that."
    missing = "Which records trained the model was not told, so nothing was measured against the truth."
    yield Statement(kind="declared", text=text if known else missing)


def trained_alike(summary: Summary) -> Iterator[Statement]:
    """Shadow models stand for the target only if they were trained as it was."""
    if summary.context.shadows:
        yield Statement(kind="assumed", text="Shadow models were trained as the audited model was.")


def same_answers(summary: Summary) -> Iterator[Statement]:
    """The attacker of the audit sees the answers that the audit saw."""
    text = (
        "The attacker gets the answers that the audit got, and knows records like those of the training. If the model "
        "in use answers more than that, the figures are too low."
    )
    yield Statement(kind="assumed", text=text)


def repeatable(summary: Summary) -> Iterator[Statement]:
    """What is needed to run the audit again."""
    context = summary.context
    seed = "not known" if context.seed is None else str(context.seed)
    fingerprint = context.fingerprint or "not known"
    yield Statement(kind="measured", text=f"Seed: {seed}. Fingerprint of the data: {fingerprint}.")
    versions = ", ".join(f"{name} {version}" for name, version in context.versions.items())
    if versions:
        yield Statement(kind="measured", text=f"Versions: {versions}.")
