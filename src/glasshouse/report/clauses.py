"""What regulators and standards ask for, in our own words, and what a run can say to each clause.

Clauses are paraphrased; a reader must read the source. Paragraph numbers are given only where they are certain.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from glasshouse.attacks.registry import attack_names, find_attack
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


def drawn_at_random(summary: Summary) -> Iterator[Statement]:
    """Whether members differ from non-members in other ways than by the training."""
    if summary.random_members is not None:
        yield _measured(summary.random_members.sentence())
    yield _assumed("The training records were drawn at random from the same population as the non-members.")


def who_was_trained_on(summary: Summary) -> Iterator[Statement]:
    """The members are what the owner states."""
    text = "Which records trained the model is stated by its owner; the audit cannot check that."
    missing = "Which records trained the model was not stated, so nothing was measured against the truth."
    yield _declared(missing if summary.members is None else text)


def trained_alike(summary: Summary) -> Iterator[Statement]:
    """Shadow models stand for the target only if they were trained as it was."""
    if summary.context.shadows:
        yield _assumed("The shadow models were trained in the same way as the audited model.")


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


# what a run cannot say and its owner must add, by the key of a form (``supply.yaml``)
POINTS: Mapping[str, str] = {
    "risk_accepted": "Whether the measured risk is small enough: a decision of the controller and the authority.",
    "reach": "Who can reach the model and its answers, and which other data they could join with them.",
    "data_origin": "Where the training data come from, and how they were minimised, cleaned or pseudonymised.",
    "answers_limited": "What limits the answers of the model in use (labels alone, rounding, rate limits).",
    "reviewed_by": "Who reviewed the development of the model, when, and with what result.",
    "other_attacks": "Tests of attribute inference, exfiltration, regurgitation, inversion and reconstruction: this "
    "run tested membership inference alone.",
    "repeated": "How often the tests are repeated, and after which changes of the model.",
    "impact_assessment": "The data protection impact assessment, or the decision that none is needed.",
    "officer_advice": "The advice of the data protection officer.",
    "calibration": "How the outputs are calibrated: this run does not measure that.",
    "accountant": "The record of the privacy accountant: noise, clipping, sampling rate, steps, ε and δ.",
    "limit_set_by": "What counts as meaningful: a limit that was set before the audit, and who set it.",
    "model_version": "That the audited model is the one in use: its version or checksum.",
    "model_choice": "Why this kind of model and these parameters were needed for the research.",
    "file_checked": "Simulated attribute inference, and a check that the model's file holds no training records (as "
    "those of nearest neighbours and support vector machines do): this run looks at answers alone.",
    "release_tier": "The tier or class of the release under the rules of the environment, and who decided it.",
    "recipient": "Who receives the model, and whether as a file or behind an interface.",
    "risk_appetite": "The risk that the environment accepts for outputs of this kind, and where it is written down.",
    "kept_record": "Where this evidence file and its JSON record are kept, and for how long.",
}

Says = Callable[[Summary], Iterator[Statement]]
_STRENGTH = (attacks_tried, likelihood_ratio, outcome, by_groups, smallest_leak, drawn_at_random, trained_alike)


@dataclass(frozen=True, kw_only=True)
class Clause:
    """One thing that a source asks for."""

    place: str  # where in the source
    asks: str  # what it asks, in our own words
    says: tuple[Says, ...] = ()  # functions that give what a run has to say to it
    supply: tuple[str, ...] = ()  # keys of `POINTS`


@dataclass(frozen=True, kw_only=True)
class Source:
    """A document that asks for evidence."""

    name: str
    reference: str  # with the version that was read
    clauses: tuple[Clause, ...]


SOURCES = (
    Source(
        name="European Data Protection Board, Opinion 28/2024 on AI models",
        reference="Adopted 17 December 2024; edpb.europa.eu. The parts below belong to its first question: when a "
        "model trained on personal data may be called anonymous.",
        clauses=(
            Clause(
                place="Question 1, the test itself",
                asks="Judged case by case: it must be very unlikely that persons of the training data are identified "
                "through the model, or that their data are obtained from it by asking it, with all means that "
                "somebody is reasonably likely to use.",
                says=(outcome, by_groups, smallest_leak, same_answers),
                supply=("risk_accepted", "reach"),
            ),
            Clause(
                place="Question 1, design of the model",
                asks="How data were chosen and reduced, how the training limits what is learned about a person, and "
                "what the answers give away.",
                says=(training, claimed, how_well),
                supply=("data_origin", "answers_limited"),
            ),
            Clause(
                place="Question 1, analysis of the model",
                asks="Whether the measures were carried out as planned, shown by reviews or audits.",
                says=(repeatable,),
                supply=("reviewed_by",),
            ),
            Clause(
                place="Question 1, testing and resistance to attacks",
                asks="Structured tests against state-of-the-art attacks, with their scope, how often and how well they "
                "were made; named are membership and attribute inference, exfiltration, regurgitation of training "
                "data, model inversion and reconstruction.",
                says=(attacks_tried, outcome, smallest_leak, drawn_at_random, trained_alike),
                supply=("other_attacks", "repeated"),
            ),
            Clause(
                place="Question 1, documentation",
                asks="Records that let an authority follow the assessment: impact assessments, the advice of the data "
                "protection officer, measures taken, and what shows the resistance of the model.",
                says=(repeatable, who_was_trained_on),
                supply=("impact_assessment", "officer_advice"),
            ),
        ),
    ),
    Source(
        name="OWASP AI Security Verification Standard (AISVS) 1.0, C11.2 Membership inference and model inversion",
        reference="github.com/OWASP/AISVS, version 1.0 as of September 2026 (C11.3 is about model extraction).",
        clauses=(
            Clause(
                place="11.2.3 (level 2)",
                asks="Outputs are calibrated, so that the model is not overconfident.",
                says=(how_well,),
                supply=("calibration",),
            ),
            Clause(
                place="11.2.4 (level 2)",
                asks="Training on sensitive data uses differentially private optimisation.",
                says=(claimed, training),
                supply=("accountant",),
            ),
            Clause(
                place="11.2.5 (level 3)",
                asks="Simulated membership-inference attacks show that an attacker does no better than guessing on the "
                "evaluated data.",
                says=_STRENGTH,
                supply=("limit_set_by", "model_version"),
            ),
        ),
    ),
    Source(
        name="United Kingdom, trusted research environments: release of trained models",
        reference="GRAIMATTER recommendations (2022), SACRO-ML (arXiv 2212.01233) and the SATRE specification, pillar "
        "Data management, as read in its repository (sa-tre/satre-specification); SATRE is cited by chapter, since "
        "its numbers differ between versions. Each environment has its own rules.",
        clauses=(
            Clause(
                place="Before and during the training",
                asks="Choices of model and training that are known to raise the risk, such as overfitting, are avoided "
                "or explained.",
                says=(training, how_well, claimed),
                supply=("model_choice",),
            ),
            Clause(
                place="After the training",
                asks="The trained model is attacked in simulations, and the output checker gets the results with a "
                "description of how they were made.",
                says=(*_STRENGTH, repeatable),
                supply=("file_checked",),
            ),
            Clause(
                place="Release",
                asks="How sensitive the data are, who receives the model and in which form decide how strict the "
                "checks are, and whether it leaves the environment.",
                says=(who_was_trained_on, same_answers),
                supply=("release_tier", "recipient"),
            ),
            Clause(
                place="SATRE, output management: basis and automation of checks",
                asks="Output checkers decide on a statistical basis, helped by checks that are partly automatic; for "
                "outputs that nobody can read, such as files of models, the risks are mitigated and documented.",
                says=(*_STRENGTH,),
                supply=("risk_appetite",),
            ),
            Clause(
                place="SATRE, output management and data lifecycle: records",
                asks="Thresholds, the accepted risk and the versions of the tools behind a decision are on record, and "
                "decisions about data can be inspected by all who are concerned. The file appendix.json is that record "
                "in a form that programs read.",
                says=(repeatable,),
                supply=("kept_record",),
            ),
        ),
    ),
)
