"""What regulators and standards ask for (``clauses.toml``), and what a run can say to each clause."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from glasshouse.attacks.attack import attack_names, find_attack
from glasshouse.report.decision.rating import rating_of
from glasshouse.report.decision.verdict import groups_sentence, power_sentences, target_sentence
from glasshouse.report.format import whole
from glasshouse.report.summary import Summary


class Statement(NamedTuple):
    """One sentence of a run, and where it comes from."""

    kind: Literal["measured", "declared", "assumed"]  # by the audit, by whoever ran it, or by the method
    text: str


_measured = functools.partial(Statement, "measured")
_declared = functools.partial(Statement, "declared")
_assumed = functools.partial(Statement, "assumed")


def outcome(summary: Summary) -> Iterator[Statement]:
    """The rating by the usual policy and the verdict, after every warning about the input."""
    for warning in summary.context.warnings:
        yield _measured(f"Warning of the audit: {warning}")
    rating = rating_of(summary)
    yield _measured(f"Rated: {rating.word}. {' '.join(rating.sentences)}".rstrip())
    yield _measured(summary.verdict)


def attacks_tried(summary: Summary) -> Iterator[Statement]:
    """Which attacks ran, with how many shadow models, and which did not."""
    shadows = summary.context.shadows
    known = f"{shadows} shadow models ({summary.context.mode})"
    strength = known if shadows else "no shadow model, so the attacks are weak"
    names = ", ".join(attack.name for attack in summary.attacks)
    yield _measured(f"Membership inference was run with {strength}: {names}.")
    for name, reason in summary.left_out.items():
        yield _measured(f"Not run: {name}. {reason}")
    if summary.members is not None:
        inside, outside = whole(summary.members), whole(summary.records - summary.members)
        yield _measured(f"{inside} records of the training and {outside} non-members were judged.")


def likelihood_ratio(summary: Summary) -> Iterator[Statement]:
    """Which of the attacks compare likelihoods, and which learn from shadow models."""
    known = tuple(name for name in attack_names(graph=False) if find_attack(name).likelihood_ratio)
    ratio = [one.name for one in summary.attacks if one.name.startswith(known)]  # a name may go on with its parameters
    found = f"Likelihood-ratio attacks among them: {', '.join(ratio)}."
    yield _measured(found if ratio else "No likelihood-ratio attack was run.")
    if not summary.context.shadows:
        yield _measured("No shadow model was trained, so there is no shadow-model simulation.")


def smallest_leak(summary: Summary) -> Iterator[Statement]:
    """Which leak this audit could have detected."""
    for text in power_sentences(summary.power) if summary.power is not None else ():
        yield _measured(text)
    yield _assumed("Figures are for the attacks that were run. A stronger one may identify more members.")


def by_groups(summary: Summary) -> Iterator[Statement]:
    """Whether some groups of records leak more."""
    if text := groups_sentence(summary.groups, summary.worst_cell):
        yield _measured(text)


def how_well(summary: Summary) -> Iterator[Statement]:
    """How well the model does on its training records and on non-members: a gap is where leaks come from."""
    if text := target_sentence(summary.context):
        yield _measured(text)


def training(summary: Summary) -> Iterator[Statement]:
    """How the model was trained, as whoever ran the audit described it."""
    if summary.context.about:
        yield _declared(f"Data: {summary.context.about}")
    for name, value in summary.context.settings.items():
        yield _declared(f"{name}: {value}")


def claimed(summary: Summary) -> Iterator[Statement]:
    """A claimed guarantee, and what the attacks show about it."""
    privacy = summary.privacy
    if privacy is None or privacy.claim is None:
        yield _declared("No differential-privacy guarantee was claimed to the audit.")
    else:
        yield _declared(f"Claimed: ε = {privacy.claim.epsilon:g} at δ = {privacy.claim.delta:g}.")
    if privacy is not None:
        yield _measured(privacy.sentence())
        yield _assumed("Attacks give a lower bound. It can contradict a claimed ε, but never prove it.")


def like_the_others(summary: Summary) -> Iterator[Statement]:
    """Members should differ from non-members by the training alone, and shadow models stand for the target."""
    if summary.random_members is not None:
        yield _measured(summary.random_members.sentence())
    yield _assumed("The training records were drawn at random from the same population as the non-members.")
    if summary.context.shadows:
        yield _assumed("The shadow models were trained in the same way as the audited model.")


def who_was_trained_on(summary: Summary) -> Iterator[Statement]:
    """The members are what the owner states."""
    text = "Which records trained the model is stated by its owner; the audit cannot check that."
    missing = "Which records trained the model was not stated, so nothing was measured against the truth."
    yield _declared(missing if summary.members is None else text)


def same_answers(summary: Summary) -> Iterator[Statement]:
    """The attacker of the audit sees the answers that the audit saw."""
    yield _assumed(
        "The attacker gets the same answers as the audit, and knows records like those of the training. If the "
        "deployed model reveals more in its answers, the figures are too low."
    )


def repeatable(summary: Summary) -> Iterator[Statement]:
    """What is needed to run the audit again."""
    context = summary.context
    seed = "not known" if context.seed is None else context.seed
    yield _measured(f"Seed: {seed}. Fingerprint of the data: {context.fingerprint or 'not known'}.")
    if context.versions:
        versions = ", ".join(f"{name} {version}" for name, version in context.versions.items())
        yield _measured(f"Versions: {versions}.")


Says = Callable[[Summary], Iterator[Statement]]


class Clause(NamedTuple):
    """One thing that a source asks for."""

    place: str  # where in the source
    asks: str  # what it asks, in our own words
    says: tuple[Says, ...] = ()  # functions that give what a run has to say to it
    supply: tuple[str, ...] = ()  # keys of `POINTS`


class Source(NamedTuple):
    """A document that asks for evidence."""

    name: str
    reference: str  # with the version that was read
    clauses: tuple[Clause, ...]


_STRENGTH = (attacks_tried, likelihood_ratio, outcome, by_groups, smallest_leak, like_the_others)
_ALONE = (claimed, how_well, repeatable, same_answers, training, who_was_trained_on)
_SAYS = {one.__name__: (one,) for one in (*_STRENGTH, *_ALONE)} | {"strength": _STRENGTH}  # as the file names them
_FILE: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
POINTS: Mapping[str, str] = _FILE["points"]
SOURCES = tuple(
    Source(
        name=source["name"],
        reference=source["reference"],
        clauses=tuple(
            Clause(
                place=one["place"],
                asks=one["asks"],
                says=tuple(says for name in one["says"] for says in _SAYS[name]),
                supply=tuple(one.get("supply", ())),
            )
            for one in source["clauses"]
        ),
    )
    for source in _FILE["source"]
)
