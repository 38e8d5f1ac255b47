"""The evidence file: what regulators and standards ask for (``appendix.toml``), and what a run says to each clause."""

from __future__ import annotations

import functools
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from markupsafe import Markup

from glasshouse.attacks.attack import attack_names, find_attack
from glasshouse.io.files import PAGE_MARK, RECORD_MARK
from glasshouse.report.decision.rating import rating_of
from glasshouse.report.figures import Estimate, Figure, columns_at
from glasshouse.report.format import texts_beside
from glasshouse.report.html import TEMPLATES, render_page
from glasshouse.report.policy import Finding
from glasshouse.report.summary import Summary

Kind = Literal["measured", "declared", "assumed"]  # by the audit, by whoever ran it, or by the method
_PLAIN = TEMPLATES.overlay(autoescape=False)  # what shows a statement escapes it


class Statement(NamedTuple):
    """One sentence of a run, and where it comes from."""

    kind: Kind
    text: str


class Saying(NamedTuple):
    """What a run may have to say: the text of a template, for each item of an expression; an empty text says nothing.

    Both know the run's ``summary`` and ``context``, its ``rating`` by the usual policy, and the names of its
    likelihood-ratio attacks, ``ratios``; the template also knows the item, ``one``.
    """

    kind: Kind
    text: str
    each: str = "[none]"

    def statements(self, known: Mapping[str, Any]) -> Iterator[Statement]:
        """The statements of one run."""
        for one in _PLAIN.compile_expression(self.each)(**known) or ():
            if text := _PLAIN.from_string(self.text).render(one=one, **known):
                yield Statement(self.kind, text)


class Clause(NamedTuple):
    """One thing that a source asks for."""

    place: str  # where in the source
    asks: str  # what it asks, in our own words
    says: Sequence[str] = ()  # keys of `_SAYS`, what a run has to say to it
    supply: Sequence[str] = ()  # keys of `POINTS`


class Source(NamedTuple):
    """A document that asks for evidence."""

    name: str
    reference: str  # with the version that was read
    clauses: Sequence[Clause]


_FILE: dict[str, Any] = texts_beside(__file__)
POINTS: Mapping[str, str] = _FILE["points"]
SOURCES = tuple(Source(**one | {"clauses": [Clause(**each) for each in one["clauses"]]}) for one in _FILE["source"])
_SAYS = {name: [Saying(**one) for one in sayings] for name, sayings in _FILE["says"].items()}


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
        summary = self.summary
        kinds = tuple(name for name in attack_names(graph=False) if find_attack(name).likelihood_ratio)
        known: dict[str, Any] = {"summary": summary, "context": summary.context, "rating": rating_of(summary)}
        # a name may go on with its parameters
        known["ratios"] = [one.name for one in summary.attacks if one.name.startswith(kinds)]

        def answer(clause: Clause) -> Answer:
            says = (one for name in clause.says for one in _SAYS[name])
            return Answer(clause, [statement for one in says for statement in one.statements(known)])

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
