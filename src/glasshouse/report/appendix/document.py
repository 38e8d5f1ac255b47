"""The evidence file as data: every clause with the statements of one run, and what is still to be supplied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from glasshouse.report.appendix.facts import Statement
from glasshouse.report.appendix.sources import SOURCES, Clause, Source
from glasshouse.report.policy import Finding
from glasshouse.report.summarise import Summary

__all__ = ["Answer", "Appendix", "evidence_file"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a run says to one clause."""

    clause: Clause
    statements: tuple[Statement, ...]

    def of(self, kind: str) -> list[str]:
        """The texts of one kind."""
        return [statement.text for statement in self.statements if statement.kind == kind]


@dataclass(frozen=True, kw_only=True)
class Appendix:
    """An evidence file.

    Args:
        summary: of the run.
        written: when the run was saved; None if it does not say so.
        checksum: SHA-256 of its figures, ``metrics.json``.
        answers: by source, in the order of its clauses.
        findings: what a policy says about the run; empty without one.
    """

    summary: Summary
    written: datetime | None
    checksum: str
    answers: tuple[tuple[Source, tuple[Answer, ...]], ...]
    findings: tuple[Finding, ...] = ()

    @property
    def title(self) -> str:
        """Of the document."""
        return f"Evidence file: {self.summary.context.title}"

    @property
    def supply(self) -> list[str]:
        """Everything that a reader must still supply, once each."""
        open_ones = [text for _, answers in self.answers for one in answers for text in one.clause.supply]
        return list(dict.fromkeys(open_ones))


def evidence_file(
    summary: Summary,
    *,
    written: datetime | None = None,
    checksum: str = "",
    findings: Sequence[Finding] = (),
    sources: Sequence[Source] = SOURCES,
) -> Appendix:
    """Put what a run measured, declared and assumed beside what sources ask for.

    Args:
        summary: of the run.
        written: when it was saved.
        checksum: of its figures, so that the document belongs to one run.
        findings: of a policy on the run.
        sources: what to answer.

    Example:
        >>> from glasshouse import Evidence, audit_evidence
        >>> losses = {"target_loss": [0.1, 2.0], "shadow_loss": [[0.1, 1.0], [1.2, 0.2]]}
        >>> evidence = Evidence(**losses, shadow_members=[[1, 0], [0, 1]])
        >>> found = evidence_file(audit_evidence(evidence, attacks=["loss"], members=[1, 0]).summary())
        >>> found.answers[1][1][-1].of("measured")[0]
        'Membership inference was tried with 2 shadow models (online): loss.'
    """
    answers = tuple(
        (
            source,
            tuple(
                Answer(clause=clause, statements=tuple(one for says in clause.says for one in says(summary)))
                for clause in source.clauses
            ),
        )
        for source in sources
    )
    return Appendix(summary=summary, written=written, checksum=checksum, answers=answers, findings=tuple(findings))
