"""What `glasshouse reproduce all --preset paper` takes on one GPU that is lent for minutes. Writes whole_run.md.

One run, in several sittings: tables that are finished stay, and what was half done is done again in the next sitting,
with models trained anew (`experiments/on_device.sh`). `whole_run.json` keeps what each sitting finished, from the
provenance that the program wrote.

    python benchmarks/paper/whole_run.py --add RESULTS --seconds 983 --how "4 lanes, 2 workers"   # after a sitting
    python benchmarks/paper/whole_run.py --begin FOLDER      # before the next: tables of results/ that need not be run
    again
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from glasshouse_experiments import EXPERIMENTS
from glasshouse_experiments.settings import PRESETS

HERE = Path(__file__).parent
KEPT = HERE / "whole_run.json"
_ON_CPU = "-cpu"  # a part of wall-clock that a machine with a GPU does not run
_NEVER = "cifar10"  # its models train for longer than a sitting, and its files are too large to be sent along


def wanted() -> list[str]:
    """Every table of the paper's preset on a machine with a GPU, as EXPERIMENT/DATASET-PART.

    Example:
        >>> wanted()[0]
        'accuracy/cora'
    """
    size, found = PRESETS.find("paper"), []
    for name in EXPERIMENTS.names():
        parts = EXPERIMENTS.find(name)
        for dataset in size.datasets:
            for part in parts:
                title = part.part.name
                gpu = name == "wall-clock"  # its parts ask for the machine, which may be another one here
                if dataset in part.datasets and (part.part.wanted(size) or gpu):
                    found.append(f"{name}/{dataset}{'-' if title else ''}{title}")
    return [job for job in found if not job.endswith(_ON_CPU)]


def finished(sittings: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The tables of all sittings."""
    return {job: told for sitting in sittings for job, told in sitting["tables"].items()}


def sitting(results: Path, *, seconds: float, how: str, before: list[dict[str, Any]]) -> dict[str, Any]:
    """What a sitting finished: the tables of a folder that no earlier one has."""
    known, tables = finished(before), {}
    for path in sorted(results.glob("*/*.json")):
        job = f"{path.parent.name}/{path.stem}"
        if job not in known:
            made = json.loads(path.read_text(encoding="utf-8"))
            tables[job] = {key: made.get(key) for key in ("seconds", "training_seconds", "commit", "machine")}
    return {"seconds": seconds, "how": how, "tables": tables}


def page(sittings: list[dict[str, Any]]) -> str:
    """The sittings, what each data set took, and what is left, as Markdown."""
    done, jobs = finished(sittings), wanted()
    left = [job for job in jobs if job not in done]
    images = [job for job in left if _dataset(job) == _NEVER]
    total = sum(one["seconds"] for one in sittings)
    lines = [
        "# The whole paper on one GPU",
        "",
        f"`glasshouse reproduce all --preset paper`, in {len(sittings)} sittings of {total:.0f} s in all: {len(done)} "
        f"of {len(jobs) - len(images)} tables are finished, without CIFAR-10 ({len(images)} tables), whose models "
        "train for longer than a sitting. Training is included, and what was half done at the end of a sitting.",
        "",
        "| sitting | seconds | how | tables finished | commits |",
        "| --- | --- | --- | --- | --- |",
    ]
    for number, one in enumerate(sittings, 1):
        commits = sorted({str(told["commit"])[:7] for told in one["tables"].values()})
        lines.append(
            f"| {number} | {one['seconds']:.0f} | {one['how']} | {len(one['tables'])} | {', '.join(commits)} |"
        )
    lines += [
        "",
        "Seconds of each data set's tables, while other data sets ran beside it:",
        "",
        "| data set | tables finished | left | seconds | of them training |",
        "| --- | --- | --- | --- | --- |",
    ]
    for dataset in dict.fromkeys(map(_dataset, jobs)):
        told = [done[job] for job in jobs if job in done and _dataset(job) == dataset]
        if dataset != _NEVER:
            training = sum(one["training_seconds"] or 0.0 for one in told)
            undone = sum(_dataset(job) == dataset for job in left)
            taken = sum(one["seconds"] for one in told)
            lines.append(f"| {dataset} | {len(told)} | {undone} | {taken:.0f} | {training:.0f} |")
    names = [job for job in left if job not in images]
    return "\n".join([*lines, "", f"Left: {', '.join(names)}." if names else "Nothing else is left."]) + "\n"


def _dataset(job: str) -> str:
    """The data set of a table; names of parts follow it, and names of data sets may hold a hyphen themselves."""
    stem = job.split("/")[1]
    return max((name for name in PRESETS.find("paper").datasets if stem.startswith(name)), key=len)


def begin(folder: Path, results: Path, sittings: list[dict[str, Any]]) -> int:
    """Copy finished tables into a folder from which the next sitting goes on; return how many files."""
    count = 0
    for job in finished(sittings):
        for path in results.glob(f"{job}.*"):
            (folder / path.parent.name).mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / path.parent.name)
            count += 1
    return count


def main() -> None:
    """Add a sitting, or begin one, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", type=Path, help="results of a sitting")
    parser.add_argument("--seconds", type=float, default=0.0, help="how long it was")
    parser.add_argument("--how", default="", help="lanes, workers and whatever else matters")
    parser.add_argument("--begin", type=Path, help="folder for the tables that the next sitting need not run")
    options = parser.parse_args()
    kept: list[dict[str, Any]] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else []
    if options.add is not None:
        kept.append(sitting(options.add, seconds=options.seconds, how=options.how, before=kept))
        KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    if options.begin is not None:
        print(f"{begin(options.begin, HERE.parents[1] / 'results', kept)} files in {options.begin}")
    (HERE / "whole_run.md").write_text(page(kept), encoding="utf-8")


if __name__ == "__main__":
    main()
