"""The evidence file, as a page, as Markdown and as JSON: every clause with the statements of one run."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from markupsafe import Markup

from glasshouse.io.files import PAGE_MARK, RECORD_MARK
from glasshouse.report.clauses import POINTS, SOURCES, Clause, Source, Statement
from glasshouse.report.figures import Column, Estimate, columns_at
from glasshouse.report.html import TEMPLATES, render_page
from glasshouse.report.policy import Finding
from glasshouse.report.summary import Summary


@dataclass(frozen=True)
class Answer:
    """What a run says to one clause."""

    clause: Clause
    statements: tuple[Statement, ...]

    @classmethod
    def to(cls, clause: Clause, summary: Summary) -> Answer:
        """What a run says to a clause, by the functions that the clause names."""
        return cls(clause, tuple(statement for says in clause.says for statement in says(summary)))

    def of(self, kind: str) -> list[str]:
        """The texts of one kind."""
        return [statement.text for statement in self.statements if statement.kind == kind]


@dataclass(frozen=True)
class Appendix:
    """An evidence file."""

    summary: Summary  # of the run
    written: datetime | None  # when the run was saved; None if it does not say so
    checksum: str  # SHA-256 of its figures, ``metrics.json``
    answers: tuple[tuple[Source, tuple[Answer, ...]], ...]  # by source, in the order of its clauses
    findings: tuple[Finding, ...] = ()  # what a policy says about the run; empty without one
    supplied: Mapping[str, str] = field(default_factory=dict)  # the owner's answers, by the key of `POINTS`

    @property
    def title(self) -> str:
        """Of the document."""
        return f"Evidence file: {self.summary.context.title}"

    @property
    def columns(self) -> list[Column]:
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


def evidence_file(
    summary: Summary,
    *,
    written: datetime | None = None,
    checksum: str = "",
    findings: Sequence[Finding] = (),
    supplied: Mapping[str, str] | None = None,
    sources: Sequence[Source] = SOURCES,
) -> Appendix:
    """Put what a run measured, declared and assumed beside what sources ask for.

    Args:
        summary: of the run.
        written: when it was saved.
        checksum: of its figures, so that the document belongs to one run.
        findings: of a policy on the run.
        supplied: the owner's answers to what a run cannot say, by the key of `POINTS`.
        sources: what to answer.

    Example:
        >>> from glasshouse import Evidence, audit_evidence
        >>> losses = {"target_loss": [0.1, 2.0], "shadow_loss": [[0.1, 1.0], [1.2, 0.2]]}
        >>> evidence = Evidence(**losses, shadow_members=[[1, 0], [0, 1]])
        >>> found = evidence_file(audit_evidence(evidence, attacks=["loss"], members=[1, 0]).summary())
        >>> found.answers[1][1][-1].of("measured")[0]
        'Membership inference was run with 2 shadow models (online): loss.'
    """
    answers = tuple((source, tuple(Answer.to(clause, summary) for clause in source.clauses)) for source in sources)
    return Appendix(summary, written, checksum, answers, tuple(findings), dict(supplied or {}))


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
        >>> "Still to supply" in render_appendix(evidence_file(summary))
        True
    """
    return render_page("appendix.html.j2", title=appendix.title, appendix=appendix, summary=appendix.summary)


def render_appendix_record(appendix: Appendix) -> str:
    """An evidence file as JSON, for programs: figures, thresholds with their findings, versions and all statements."""
    context = appendix.summary.context
    record = {
        RECORD_MARK: 1,
        "title": context.title,
        "written": None if appendix.written is None else appendix.written.isoformat(),
        "metrics_sha256": appendix.checksum,
        "tool_versions": dict(context.versions),
        "seed": context.seed,
        "data_fingerprint": context.fingerprint,
        "attacks": [
            {"attack": one.name, **{column.name: _number(column.of(one)) for column in appendix.columns}}
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
