"""What a report says about ε: with figures, and where they are withheld."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path

from rich.console import Console

from glasshouse import AuditResult, audit_evidence
from glasshouse.evaluation import PrivacyVerdict
from glasshouse.report import read_run, render_html
from glasshouse.report.terminal import print_summary
from tests.strategies import gaussian_evidence


def made() -> AuditResult:
    evidence, members = gaussian_evidence(records=400, models=8, shift=2.0, seed=0)
    return audit_evidence(evidence, members=members, attacks=["base", "loss"])


def test_the_page_names_the_guesses_the_assumptions_and_what_one_run_cannot_show() -> None:
    result = made()
    assert result.privacy is not None
    assert result.privacy.guessed is not None
    assert result.privacy.guessed.tried == 1
    text = render_html(result.summary())
    assert result.privacy.gaussian_sentence() in text
    assert "chosen without looking at the target&#39;s members" in text
    assert "One training run cannot show all of ε" in text
    assert 'class="plot fdp"' in text


def test_a_verdict_survives_saving(tmp_path: Path) -> None:
    result = made()
    folder = result.save(tmp_path / "run")
    assert read_run(folder).privacy == result.privacy
    assert json.loads((folder / "metrics.json").read_text())["privacy"]["independent"]["mu"] > 0


def test_a_withheld_epsilon_appears_nowhere(tmp_path: Path) -> None:
    result = dataclasses.replace(made(), privacy=PrivacyVerdict(withheld="members are not a random sample"))
    folder = result.save(tmp_path / "run")
    kept = json.loads((folder / "metrics.json").read_text())["privacy"]
    assert kept["epsilon_lower_bound"] is None
    summary = read_run(folder)
    assert summary.privacy == result.privacy
    page = render_html(summary)
    said = io.StringIO()
    print_summary(summary, Console(file=said, width=200), verbose=True)
    for text in (page, said.getvalue()):
        assert "ε is withheld: members are not a random sample." in text
        assert "ε ≥" not in text
    assert 'class="plot fdp"' not in page
    assert 'class="plot epsilon"' not in page
