from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from glasshouse import InputError
from glasshouse_experiments.causes import CAUSES, cause_of
from glasshouse_experiments.cells import paper_rows
from glasshouse_experiments.counting import (
    PAGE,
    TREE,
    Count,
    can_be_run,
    counted,
    counts_table,
    page_with_counts,
    run_cells,
)

RESULTS = TREE / "results"


def test_the_page_opens_with_the_counts_of_the_results() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page_with_counts(page, counts_table(RESULTS)) == page, "run python -m glasshouse_experiments.counting"
    assert page.index("| cells in the paper |") < page.index("```")


def test_every_count_adds_up_and_no_cell_counts_twice() -> None:
    lines = [line.strip("|").split("|") for line in counts_table(RESULTS).splitlines()[2:]]
    counts = {cells[0].strip(): Count(*map(int, cells[1:])) for cells in lines}
    for count in counts.values():
        assert count.run == count.within + count.explained + count.unexplained
        assert count.run <= count.possible <= count.printed
    whole, _, *tables = counts.values()
    assert whole == Count(*map(sum, zip(*tables, strict=True)))
    assert whole.printed == len(paper_rows())


def test_the_counts_are_those_of_the_pages_of_the_experiments() -> None:
    """Counted another way: from the files of the data sets, row by row."""
    dull = Counter(
        line.rsplit(",", 1)[1]
        for path in RESULTS.glob("*/*.csv")
        if not path.parent.name.startswith(("beyond", "ablation", "roc"))
        for line in path.read_text(encoding="utf-8").splitlines()[1:]
    )
    found = Counter(row["verdict"] for row in run_cells(RESULTS))
    names = ("within 2 sd", "above", "below")
    assert [found[name] for name in names] == [dull[name] for name in names]


def test_each_cause_covers_a_cell_that_was_run_and_lies_outside() -> None:
    outside = [row for row in run_cells(RESULTS) if row["verdict"] != "within 2 sd"]
    used = [cause_of(row) for row in outside]
    unused = [cause for cause in CAUSES if cause not in used]
    assert not unused
    story = PAGE.read_text(encoding="utf-8")
    assert all(cause.why in " ".join(story.split()) for cause in used if cause), "the page gives the same reason"


def test_a_difference_counts_as_explained_only_if_a_cause_covers_it() -> None:
    row: dict[str, Any] = {"table": "thresholds", "dataset": "Cora", "mode": "online", "attack": "RMIA"}
    row["verdict"] = "above"
    rows = [row, row | {"attack": "BASE"}, row | {"verdict": "within 2 sd"}]
    assert counted(rows, rows) == Count(3, 3, 3, 1, 1, 1)


def test_every_cell_that_was_run_is_among_those_that_can_be_run() -> None:
    assert all(can_be_run(row) for row in run_cells(RESULTS))
    left_out = {row["dataset"] for row in paper_rows() if not can_be_run(row) and row["mode"] != "offline"}
    assert left_out == {"Flickr", "CIFAR-100"}


def test_a_machine_is_not_a_part_of_the_papers_cell(tmp_path: Path) -> None:
    head = "table,dataset,mode,K,setting,attack,metric,verdict\n"
    rows = [f"wall-clock-time,Pubmed,online,8,{machine},BASE,seconds,faster\n" for machine in ("2 cores", "one GPU")]
    (tmp_path / "wall-clock.csv").write_text(head + "".join(rows))
    assert len(run_cells(tmp_path)) == 1


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(InputError, match=r"reproduction\.md: the marks of the table are missing"):
        page_with_counts("a page", "a table")
