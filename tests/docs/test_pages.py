from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from glasshouse.evaluation.metrics import resolvable
from tests.forked import Forks

ROOT = Path(__file__).parents[2]


def test_the_manual_builds_without_a_warning(forks: Forks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    build = "from mkdocs.__main__ import cli; cli()"
    done = forks.run(build, "build", "--strict", "-d", tmp_path / "site", folder=ROOT)
    assert done.returncode == 0, done.stderr
    site = tmp_path / "site"
    shown = {"audits": "audit", "trainers": "TorchTrainer", "graphs": "toggle_losses", "pools": "ShadowPool"}
    for page, name in shown.items():
        assert re.search(rf'<h2 id="glasshouse[\w.]*\.{name}"', (site / "api" / f"{page}.html").read_text())
    assert "arithmatex" not in (attacks := (site / "attacks.html").read_text()), (
        "formulas need no library from elsewhere"
    )
    assert attacks.count("<mfrac>") >= 5
    pages = [path.read_text() for path in site.rglob("*.html")]
    assert not [page[:200] for page in pages if "<blockquote" in page or 'class="example"' in page], "a quote"
    assert sum("&gt;&gt;&gt; " in page for page in pages) >= 8, "the examples are code"
    assert not list(site.rglob("*.py")), "a script is not a page"
    fetched = [
        found
        for page in pages
        for found in re.findall(r'<(?:script|img|iframe|link rel="stylesheet")[^>]*(?:src|href)="(https?:[^"]+)"', page)
    ]
    assert fetched == [], "the manual asks nobody else's server"


@pytest.mark.parametrize("page", ["choosing.md", "recipes.md", "hops.md"])
def test_every_figure_of_a_table_is_in_the_benchmark_that_the_page_names(page: str) -> None:
    """Tables with decimals say below them, or in their last column, which file of benchmarks/ they are from."""
    tables = re.findall(
        r"((?:^\|.*\n)+)\n?(\*From `(benchmarks/[\w./-]+)`)?", (ROOT / "docs" / page).read_text(), re.MULTILINE
    )
    checked = 0
    for rows, _, below in tables:
        for row in rows.splitlines():
            cells = re.sub(r"\b\d+(?:\.\d+)? % FPR|0\.1 %", "", row)
            figures = re.findall(r"(?<![\w.])\d+\.\d+(?![\w.])", cells)
            if figures:
                source = re.search(r"benchmarks/[\w./-]+", row)
                file = source[0] if source else below
                assert file, f"{page}: which benchmark is this row from? {row}"
                known = (ROOT / file).read_text()
                for figure in figures:
                    assert re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d)", known), f"{figure} is not in {file}"
                checked += len(figures)
    assert checked >= 6


def test_the_page_about_reports_says_what_the_pictures_and_the_verdict_show() -> None:
    """Item 14 of issue 15: the dotted line was called one non-member, and 1 % the figure beside a headline at 0.1 %."""
    page = " ".join((ROOT / "docs" / "reading-a-report.md").read_text().split())
    assert "The dotted line is chance. The shaded strip on the left stands for an FPR of 0" in page
    style = (ROOT / "src" / "glasshouse" / "report" / "templates" / "pictures.css").read_text()
    dotted = [line for line in style.splitlines() if "stroke-dasharray: 1 3" in line]
    assert [line.split()[1] for line in dotted] == [".chance"]
    assert (
        "the smallest wanted rate at which ten non-members or more may be flagged (if there is none, the largest)"
        in page
    )
    assert [min(resolvable(None, others)) for others in (999, 1000)] == [0.01, 0.001]


def test_the_page_about_results_names_the_commit_of_every_file_that_does_not_name_it_itself() -> None:
    page = (ROOT / "results" / "README.md").read_text()
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `") and "/" not in line}
    for folder in (path for path in (ROOT / "results").iterdir() if path.is_dir()):
        for table in folder.glob("*.csv"):
            if "commit" in json.loads(table.with_suffix(".json").read_text()):
                continue
            assert re.search(rf"\b{table.stem}\b", rows[folder.name]), f"which commit made {folder.name}/{table.name}?"


def test_every_example_that_a_page_shows_is_there() -> None:
    """A formatter once took the includes for Python and broke them; the pages then showed the includes' text."""
    lines = [
        line for page in (ROOT / "docs").glob("*.md") for line in page.read_text().splitlines() if "examples/" in line
    ]
    shown = [line for line in lines if "8" in line.split("examples/")[0] and line.startswith("-")]
    assert shown
    for line in shown:
        assert line.startswith('--8<-- "examples/')
        assert (ROOT / line.split('"')[1]).is_file()
