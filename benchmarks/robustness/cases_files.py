"""Hostile files, from the tables of tests/hostile: evidence, records, graphs and settings.

Everything here is called in an old tree too, so only names that both trees have are imported at the top.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from cases_kinds import Case
from tests.hostile import files, test_npz, test_settings, test_tables

__all__ = ["file_cases", "trusted"]

NONSENSE = {"dates", "times", "complex", "text losses", "truth losses", "ids twice", "two kinds", "truths of 2"}
NONSENSE |= {"an empty member", "another label", "a column twice", "a key twice", "a key twice inside"}
BOMBS = {"aliases", "aliases as attacks", "merged aliases", "a long id", "a long model", "a long number"}
BOMBS |= {"too many shadow models", "a wide network", "a wide image network", "a long value", "a long key", "too large"}
BOMBS |= {"too many trees", "too many rounds", "too many boosted trees", "a wide perceptron", "too many epochs"}
BOMBS |= {
    "a long member",
    "a long attack",
    "many faults",
    "an unknown array with a long name",
    "long and empty",
    "a shape that lies",
}


def part(name: str) -> str:
    """To which part of the work an entry of a table belongs."""
    return "nonsense" if name in NONSENSE else "bombs" if name in BOMBS else "readers"


def trusted() -> dict[str, Any]:
    """Options with which a tree runs code that a file names; the old one needs none."""
    from glasshouse.config import run_audit_file

    return {"trust_code": True} if "trust_code" in inspect.signature(run_audit_file).parameters else {}


def file_cases() -> Iterator[Case]:
    """All cases that are a file."""
    yield from _evidence()
    yield from _tables()
    yield from _records()
    yield from _settings()


def _audited(path: str) -> Callable[[], str]:
    """Read evidence and attack it: what was accepted is an AUC, or not even that."""

    def act() -> str:
        from glasshouse import audit_evidence, read_evidence

        found = read_evidence(path)
        if found.members is None:
            return "without members"
        result = audit_evidence(found.evidence, members=found.members, attacks=["loss"], progress=False)
        return f"AUC {result.summary().attacks[0].metrics.auc:.3f}"  # type: ignore[union-attr]

    return act


def _evidence() -> Iterator[Case]:
    test = "tests/hostile/test_npz.py::test_a_hostile_archive_is_one_line_that_names_the_file"
    for name, (write, _) in test_npz.FAULTS.items():
        yield Case(
            part=part(name),
            name=f"evidence, npz: {name}",
            test=f"{test}[{name}]",
            make=partial(write, Path("e.npz")),
            act=_audited("e.npz"),
        )
    places = {"a folder": lambda: Path("e.npz").mkdir(), "a pipe": lambda: os.mkfifo("e.npz")}
    test = "tests/hostile/test_npz.py::test_places_that_are_not_files_are_one_line"
    for name, make in places.items():
        yield Case(part="readers", name=f"evidence, npz: {name}", test=test, make=make, act=_audited("e.npz"))
    for name, path in (("an overlong name", "x" * 5000 + ".npz"), ("a zero in the name", "a\0b.npz")):
        yield Case(part="readers", name=f"evidence: {name}", test=test, make=lambda: None, act=_audited(path))
    test = "tests/hostile/test_npz.py::test_a_zip_bomb_is_refused_by_what_it_says_of_itself"
    yield Case(part="bombs", name="evidence, npz: 1.2 GiB", test=test, make=_zip_bomb, act=_audited("e.npz"))
    test = "tests/hostile/test_npz.py::test_a_hostile_graph_is_one_line"
    for name, write in test_npz.GRAPHS.items():
        make = partial(write, Path("g.npz"))
        yield Case(part=part(name), name=f"graph: {name}", test=f"{test}[{name}]", make=make, act=_graph)


def _zip_bomb() -> None:
    import zipfile

    files.npz(Path("e.npz"), files.EVIDENCE)
    with (
        zipfile.ZipFile("e.npz", "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("labels.npy", "w", force_zip64=True) as file,
    ):
        file.write(files.header((160_000_000,), "<f8"))
        for _ in range(160):
            file.write(bytes(8_000_000))


def _graph() -> str:
    from glasshouse.graph import load_graph

    found = load_graph("g.npz")
    return f"{getattr(found, 'data', found).num_nodes} nodes"


def _tables() -> Iterator[Case]:
    test = "tests/hostile/test_tables.py::test_a_hostile_table_is_one_short_line"
    for name, (change, _) in test_tables.FAULTS.items():

        def make(change: Any = change, name: str = name) -> None:
            rows = change(files.table())
            if name == "5000 digits":
                rows = [{key: value for key, value in row.items() if key != "loss"} for row in rows]
            files.csv(Path("e.csv"), rows)

        yield Case(
            part=part(name), name=f"evidence, csv: {name}", test=f"{test}[{name}]", make=make, act=_audited("e.csv")
        )
    test = "tests/hostile/test_tables.py::"
    for name, write, shown in (
        ("text that is not unicode", _not_unicode, "test_parquet_text_that_is_not_unicode_is_one_line"),
        ("1.2 GiB of nothing", _parquet_bomb, "test_a_parquet_bomb_is_refused_by_what_it_says_of_itself"),
    ):
        where = "readers" if write is _not_unicode else "bombs"
        yield Case(
            part=where, name=f"evidence, parquet: {name}", test=test + shown, make=write, act=_audited("e.parquet")
        )
    shown = "test_many_names_are_checked_in_linear_time"
    yield Case(part="bombs", name="evidence, csv: 20 000 models", test=test + shown, make=_names, act=_audited("e.csv"))
    shown = "test_a_hostile_table_is_one_short_line[a long id]"
    yield Case(
        part="bombs",
        name="evidence, csv: one id of 100 000 letters in 20 000 rows",
        test=test + shown,
        make=_long_id,
        act=_audited("e.csv"),
    )


def _not_unicode() -> None:
    import pyarrow

    ids = pyarrow.array([b"\xff\xfe"] * 200, type=pyarrow.binary())
    wrong = pyarrow.Array.from_buffers(pyarrow.string(), 200, ids.buffers())
    test_tables.parquet(Path("e.parquet"), test_tables.tidy() | {"id": wrong})


def _parquet_bomb() -> None:
    import pyarrow

    nothing = pyarrow.nulls(50_000_000, pyarrow.float64())
    test_tables.parquet(Path("e.parquet"), dict.fromkeys("abc", nothing))


def _names() -> None:
    rows = [("target", f"r{n}") for n in range(20_000)] + [(f"s{n}", f"q{n}") for n in range(20_000)]
    Path("e.csv").write_text("model,id,member,loss\n" + "".join(f"{one},{name},1,0.5\n" for one, name in rows))


def _long_id() -> None:
    rows = [("target", "x" * 100_000 if n == 3 else f"r{n}") for n in range(10_000)]
    rows += [("s", name) for _, name in rows]
    Path("e.csv").write_text("model,id,member,loss\n" + "".join(f"{one},{name},1,0.5\n" for one, name in rows))


def _records() -> Iterator[Case]:
    test = "tests/hostile/test_npz.py::test_an_archive_of_records_with_nonsense_is_refused"
    for name, (changed, _) in test_npz.NONSENSE.items():
        if name == "a wide group":  # there were no groups
            continue
        make = partial(files.npz, Path("d.npz"), files.RECORDS, **changed)
        yield Case(
            part="readers" if name == "infinite" else "nonsense",
            name=f"records, npz: {name}",
            test=f"{test}[{name}]",
            make=make,
            act=_trained("{kind: mlp, hidden: [4], epochs: 1}"),
        )


def _trained(trainer: str, *, more: str = "shadows: 2\n") -> Callable[[], str]:
    """Train on records with a trainer that an audit file names."""

    def act() -> str:
        from glasshouse.config import read_audit_file, run_audit_file

        if not Path("d.npz").exists():
            files.npz(Path("d.npz"), files.RECORDS)
        text = f"data: {{name: file, path: d.npz}}\ntrainer: {trainer}\nattacks: [loss]\n{more}"
        Path("audit.yaml").write_text(text)
        result = run_audit_file(read_audit_file("audit.yaml"), folder=Path.cwd(), progress=False, **trusted())
        return f"AUC {result.summary().attacks[0].metrics.auc:.3f}"  # type: ignore[union-attr]

    return act


def _settings() -> Iterator[Case]:
    test = "tests/hostile/test_settings.py::"
    for name, (text, _) in test_settings.FAULTS.items():
        content = text.encode("utf-8", "surrogateescape")
        yield Case(
            part=part(name),
            name=f"audit file: {name}",
            test=f"{test}test_hostile_settings_are_a_short_line_at_once[{name}]",
            make=partial(Path("audit.yaml").write_bytes, content),
            act=_run_settings if name == "too many shadow models" else partial(_read, "audit.yaml"),
        )
    shown = "test_a_folder_where_the_file_should_be_and_an_overlong_name_are_one_line"
    for name, path in (("a folder", "audit.yaml"), ("an overlong name", "x" * 5000)):
        yield Case(
            part="readers",
            name=f"audit file: {name}",
            test=test + shown,
            make=lambda: Path("audit.yaml").mkdir(),
            act=partial(_read, path),
        )
    for name, (trainer, _) in test_settings.WORK.items():
        yield Case(
            part=part(name),
            name=f"trainer: {name}",
            test=f"{test}test_what_a_trainer_cannot_do_is_one_line[{name}]",
            make=_modules,
            act=_trained(trainer),
        )
    shown = "test_a_wide_graph_network_and_too_many_models_are_refused_before_they_are_made"
    wide = "graph: {network: {hidden: 100000000000}}\n"
    yield Case(
        part="bombs",
        name="graph: hidden: 100000000000",
        test=test + shown,
        make=lambda: Path("audit.yaml").write_text(wide),
        act=_run_settings,
    )


def _read(path: str) -> str:
    from glasshouse.config import read_audit_file

    return str(read_audit_file(path))[:60]


def _modules() -> None:
    Path("mine.py").write_text(test_settings.MINE)
    Path("broken.py").write_text("def make(:\n")
    Path("failing.py").write_text("1 / 0\n")


def _run_settings() -> str:
    from glasshouse.config import read_audit_file, run_audit_file

    return str(run_audit_file(read_audit_file("audit.yaml"), folder=Path.cwd(), progress=False).summary())[:60]
