from __future__ import annotations

from rich.console import Console

from glasshouse import Evidence, audit_evidence
from glasshouse.report import print_summary
from tests.strategies import gaussian_evidence


def printed(**options: object) -> str:
    evidence, members = gaussian_evidence(records=400, models=8, shift=2.0, seed=0)
    named = Evidence(
        target_loss=evidence.target_loss,
        shadow_loss=evidence.shadow_loss,
        shadow_members=evidence.shadow_members,
        ids=[f"[red]{i}[/red]" for i in range(400)],
    )
    console = Console(width=140, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    print_summary(audit_evidence(named, **({"members": members} | options)).summary(), console)  # type: ignore[arg-type]
    console.file.close()
    return console.export_text()


def test_the_terminal_shows_attacks_records_and_verdict() -> None:
    text = printed()
    assert "TPR at 1 % FPR" in text
    assert "Records most at risk" in text
    assert "the strongest of 4 attacks on simulated targets" in text.replace("\n", " ")
    assert "[red]" in text  # markup in an id is shown, not obeyed


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
