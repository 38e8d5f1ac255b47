"""Kills at random moments, and what they leave.

Run: python benchmarks/robustness/kills.py [--case NAME …]; writes kills.md.

Each command runs in a child of this process, which has imported everything, and is killed (SIGKILL) at a random moment
of its work or of a part of it. Then the place must hold the earlier run or the new one, complete; the same command,
left alone, must give the bytes of a run that was never disturbed; and nothing else may lie beside them. Run it with
``nice``; it needs a system that can fork.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import random
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from glasshouse import audit_evidence, write_evidence
from glasshouse.cli import main
from glasshouse.evidence import Evidence
from glasshouse.report import read_run

AUDIT = """
data: {name: file, path: people.csv, label: label, id: id}
trainer: {kind: mlp, hidden: [32], epochs: 12, batch_size: 16}
attacks: [base, lira, stacked]
shadows: 16
pool: pool
"""
ABOUT = """\
Each command was killed (SIGKILL) at a random moment of the part of its work that the row names, and then run again to
its end. *Earlier* and *new*: after the kill, the place held what it held before (or nothing, as before), or the
complete new result. *Lost*: neither. *Changed*: the bytes after the next run differ from those of a run that was never
disturbed. *Left*: files that the next run did not remove.
"""
VOLATILE = {"run.json", "report.html"}  # they hold dates and seconds; read_run checks them


@dataclass(frozen=True, kw_only=True)
class Case:
    """A command and the part of its work in which it is killed.

    Args:
        name: of the row.
        arguments: of the command line.
        results: what it writes, below the working folder; all of it is compared.
        fresh: whether the results are removed before each kill, so that everything is made anew.
        after: a part of a file's name: the kill comes after the first file with it is opened or made; empty for any
            moment of the whole command.
        within: seconds in which the kill comes, for a part that takes milliseconds; None for all that is left.
    """

    name: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    fresh: bool = False
    after: str = ""
    within: float | None = None


CASES = (
    Case(name="training", arguments=("audit", "audit.yaml", "--out", "a"), results=("a", "pool"), fresh=True),
    Case(
        name="training and scoring, 1 worker",
        arguments=("audit", "audit.yaml", "--out", "one", "--pool", "pool-1", "--workers", "1"),
        results=("one", "pool-1"),
        fresh=True,
    ),
    Case(
        name="training and scoring, 2 workers",
        arguments=("audit", "audit.yaml", "--out", "two", "--pool", "pool-2", "--workers", "2"),
        results=("two", "pool-2"),
        fresh=True,
    ),
    Case(name="scoring", arguments=("score", "e.npz", "--out", "s", "--overwrite"), results=("s",)),
    Case(name="saving", arguments=("score", "e.npz", "--out", "n"), results=("n",), fresh=True, after=".n."),
    Case(
        name="overwriting",
        arguments=("score", "e.npz", "--out", "s", "--overwrite"),
        results=("s",),
        after=".run.json.",
        within=0.02,
    ),
    Case(name="reporting", arguments=("report", "s", "--out", "page.html"), results=("page.html",)),
    Case(
        name="replacing a page",
        arguments=("report", "s", "--out", "page.html"),
        results=("page.html",),
        after=".page.html.",
        within=0.01,
    ),
    Case(name="comparing", arguments=("compare", "s", "t", "--out", "both.html"), results=("both.html",)),
)


@dataclass
class Count:
    """What was seen of a case."""

    kills: int = 0
    ended: int = 0  # the command was faster than the kill
    earlier: int = 0  # of the kills: the place holds what it held before
    new: int = 0  # of the kills: it holds the new result, complete
    lost: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def start(arguments: tuple[str, ...], *, after: str = "") -> tuple[int, int]:
    """A child that runs a command; its id, and a pipe that can be read once the moment of ``after`` has come."""
    waiting, telling = os.pipe()
    child = os.fork()
    if child:
        os.close(telling)
        return child, waiting
    try:
        os.close(waiting)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        if not after:
            os.write(telling, b"!")

        def hook(event: str, given: tuple[Any, ...]) -> None:
            if after and event in ("open", "os.mkdir", "os.rename") and after in Path(str(given[0])).name:
                os.write(telling, b"!")

        sys.addaudithook(hook)
        sys.argv = ["glasshouse", *arguments]
        main()
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 0)
    finally:
        os._exit(1)


def finished(arguments: tuple[str, ...], *, after: str = "") -> float:
    """Run a command to its end, undisturbed; seconds from the moment of ``after`` to the end."""
    child, waiting = start(arguments, after=after)
    select.select([waiting], [], [])
    began = time.monotonic()
    status = os.waitpid(child, 0)[1]
    os.close(waiting)
    if status:
        raise SystemExit(f"{' '.join(arguments)}: ended with {status}")
    return time.monotonic() - began


def killed(case: Case, *, within: float, chance: random.Random) -> bool:
    """Start a command and kill it at a random moment; False if it had ended before."""
    child, waiting = start(case.arguments, after=case.after)
    select.select([waiting], [], [])
    time.sleep(chance.uniform(0.0, within))
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    os.close(waiting)
    return os.WIFSIGNALED(status)


def contents(names: tuple[str, ...]) -> dict[str, bytes]:
    """Every file of the results, hidden ones too, by its path."""
    found = [path for name in names for path in [Path(name), *Path(name).rglob("*")] if path.is_file()]
    return {str(path): path.read_bytes() for path in found if path.name not in VOLATILE}


def remove(names: tuple[str, ...]) -> None:
    """Remove files and folders, if they are there."""
    for path in map(Path, names):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def kill_often(case: Case, *, kills: int, chance: random.Random) -> Count:
    """Kill a command this often; after each kill, judge what is left, and run it again to its end."""
    count = Count()
    if case.fresh:
        remove(case.results)
    finished(case.arguments)
    whole = contents(case.results)
    visible = {path.name for path in Path().iterdir()}
    if case.fresh:
        remove(case.results)
    within = finished(case.arguments, after=case.after) if case.within is None else case.within
    while count.kills < kills:
        if case.fresh:
            remove(case.results)
        stamps = {name: Path(name).stat().st_ino for name in case.results if Path(name).exists()}
        if not killed(case, within=within, chance=chance):
            count.ended += 1
            continue
        count.kills += 1
        judge(case, count, stamps)
        finished(
            case.arguments if not case.fresh or "--overwrite" in case.arguments else (*case.arguments, "--overwrite")
        )
        if contents(case.results) != whole:
            count.changed.append(f"kill {count.kills}")
        count.left += sorted({path.name for path in Path().iterdir()} - visible)
        count.left += [str(path) for name in case.results for path in Path(name).rglob("*unfinished*")]
    return count


def judge(case: Case, count: Count, stamps: dict[str, int]) -> None:
    """Count whether the first result is the earlier one or the new one; anything else is lost."""
    name = case.results[0]
    place = Path(name)
    if not place.exists():
        if name in stamps:
            count.lost.append(f"kill {count.kills}: {name} is gone")
        else:
            count.earlier += 1
        return
    if place.is_dir():
        try:
            read_run(place)
        except ValueError as error:
            count.lost.append(f"kill {count.kills}: {error}")
            return
    elif not place.read_bytes().rstrip().endswith(b"</html>"):
        count.lost.append(f"kill {count.kills}: {name} is a part of a page")
        return
    same = stamps.get(name) == place.stat().st_ino
    count.earlier += same
    count.new += not same


@contextlib.contextmanager
def working_folder() -> Iterator[None]:
    """A folder with the files that the commands read."""
    chance = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        rows = "\n".join(
            f"p{i},{a:.4f},{b:.4f},{int(a + b > 0)}" for i, (a, b) in enumerate(chance.normal(size=(80, 2)))
        )
        Path("people.csv").write_text(f"id,a,b,label\n{rows}\n")
        Path("audit.yaml").write_text(AUDIT)
        members = chance.random((8, 400)) < 0.5
        losses = chance.gamma(2.0, size=(9, 400)) + 0.5 * ~np.vstack([members, members[:1]])
        evidence = Evidence(target_loss=losses[8], shadow_loss=losses[:8], shadow_members=members)
        write_evidence("e.npz", evidence, members=members[0])
        for name in ("s", "t"):
            audit_evidence(evidence, members=members[0], attacks=["base", "lira"], progress=False).save(name)
        yield


def report(counts: dict[str, Count], seconds: float) -> str:
    """The page of results."""
    rows = [
        f"| {name} | {one.kills} | {one.earlier} | {one.new} | {len(one.lost)} | {len(one.changed)} | {len(one.left)} |"
        for name, one in counts.items()
    ]
    every = list(counts.values())
    total = [sum(one.kills for one in every), sum(one.earlier for one in every), sum(one.new for one in every)]
    faults = [sum(len(getattr(one, name)) for one in every) for name in ("lost", "changed", "left")]
    told = [line for one in every for line in (*one.lost, *one.changed, *one.left)]
    return "\n".join(
        [
            "# Kills at random moments",
            "",
            ABOUT,
            f"Python {platform.python_version()}, {platform.system()}, {seconds:.0f} s; python "
            f"benchmarks/robustness/kills.py.",
            "",
            "| killed while | kills | earlier | new | lost | changed | left |",
            "| --- | --- | --- | --- | --- | --- | --- |",
            *rows,
            f"| **all** | {' | '.join(map(str, total + faults))} |",
            "",
            *told,
        ]
    )


def measure(kills: int, *, seed: int = 0, names: Sequence[str] = ()) -> dict[str, Count]:
    """Counts by case, of those named or of all, with about this many kills in all."""
    chance = random.Random(seed)
    cases = [case for case in CASES if not names or case.name in names]
    each = -(-kills // len(cases))
    with working_folder():
        counts = {}
        for case in cases:
            counts[case.name] = kill_often(case, kills=each, chance=chance)
            print(case.name, counts[case.name], flush=True)
        return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=105)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", action="append", default=[], choices=[case.name for case in CASES])
    options = parser.parse_args()
    began = time.monotonic()
    page = report(measure(options.kills, seed=options.seed, names=options.case), time.monotonic() - began)
    if not options.case:
        Path(__file__).with_suffix(".md").write_text(page.rstrip() + "\n")
    print(page)
