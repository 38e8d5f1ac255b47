"""The evidence file: what regulators and standards ask for (``appendix.toml``), and what a run says to each clause."""

from __future__ import annotations

import functools
import json
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from markupsafe import Markup

from glasshouse.attacks.attack import attack_names, find_attack
from glasshouse.io.files import PAGE_MARK, RECORD_MARK
from glasshouse.report.decision.rating import rating_of
from glasshouse.report.decision.verdict import groups_sentence, power_sentences, target_sentence
from glasshouse.report.figures import Estimate, Figure, columns_at
from glasshouse.report.format import whole
from glasshouse.report.html import TEMPLATES, render_page
from glasshouse.report.policy import Finding
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


_STRENGTH = (attacks_tried, likelihood_ratio, outcome, by_groups, smallest_leak, like_the_others)
_ALONE = (claimed, how_well, repeatable, same_answers, training, who_was_trained_on)
_SAYS = {one.__name__: (one,) for one in (*_STRENGTH, *_ALONE)} | {"strength": _STRENGTH}  # as the file names them


class Clause(NamedTuple):
    """One thing that a source asks for."""

    place: str  # where in the source
    asks: str  # what it asks, in our own words
    says: Sequence[str] = ()  # keys of `_SAYS`: the functions that give what a run has to say to it
    supply: Sequence[str] = ()  # keys of `POINTS`


class Source(NamedTuple):
    """A document that asks for evidence."""

    name: str
    reference: str  # with the version that was read
    clauses: Sequence[Clause]


_FILE: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
POINTS: Mapping[str, str] = _FILE["points"]
SOURCES = tuple(Source(**one | {"clauses": [Clause(**each) for each in one["clauses"]]}) for one in _FILE["source"])


class Answer(NamedTuple):
    """What a run says to one clause."""

    clause: Clause
    statements: Sequence[Statement]

    def of(self, kind: str) -> list[str]:
        """The texts of one kind."""
        return [statement.text for statement in self.statements if statement.kind == kind]


@dataclass(frozen=True)
class Appendix:
    """An evidence file: what a run measured, declared and assumed, beside what sources ask for.

    Args:
        summary: of the run.
        checksum: SHA-256 of its figures, ``metrics.json``, so that the document belongs to one run.
        findings: of a policy on the run.
        supplied: the owner's answers to what a run cannot say, by the key of `POINTS`.

    Example:
        >>> from glasshouse import Evidence, audit_evidence
        >>> losses = {"target_loss": [0.1, 2.0], "shadow_loss": [[0.1, 1.0], [1.2, 0.2]]}
        >>> evidence = Evidence(**losses, shadow_members=[[1, 0], [0, 1]])
        >>> found = Appendix(audit_evidence(evidence, attacks=["loss"], members=[1, 0]).summary())
        >>> found.answers[1][1][-1].of("measured")[0]
        'Membership inference was run with 2 shadow models (online): loss.'
    """

    summary: Summary
    checksum: str = ""
    findings: Sequence[Finding] = ()
    supplied: Mapping[str, str] = field(default_factory=dict)

    @functools.cached_property
    def answers(self) -> list[tuple[Source, list[Answer]]]:
        """What the run says to each clause, by source."""

        def answer(clause: Clause) -> Answer:
            says = (says for name in clause.says for says in _SAYS[name])
            return Answer(clause, [statement for one in says for statement in one(self.summary)])

        return [(source, list(map(answer, source.clauses))) for source in SOURCES]

    @property
    def title(self) -> str:
        """Of the document."""
        return f"Evidence file: {self.summary.context.title}"

    @property
    def columns(self) -> list[Figure]:
        """Of the table of attacks."""
        return columns_at("evidence", self.summary.attacks, self.summary.fprs)

    @property
    def supply(self) -> list[str]:
        """Everything that is still to be supplied, once each."""
        asked = (key for _, answers in self.answers for one in answers for key in one.clause.supply)
        return [POINTS[key] for key in dict.fromkeys(asked) if key not in self.supplied]

    def parts(self, answer: Answer) -> list[tuple[str, list[str]]]:
        """What stands under one clause: statements by kind, then the owner's answers and what is still missing."""
        asked, given = answer.clause.supply, self.supplied
        found = [(kind.capitalize(), answer.of(kind)) for kind in ("measured", "declared", "assumed")]
        found.append(("Supplied by the owner", [f"{POINTS[key]} {given[key]}" for key in asked if key in given]))
        found.append(("Still to supply", [POINTS[key] for key in asked if key not in given]))
        return [(title, texts) for title, texts in found if texts]


