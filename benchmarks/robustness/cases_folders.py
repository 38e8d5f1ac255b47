"""Hostile places and moments: folders that cannot be written, kills, full disks, modes, and what messages say."""

from __future__ import annotations

import os
import resource
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cases_kinds import Case, WrongError, command
from cases_own import FAULTS, audit, must, own_audit
from cases_stored import asked, pool
from tests.hostile import files
from tests.io.kills import killed_at

__all__ = ["folder_cases"]


def folder_cases() -> Iterator[Case]:
    """All cases of places, and of moments of saving."""
    yield from _places()
    yield from _folders()


def _places() -> Iterator[Case]:
    test = FAULTS + "test_an_out_that_cannot_be_written_is_refused_before_the_first_model_is_trained"
    for name, out in {
        "below a file": "../file/run",
        "where nothing can be written": "/proc/run",
        "a dangling link": "link",
        ".": ".",
        "the working folder": str,
    }.items():

        def make() -> None:
            own_audit()
            Path("file").touch()
            Path("empty").mkdir()
            Path("empty/link").symlink_to("nowhere")
            os.chdir("empty")  # an old tree would refuse a folder with files in it for that reason alone

        def act(out: Any = out) -> None:
            place = str(Path.cwd()) if out is str else str(out)
            ran = audit("--out", place, file="../audit.yaml")
            must(not Path("trained.txt").exists(), f"models were trained first; then: {ran.err}")
            must(ran.code == 2, f"ended with {ran.code}")

        yield Case(part="folders", name=f"--out {name}", test=test, make=make, act=act, works=True)

    def made() -> None:
        files.npz(Path("e.npz"), files.EVIDENCE)
        command("score", "e.npz", "-a", "loss", "--out", "real")
        Path("link").symlink_to("real")

    def link() -> None:
        ran = command("score", "e.npz", "-a", "base", "--out", "link", "--overwrite")
        must(ran.code == 0, ran.err)
        must(Path("link").is_symlink(), "the link was replaced by a folder, and the run that it led to stayed")

    test = "tests/io/test_folders.py::test_a_link_to_a_run_stays_a_link"
    yield Case(part="folders", name="--out a link to a run", test=test, make=made, act=link, works=True)


def _folders() -> Iterator[Case]:
    test = "tests/io/test_kills.py::test_a_save_killed_at_any_call_loses_nothing_and_leaves_nothing[names exchanged]"
    yield Case(
        part="folders",
        name="an overwrite, killed at every call",
        test=test,
        make=_two_runs,
        act=_overwritten,
        works=True,
    )
    test = "tests/io/test_kills.py::test_a_first_save_killed_at_any_call_leaves_a_whole_run_or_none"
    yield Case(part="folders", name="leftovers of a killed save", test=test, make=_two_runs, act=_left, works=True)
    test = (
        "tests/pool/test_folder.py::"
        "test_a_complete_pool_that_cannot_be_written_is_used_and_an_incomplete_one_says_what_is_missing"
    )
    yield Case(
        part="folders",
        name="a complete pool that is read-only",
        test=test,
        make=lambda: pool("answers").train(progress=False),
        act=_read_only,
        works=True,
    )
    test = FAULTS + "test_nothing_was_run_is_said_only_where_nothing_was"
    yield Case(
        part="folders",
        name="nothing was run: said after two models were",
        test=test,
        make=lambda: own_audit(limit=2),
        act=lambda: must("nothing was run" not in audit("--out", "run").err, "two models were trained"),
        works=True,
    )
    test = FAULTS + "test_kept_is_said_only_of_models_that_are_kept"
    yield Case(
        part="folders", name="kept: said of what was not", test=test, make=own_audit, act=_kept, works=True, seconds=90
    )
    test = FAULTS + "test_what_is_written_is_the_owners_alone_unless_it_is_shared"
    yield Case(part="folders", name="modes of what is written", test=test, make=own_audit, act=_modes, works=True)
    test = "tests/io/test_leftovers.py::test_a_full_disk_leaves_the_earlier_run_and_nothing_else_and_says_so[True]"
    yield Case(part="folders", name="a full disk", test=test, make=_two_runs, act=_full, works=True)


def _two_runs() -> None:
    files.npz(Path("e.npz"), files.EVIDENCE)
    from glasshouse import audit_evidence, read_evidence

    found = read_evidence("e.npz")
    for name in ("run", "other"):
        audit_evidence(found.evidence, members=found.members, attacks=["loss"], progress=False).save(name)


def _save(place: str) -> None:
    """Save a run in the place of an earlier one; its files are made beforehand, so that a kill hits the saving."""
    from glasshouse.io.files import new_folder

    with new_folder(place, overwrite=True) as folder:
        for path in Path("other").iterdir():
            shutil.copyfile(path, folder / path.name)


def _overwritten() -> str:
    from glasshouse import InputError
    from glasshouse.report import read_run

    step = 0
    while killed_at(step := step + 1, lambda: _save("run")):
        try:
            read_run("run")
        except InputError as error:
            raise WrongError(f"killed at call {step}: {error}") from None
        must(step < 300, "the save never ended")
    return f"{step - 1} kills"


def _left() -> None:
    before = {path.name for path in Path().iterdir()}
    killed_at(6, lambda: _save("run"))
    _save("run")
    left = {path.name for path in Path().iterdir()} - before
    must(not left, f"left: {', '.join(sorted(left))}")


def _read_only() -> str:
    """As a user who may not write; root may write everywhere."""
    for path in (Path.cwd(), *Path.cwd().rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    return asked("answers")


def _kept() -> None:
    """A worker process that dies, without a pool: nothing is kept, and nothing else may be said."""
    import glasshouse.compute as one
    from glasshouse import InputError
    from glasshouse.compute import LocalProcesses

    for module, name in ((one, "_TRIES"), (getattr(one, "local", one), "TRIES")):
        setattr(module, name, 1)  # starting a worker takes seconds
    try:
        list(LocalProcesses(workers=2).run(_dies, (), [0, 1]))
    except InputError as error:
        must("kept" not in str(error), str(error))


def _dies(task: int) -> None:
    os._exit(1)


def _modes() -> None:
    os.umask(0o022)
    ran = audit("--out", "run", "--pool", "pool")
    must(ran.code == 0, ran.err)
    written = [Path("run"), Path("pool"), *Path("run").rglob("*"), *Path("pool").rglob("*")]
    modes = {oct(stat.S_IMODE(path.stat().st_mode))[2:] for path in written}
    must(modes <= {"600", "700"}, f"modes {', '.join(sorted(modes))}")


def _full() -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limit[1]))
    ran = command("score", "e.npz", "-a", "loss", "--out", "run", "--overwrite")
    resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    from glasshouse.report import read_run

    read_run("run")
    must(ran.code == 2 and {path.name for path in Path().iterdir()} == {"e.npz", "run", "other"}, "something is left")
    must("unchanged" in ran.err, f"the earlier run is there, but: {ran.err}")
