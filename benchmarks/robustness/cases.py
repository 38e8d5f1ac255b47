"""Every hostile case, in this tree and in an older one.

Run: python benchmarks/robustness/cases.py --old PATH; writes cases.md.

PATH is a checkout of the older commit (git worktree add --detach PATH 5f6366e). Each case is a file, a place or a
moment that once did harm, with the test that shows it today. It is given to both trees, in a process of its own with at
most 1 GiB more than the imports take and at most 20 seconds. Needs a system that can fork.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("raw exception", "crash", "bomb", "accepted", "wrong", "not there", "not tried")
ABOUT = """\
Each row was given to the commit {old} and to this tree ({new}), each in a process of its own with at most 1 GiB
more than its imports take and at most 20 seconds (30 for clusters, more for many kills). What the earlier tree did:
*raw exception*: an exception other than `InputError`; *crash*: the process ended; *bomb*: too much memory, too long, or
a line of more than 2100 letters; *accepted*: the input gave a result; *wrong*: it did what it must not do; *not there*:
there was no such option or reader; *not tried*: the input could not be made there, since it has no such field;
**held**: refused in one line, or it worked as it must, already then.

Made by `python benchmarks/robustness/cases.py --old PATH`; the tests are named as pytest names them.
"""


def inside(name: str | None) -> None:
    """In one tree: try every case and print a line for each."""
    from cases_acts import act_cases
    from cases_files import file_cases
    from cases_folders import folder_cases
    from cases_kinds import timed
    from cases_stored import stored_cases

    import glasshouse.cli
    import glasshouse.graph
    import glasshouse.report  # noqa: F401 (imported before the children are made)

    for case in (*file_cases(), *stored_cases(), *folder_cases(), *act_cases()):
        if name is not None and name not in f"{case.part} {case.name}":
            continue
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            outcome, seconds = timed(case, Path(folder))
            for path in (Path(folder), *Path(folder).rglob("*")):
                if path.is_dir() and not path.is_symlink():
                    path.chmod(0o700)
        told = outcome.told.replace(folder, "…")
        print("CASE " + json.dumps([case.part, case.name, case.test, outcome.word, told, outcome.held, seconds]))


def outcomes(tree: Path, name: str | None) -> dict[str, list[str]]:
    """What every case did in a tree, by part and name."""
    paths = [tree / "src", ROOT / "benchmarks" / "robustness", ROOT]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "OMP_NUM_THREADS": "1"}
    arguments = [sys.executable, __file__, "--inside", *([] if name is None else ["--name", name])]
    with (
        tempfile.TemporaryDirectory() as home,
        subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, text=True, cwd=home) as running,
    ):
        found = {}
        assert running.stdout is not None
        for line in running.stdout:
            if line.startswith("CASE "):
                one = json.loads(line[5:])
                found[f"{one[0]}: {one[1]}"] = one
                print(f"{tree.name}: {one[0]}: {one[1][:60]}: {one[3]}: {one[4][:110]} ({one[6]:.1f} s)", flush=True)
    if running.returncode:
        raise SystemExit(f"{tree}: ended with {running.returncode}")
    return found


def commit(tree: Path) -> str:
    """The commit of a checkout, in short."""
    command = ["git", "-C", str(tree), "rev-parse", "--short=7", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def cell(text: str, most: int = 90) -> str:
    """Text for a table: short, on one line, and only text."""
    plain = "".join(letter if letter.isprintable() else "�" for letter in text).replace("|", "\\|").replace("<", "&lt;")
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def page(before: dict[str, list[str]], now: dict[str, list[str]], *, old: str, new: str) -> str:
    """Both as Markdown."""
    counts = Counter("held" if before[one][5] else before[one][3] for one in now)
    failed = [one for one in now if not now[one][5]]
    parts = list(dict.fromkeys(one[0] for one in now.values()))
    lines = ["# Hostile cases, then and now", "", ABOUT.format(old=old, new=new)]
    told = ", ".join(f"{counts[word]} {word}" for word in WORDS if counts[word])
    lines.append(f"{len(now)} cases. In {old}: {told}, {counts['held']} held. Today: {len(now) - len(failed)} hold.")
    for part in parts:
        rows = {name: one for name, one in now.items() if one[0] == part}
        lines += [
            "",
            f"## {part.capitalize()}",
            "",
            f"| case | {old} | today | today's test |",
            "| --- | --- | --- | --- |",
        ]
        for name, one in rows.items():
            then = before[name]
            was = "**held**" if then[5] else f"{then[3]}: {cell(then[4])}".rstrip(": ")
            today = cell(one[4]) or one[3] if one[5] else f"**FAILS**: {one[3]}: {cell(one[4])}"
            lines.append(f"| {cell(one[1])} | {was} | {today} | `{cell(one[2].removeprefix('tests/'), 400)}` |")
    return "\n".join([*lines, ""])


def renewed(whole: str, some: str) -> str:
    """A page with the rows of another one in the place of its own, and counted again."""
    rows = {line.split(" | ")[0]: line for line in some.splitlines() if line.endswith("` |")}
    lines = [rows.get(line.split(" | ")[0], line) for line in whole.splitlines()]
    then = [line.split(" | ")[1] for line in lines if line.endswith("` |")]
    counts = Counter("held" if one == "**held**" else one.split(":")[0] for one in then)
    told = ", ".join(f"{counts[word]} {word}" for word in (*WORDS, "held") if counts[word])
    again = r"(?<=: )\d+ (?!cases)[^.]*(?=\. Today)"
    return "\n".join([re.sub(again, told, line) if " cases. In " in line else line for line in lines]) + "\n"


def main() -> None:
    """Run both trees and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--old", type=Path, help="a checkout of an older commit")
    parser.add_argument("--name", help="only cases with this in their part or name; their rows of cases.md are renewed")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(options.name)
        return
    if options.old is None:
        parser.error("--old: give a checkout of an older commit")
    now = outcomes(ROOT, options.name)
    before = outcomes(options.old.resolve(), options.name)
    place = Path(__file__).with_suffix(".md")
    text = page(before, now, old=commit(options.old), new=commit(ROOT))
    if options.name is not None:
        text = renewed(place.read_text(encoding="utf-8"), text)
    place.write_text(text, encoding="utf-8")
    if failed := [one for one in now if not now[one][5]]:
        raise SystemExit(f"{len(failed)} fail today: {', '.join(failed)}")


if __name__ == "__main__":
    main()
