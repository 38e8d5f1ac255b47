from __future__ import annotations

import re

from rich.console import Console

from glasshouse import Evidence, audit_evidence
from glasshouse.report import print_summary
from tests.strategies import gaussian_evidence


def printed(*, width: int = 140, verbose: bool = False, **options: object) -> str:
    evidence, members = gaussian_evidence(records=400, models=8, shift=2.0, seed=0)
    named = Evidence(
        target_loss=evidence.target_loss,
        shadow_loss=evidence.shadow_loss,
        shadow_members=evidence.shadow_members,
        ids=[f"[red]{i}[/red]" for i in range(400)],
    )
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    result = audit_evidence(named, **({"members": members} | options))  # type: ignore[arg-type]
    print_summary(result.summary(), console, verbose=verbose)
    console.file.close()
    return console.export_text()


def test_the_verdict_comes_first_in_five_lines_of_80_columns_and_the_table_fits() -> None:
    lines = printed(width=80).splitlines()
    assert max(map(len, lines)) <= 80
    empty = [number for number, line in enumerate(lines) if not line.strip()]
    assert lines[1].startswith("High exposure. Attackers can clearly tell")
    assert "tacked flags 67 of 200 members and 2 of 200 non-members" in lines[3], "what makes the rating high"
    assert any(line.startswith("Next: ") for line in lines[1:7])
    assert empty[0] <= 6, "a title and five lines"
    assert {line.split()[0] for line in lines[empty[0] :] if "%" in line and "(" in line} >= {"base", "lira", "stacked"}
    assert "…" not in "".join(lines)
    assert sum("[red]" in line for line in lines) == 5, "whole ids; markup in an id is shown, not obeyed"


def test_the_figure_of_the_verdict_is_one_line_where_it_decides() -> None:
    evidence, members = gaussian_evidence(records=4000, models=8, shift=2.0, seed=0)
    lines = str(audit_evidence(evidence, members=members, attacks=["base", "lira"])).splitlines()
    assert any(re.fullmatch(r"lira identifies .* of members \(.*\) at .* FPR; ε ≥ .*\.", line) for line in lines[1:6])


def test_more_is_printed_only_if_asked_for() -> None:
    said = "the strongest of 4 attacks on simulated targets"
    short, long = printed(), printed(verbose=True)
    assert said not in short
    assert said in " ".join(long.split())
    assert "flagged at 1 % FPR" in long
    assert "This audit would detect" in long
    assert "No guarantee was claimed" in long


def test_a_null_lists_no_records() -> None:
    evidence, members = gaussian_evidence(records=400, models=8, shift=0.0, seed=0)
    text = str(audit_evidence(evidence, members=members))
    assert "No leak shown." in text
    assert "Records most at risk" not in text


def test_without_members_it_shows_whom_it_would_call() -> None:
    text = printed(members=None)
    assert "flagged at 1 % FPR" in text
    assert "AUC" not in text


def test_a_long_reason_does_not_push_the_attacks_out_of_their_table() -> None:
    """In a cell of the table, it once left no room for the column of names."""
    evidence, members = gaussian_evidence(records=400, models=8, shift=2.0, seed=0)
    alone = Evidence(target_loss=evidence.target_loss, labels=members.astype(int))
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    print_summary(audit_evidence(alone, members=members).summary(), console)
    console.file.close()
    lines = console.export_text().splitlines()
    assert any(line.startswith("class-loss ") and "0." in line for line in lines)
    assert any(line.startswith("public-quantile was left out: ") for line in lines)
