"""One word for each thing, in all that users read: reports, terminal, help, pages of the manual and messages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from glasshouse import Evaluation, audit_evidence
from glasshouse.cli.app import app
from glasshouse.report import compare, latex_table, render_comparison, render_html
from glasshouse.report.appendix import Appendix, render_appendix, render_appendix_markdown
from glasshouse.report.policy import Limit, Policy, judge
from tests.strategies import gaussian_evidence

ROOT = Path(__file__).parents[2]
INSTEAD = {  # what is not written any more, and what is
    r"accus\w+": "flag (a record), false positive",
    r"outsiders?": "non-members",
    r"(were|are|was) (not )?found (before|now)": "identified (a member)",
    r"differ from (the )?others|file of the others": "non-members",
    r"singled out": "identified (a member), or differs significantly (a group)",
    r"(by|than) luck|luck (alone|can|may|explains)|lucky|luckiest": "chance",
    r"steady": "stability",
    r"called@|listed@|called at \d|called (a )?members?": "flagged",
    r"(not )?kept\. ": "Limit met, Limit exceeded",
    r"cannot be told": "inconclusive; too few records to say",
    r"a coin (has|is)": "guessing gives",
    r"the one who decides": "the decision-maker",
    r"look-alike": "similar",
    r"cries wolf|null lab": "false alarms",
    r"mend what": "fix what",
    r"trained so\b": "trained this way",
    r"nobody tried": "nobody has tried",
    r"rare or doubled": "rare or duplicated",
    r"sittings": "runs",
    r"is not a (place|time)\b": "is not a valid path, is not a positive number",
    r"\bvictims?\b": "target",
    r"surrogate \w+|proxy models?": "shadow model",
    r"mitigations?\b|countermeasures?": "defence",
    r"leakage(?!\.py)": "leak",
    r"\bdata points?": "records",
    r"privacy budget": "ε",
}
FORBIDDEN = re.compile("|".join(f"(?:{one})" for one in INSTEAD), flags=re.IGNORECASE)
NOT_YET: set[str] = set()  # pages and rooms of src/glasshouse that are not clean yet; remove what is


def hits(text: str) -> list[str]:
    """Every forbidden word with its surroundings."""
    flat = " ".join(text.split())
    return [flat[max(0, one.start() - 40) : one.end() + 30] for one in FORBIDDEN.finditer(flat)]


def messages(path: Path) -> Iterator[str]:
    """String literals of a module that are no docstrings and more than one word."""
    tree = ast.parse(path.read_text())
    docs = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docs and " " in node.value:
            yield node.value


@pytest.mark.parametrize("leak", [2.0, 0.0])
def test_reports_and_what_is_printed_use_one_vocabulary(leak: float) -> None:
    evidence, members = gaussian_evidence(records=400, models=8, shift=leak, seed=0)
    groups = {"sex": np.where(np.arange(400) % 2 == 0, "f", "m")}
    options = Evaluation(fprs=[0.05], groups=groups)
    result = audit_evidence(evidence, members=members, attacks=["base", "loss"], evaluation=options)
    blind = audit_evidence(evidence, attacks=["base"])
    policy = Policy(limits=(Limit(figure="tpr", at_fpr=0.05, most=0.01), Limit(figure="auc", most=0.4, group="sex")))
    for one in (result, blind):
        summary, file = one.summary(), Appendix(one.summary())
        pages = [render_html(summary), render_html(summary, policy=policy), str(one), latex_table(summary)]
        pages += [render_appendix(file), render_appendix_markdown(file), " ".join(one.table()), " ".join(one.records())]
        pages += [f"{found.line} {found.sentence}" for found in judge(summary, policy).findings]
        assert [hits(re.sub(r"<(script|style)>.*?</\1>", "", page, flags=re.DOTALL)) for page in pages] == [[]] * len(
            pages
        )
    assert hits(render_comparison(compare({"a": result, "b": result}))) == []


def test_the_help_of_every_command_uses_one_vocabulary() -> None:
    names = sorted(get_command(app).commands)  # type: ignore[attr-defined]
    for arguments in ([], *([name] for name in names)):
        shown = CliRunner().invoke(app, [*arguments, "--help"], env={"COLUMNS": "200"})
        assert hits(shown.output) == [], arguments


@pytest.mark.parametrize(
    "page", sorted({"README.md", *(f"docs/{one.name}" for one in (ROOT / "docs").glob("*.md"))} - NOT_YET)
)
def test_the_manual_uses_one_vocabulary(page: str) -> None:
    assert hits((ROOT / page).read_text()) == []


def test_messages_in_the_code_use_one_vocabulary() -> None:
    found = {}
    for path in sorted((ROOT / "src" / "glasshouse").rglob("*.py")):
        place = path.relative_to(ROOT / "src" / "glasshouse")
        if place.parts[0] not in NOT_YET and (wrong := [one for text in messages(path) for one in hits(text)]):
            found[str(place)] = wrong
    for path in sorted((ROOT / "src" / "glasshouse" / "report" / "templates").glob("*.j2")):
        if wrong := hits(re.sub(r"\{%.*?%\}|\{\{.*?\}\}", "", path.read_text())):
            found[path.name] = wrong
    assert found == {}


def test_what_is_not_clean_yet_is_listed_only_while_it_is_not() -> None:
    for name in NOT_YET:
        page, paths = ROOT / name, (ROOT / "src" / "glasshouse" / name).rglob("*.py")
        texts = [page.read_text()] if page.is_file() else [text for path in paths for text in messages(path)]
        assert any(map(hits, texts)), f"{name} is clean: remove it from NOT_YET"
