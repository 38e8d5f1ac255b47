"""Hostile runs and pools, from the tables of tests/hostile; called in an old tree too, as in `cases_files`."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from cases_kinds import Case, WrongError, command
from tests.hostile import files, test_pools, test_runs

__all__ = ["asked", "pool", "stored_cases"]


def stored_cases() -> Iterator[Case]:
    """All cases that are a run or a pool."""
    yield from _runs()
    yield from _pools()


def _runs() -> Iterator[Case]:
    test = "tests/hostile/test_runs.py::"

    def figures(change: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
        def make() -> None:
            run = files.saved_run(Path("run"))
            told = json.loads((run / "metrics.json").read_text())
            change(told)
            (run / "metrics.json").write_text(json.dumps(told))
            files.listed_again(run)

        return make

    for name, (change, _) in test_runs.FAULTS.items():
        shown = f"test_figures_that_no_audit_gives_are_one_line[{name}]"
        yield Case(part="readers", name=f"run: {name}", test=test + shown, make=figures(change), act=_page)
    for name, (text, _) in test_runs.TEXTS.items():
        shown = f"test_json_that_is_no_plain_data_is_one_line[{name}]"
        where = "nonsense" if name in ("NaN", "infinite", "twice") else "readers"
        make = partial(_metrics_text, text)
        yield Case(part=where, name=f"run: metrics.json: {name}", test=test + shown, make=make, act=_page)
    for name, text in test_runs.RECORDS.items():
        shown = f"test_records_that_do_not_fit_are_one_line[{name}]"
        make = partial(_records_text, text)
        yield Case(part="readers", name=f"run: records.csv: {name}", test=test + shown, make=make, act=_run_records)
    for written in test_runs.DATES:
        shown = f"test_a_date_that_cannot_be_is_one_line[{written}]"
        make = partial(_manifest, written=written)
        yield Case(part="readers", name=f"run: written: {written}", test=test + shown, make=make, act=_date)
    shown = "test_folders_and_overlong_names_where_files_should_be_are_one_line"
    long = {"files": {"x" * 5000: {"sha256": "0"}, "metrics.json": {"sha256": "0"}}}
    yield Case(
        part="readers", name="run: lists a long name", test=test + shown, make=lambda: _manifest(**long), act=_page
    )
    yield Case(part="readers", name="run: run.json is a folder", test=test + shown, make=_folder_in_run, act=_page)
    shown = "test_the_limit_on_memory_is_raised_by_an_option"
    yield Case(
        part="bombs",
        name="run: --memory 1KiB, then 2GiB",
        test=test + shown,
        make=lambda: files.saved_run(Path("run")),
        act=_memory,
        works=True,
    )


def _metrics_text(text: str) -> None:
    run = files.saved_run(Path("run"))
    told = (run / "metrics.json").read_text()
    start = told.index('"auc":')
    hostile = told[:start] + text + told[told.index(",", start) :]
    (run / "metrics.json").write_bytes(hostile.encode("utf-8", "surrogateescape"))
    files.listed_again(run)


def _records_text(text: str) -> None:
    run = files.saved_run(Path("run"))
    (run / "records.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    files.listed_again(run)


def _manifest(**changed: Any) -> None:
    path = files.saved_run(Path("run")) / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


def _folder_in_run() -> None:
    path = files.saved_run(Path("run")) / "run.json"
    path.unlink()
    path.mkdir()


def _page() -> str:
    from glasshouse.report import read_run, render_html

    page = render_html(read_run("run"))
    return "a page" + (" that says nan" if "nan" in page.lower().split() else "")


def _run_records() -> str:
    from glasshouse.report import read_run_with_records

    return f"{len(read_run_with_records('run').records())} columns"


def _date() -> str:
    from glasshouse.report import read_run

    return str(read_run("run").written)


def _memory() -> None:
    refused = command("report", "run", "--memory", "1KiB")
    if refused.code != 2 or "raise the limit: --memory" not in refused.err:
        raise WrongError(f"ended with {refused.code}: {refused.err}")
    if command("report", "run", "--memory", "2GiB").code:
        raise WrongError("a higher limit does not help")


def _pools() -> Iterator[Case]:
    test = "tests/hostile/test_pools.py::test_a_hostile_model_behind_a_fitting_checksum_is_one_line"
    for name, (kind, content) in test_pools.FAULTS.items():

        def make(kind: str = kind, content: bytes = content) -> None:
            pool(kind).train(progress=False)
            test_pools.replaced(Path("pool"), content)

        yield Case(
            part="readers",
            name=f"pool: {name}",
            test=f"{test}[{name}]",
            make=make,
            act=partial(asked, kind),
        )
    test = "tests/hostile/test_pools.py::test_a_hostile_description_is_one_line"
    for text in ("[" * 5000 + "]" * 5000, "[]", "NaN", '{"a": 1, "a": 2}'):
        yield Case(
            part="readers",
            name=f"pool: pool.json: {text[:20]}",
            test=test,
            make=partial(_description, text),
            act=lambda: asked("answers"),
        )
    test = "tests/hostile/test_pools.py::test_folders_and_pipes_in_place_of_files_are_not_read"
    for name, put in (("a folder", os.mkdir), ("a pipe", os.mkfifo)):

        def place(put: Any = put) -> None:
            Path("pool").mkdir()
            put("pool/pool.json")

        yield Case(part="readers", name=f"pool: pool.json: {name}", test=test, make=place, act=lambda: asked("answers"))


def pool(kind: str) -> Any:
    """A pool of the tests in the folder `pool`, in either tree."""
    from glasshouse.pool import ShadowPool

    folder = "folder" if "folder" in inspect.signature(ShadowPool.plan).parameters else "store"
    options: dict[str, Any] = {folder: Path("pool")}
    return ShadowPool.plan(test_pools.POPULATION, test_pools.TRAINERS[kind], shadows=2, **options)


def _description(text: str) -> None:
    Path("pool").mkdir()
    Path("pool/pool.json").write_text(text)


def asked(kind: str) -> str:
    """Read every model and ask it, as an audit does."""
    from glasshouse import Evidence
    from glasshouse.query.classify import query

    loss = [query(model, test_pools.POPULATION).loss for model in pool(kind)]
    Evidence(target_loss=loss[0], shadow_loss=np.array(loss), shadow_members=pool(kind).members)
    return "losses"