# A character reference is never markup, in CommonMark and in Python-Markdown alike; a backslash is, in some places.
_ALWAYS = re.compile(r"[\\`*_{}\[\]<>|&#~$^!@\"]")
_LINKS = re.compile(r":(?=\S)|(?<=www)\.", flags=re.IGNORECASE)  # what some readers make a link or a picture of
_AT_THE_START = re.compile(r"^(?:[-+=:%]|\d{1,9}[.)](?=\s|$))")  # lists, rules, definitions


def literal(text: object) -> str:
    """Text so that a reader of Markdown sees exactly it, on one line: white space is one space each."""
    shown = "".join(" " if unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") else one for one in str(text))
    line = " ".join(shown.split())
    return _AT_THE_START.sub(_coded, _LINKS.sub(_coded, _ALWAYS.sub(_coded, line)))


def _coded(found: re.Match[str]) -> str:
    """What was found, its last character as a reference."""
    return f"{found[0][:-1]}&#{ord(found[0][-1])};"


# everything that the template is given is escaped, so no text from outside can become markup
_MARKDOWN = TEMPLATES.overlay(autoescape=False, finalize=lambda one: one if isinstance(one, Markup) else literal(one))


def render_appendix_markdown(appendix: Appendix) -> str:
    """An evidence file as Markdown."""
    return _MARKDOWN.get_template("appendix.md.j2").render(appendix=appendix, mark=PAGE_MARK).rstrip() + "\n"


def render_appendix(appendix: Appendix) -> str:
    """An evidence file as an HTML page that needs no network.

    Example:
        >>> from glasshouse import Evidence, audit_evidence
        >>> losses = {"target_loss": [0.1, 2.0], "shadow_loss": [[0.1, 1.0], [1.2, 0.2]]}
        >>> evidence = Evidence(**losses, shadow_members=[[1, 0], [0, 1]])
        >>> summary = audit_evidence(evidence, attacks=["loss"], members=[1, 0]).summary()
        >>> "Still to supply" in render_appendix(Appendix(summary))
        True
    """
    return render_page("appendix.html.j2", title=appendix.title, appendix=appendix, summary=appendix.summary)


def render_appendix_record(appendix: Appendix) -> str:
    """An evidence file as JSON, for programs: figures, thresholds with their findings, versions and all statements."""
    context = appendix.summary.context
    record = {
        RECORD_MARK: 1,
        "title": context.title,
        "written": None if (written := appendix.summary.written) is None else written.isoformat(),
        "metrics_sha256": appendix.checksum,
        "tool_versions": dict(context.versions),
        "seed": context.seed,
        "data_fingerprint": context.fingerprint,
        "attacks": [
            {"attack": one.name} | {column.name: _number(column.of(one)) for column in appendix.columns}
            for one in appendix.summary.attacks
        ],
        "thresholds": [{"status": one.status, "finding": one.line} for one in appendix.findings],
        "risk_appetite": appendix.supplied.get("risk_appetite"),
        "statements": [
            {"source": source.name, "place": answer.clause.place, "kind": one.kind, "text": one.text}
            for source, answers in appendix.answers
            for answer in answers
            for one in answer.statements
        ],
        "supplied": dict(appendix.supplied),
        "still_to_supply": appendix.supply,
    }
    return json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _number(found: Estimate | None) -> dict[str, float | None] | None:
    """A figure with the ends of its interval; None where it was not measured."""
    if found is None:
        return None
    low, high = found.interval or (None, None)
    return {"value": found.value, "low": low, "high": high}


def supply_form() -> str:
    """An empty form: one key for each point that a run cannot say, with the point above it."""
    lines = ["# What an audit cannot say about itself. Answer what applies, in your own words; leave out the rest.", ""]
    for key, point in POINTS.items():
        lines += [f"# {point}", f"# {key}: ", ""]
    return "\n".join(lines)
