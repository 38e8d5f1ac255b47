"""What the manual says about the paper's figures follows from ``results/``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from glasshouse import InputError
from glasshouse_experiments import claims
from glasshouse_experiments.claims import (
    BLOCKS,
    DOCS,
    RESULTS,
    open_table,
    page_with,
    sentences,
    unsupported,
    written,
)
from glasshouse_experiments.counting import run_cells
from glasshouse_experiments.fidelity import AUTHORS, KINDS, agreement, fidelity_of, fidelity_rows, kept_rows, p_value

PAGES = ("reproduction.md", "authors.md", "beyond.md")


def test_every_table_on_the_pages_is_what_the_results_give() -> None:
    for page, text in written().items():
        assert (DOCS / page).read_text(encoding="utf-8") == text, "run python -m glasshouse_experiments.claims"
    assert {page for page, _ in BLOCKS.values()} == set(PAGES)


def test_figures_in_running_text_are_those_of_the_results() -> None:
    for page, told in sentences().items():
        text = " ".join((DOCS / page).read_text(encoding="utf-8").split())
        assert told
        for sentence in told:
            assert sentence in text


@pytest.mark.parametrize("page", PAGES)
def test_every_other_figure_in_running_text_is_in_a_file_that_its_paragraph_names(page: str) -> None:
    assert unsupported(page) == {}


def test_a_figure_that_follows_from_nothing_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "DOCS", tmp_path)
    (tmp_path / "authors.md").write_text(
        "Cora has 12.25 points (`results/accuracy.csv`).\n\nIt is 80.67 there (`results/accuracy.csv`), at 0.1 % FPR."
        "\n\n- 17 % more\n- `1.5` and [0.7](x.md)\n"
    )
    assert list(unsupported("authors.md").values()) == [["12.25"], ["17"]]


def test_pictures_in_the_manual_are_those_of_the_results() -> None:
    shown = sorted(DOCS.glob("images/roc-*.svg"))
    assert shown
    page = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    for path in shown:
        kept = RESULTS / "roc" / path.name.removeprefix("roc-")
        assert path.read_bytes() == kept.read_bytes(), f"copy {kept}"
        assert f"images/{path.name}" in page


def test_at_most_eight_cells_have_no_cause() -> None:
    assert len(open_table(RESULTS).splitlines()) - 2 <= 8


def test_the_counts_by_fidelity_are_those_of_the_results_and_add_up() -> None:
    kept = kept_rows()
    assert [row for row in kept if row[0] != AUTHORS] == fidelity_rows(RESULTS), "run glasshouse_experiments.fidelity"
    cells = run_cells(RESULTS)
    counted = {kind: sum(fidelity_of(row) == kind for row in cells) for kind in KINDS}
    assert sum(counted.values()) == len(cells)
    assert [row[1].cells for row in kept[:3]] == [counted[kind] for kind in KINDS[:3]]


def test_welchs_test_rejects_what_differs_and_two_deviations_are_lenient() -> None:
    assert p_value(82.0, 1.0, 10, 82.0, 1.0, last_digit=0.01) == pytest.approx(1.0)
    assert p_value(80.2, 1.0, 10, 82.0, 1.0, last_digit=0.01) < 0.01  # within two deviations all the same
    assert p_value(0.0, 0.0, 10, 0.0, 0.0, last_digit=0.01) == pytest.approx(1.0)
    row = {"metric": "auc_pct", "mean": "80.2", "std": "1", "n": "10", "paper_mean": "82", "paper_std": "1"}
    assert agreement([row | {"verdict": "within 2 sd"}]) == (1, 1, 0)


def test_every_result_names_a_clean_commit_or_is_named_in_the_table_of_the_others() -> None:
    named = (RESULTS / "README.md").read_text(encoding="utf-8")
    for path in sorted(RESULTS.glob("*/*.json")):
        commit = json.loads(path.read_text(encoding="utf-8")).get("commit", "")
        if len(commit) != 40:
            line = next((line for line in named.splitlines() if line.startswith(f"| `{path.parent.name}`")), "")
            assert path.stem in line, f"{path}: {commit or 'no commit'}"


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(InputError, match="the marks of the table are missing"):
        page_with("a page", "counts", "a table")
