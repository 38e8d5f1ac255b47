"""``glasshouse score`` of saved evidence, from ten thousand records on: processor time, wall clock, memory.

    python benchmarks/scale/score.py                                  # writes score.md beside itself
    python benchmarks/scale/score.py --against TREE --records 1000000 # also by another checkout, in the same minutes
    python benchmarks/scale/score.py --models 8 --records 10000000 --attacks base,lira,rmia

Each case is a process of its own. Its memory is the largest resident size, less that of the same command on a hundred
records, as a multiple of the evidence in memory. What is measured is kept in ``score.jsonl``; a case that is there is
not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from growth_tables import exponent

HERE, TREE = Path(__file__).parent, Path(__file__).parents[2]
sys.path += [str(HERE.parent / "records"), str(TREE / "src")]
TOGETHER = "base,lira,rmia"


def write_made_up(path: Path, records: int, models: int) -> None:
    """Evidence of a target of the shadow models' kind, with its members; prints the bytes of its arrays in memory."""
    from scoring import made_up_audit

    from glasshouse.evidence import read_evidence, write_evidence
    from glasshouse.io.limits import memory_limit

    evidence, members = made_up_audit(records, models, 0)
    write_evidence(path, evidence, members=members)
    with memory_limit("16GiB"):
        held = vars(read_evidence(path).evidence).values()
    print(sum(int(getattr(one, "nbytes", 0)) for one in held))


def spent(tree: Path, path: Path, attacks: str) -> tuple[float, float, float]:
    """Seconds by the clock and of all processors, and the largest resident MiB, of one ``glasshouse score``."""
    options = ["--quiet", "--memory", "16GiB", *(part for name in attacks.split(",") for part in ("-a", name))]
    command = ["-c", "from glasshouse.cli import main; main()", "score", str(path), *options]
    began = time.perf_counter()
    child = os.posix_spawn(
        sys.executable,
        [sys.executable, *command],
        {**os.environ, "PYTHONPATH": str(tree / "src")},
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, used = os.wait4(child, 0)
    if status:
        sys.exit(f"glasshouse score {path} -a {attacks} by {tree}: it failed.")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def measure(tree: Path, records: int, models: int, attacks: str) -> dict[str, Any]:
    """One case."""
    with tempfile.TemporaryDirectory() as place:
        small, large = Path(place) / "small.npz", Path(place) / "evidence.npz"
        # by processes of their own: the largest resident size of a process begins with that of the one that starts it
        for path, count in ((small, 100), (large, records)):
            command = [sys.executable, str(HERE / "score.py"), "--write", str(path), str(count), str(models)]
            size = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) / 2**20
        empty = spent(tree, small, attacks)[2]
        wall, processor, peak = spent(tree, large, attacks)
    return {"wall": wall, "processor": processor, "memory": peak - empty, "evidence": size}


def table(kept: Sequence[dict[str, Any]]) -> str:
    """The page: a table of all cases, and one of exponents."""
    lines = ["| attacks | models | records | version | processor time, s | clock, s | memory, MiB | x the evidence |"]
    lines.append("| --- " * 8 + "|")
    groups: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for one in sorted(kept, key=lambda one: (one["attacks"], one["models"], one["records"], one["version"])):
        groups.setdefault((one["attacks"], one["models"], one["version"]), []).append(one)
        multiple = f"{one['memory'] / one['evidence']:.1f}" if one["evidence"] > 10 else "–"
        lines.append(
            f"| {one['attacks'].replace(',', ', ')} | {one['models']} | {one['records']:,} | {one['version']} | "
            f"{one['processor']:.1f} | {one['wall']:.0f} | {one['memory']:.0f} | {multiple} |"
        )
    lines += ["", "| attacks | models | version | exponent of processor time | of memory | of the last step |"]
    lines.append("| --- " * 6 + "|")
    for (attacks, models, version), cases in groups.items():
        if len(cases) > 1:
            sizes = [one["records"] for one in cases]
            slopes = [exponent(sizes, [max(one[name], 1e-9) for one in cases]) for name in ("processor", "memory")]
            last = exponent(sizes[-2:], [one["processor"] for one in cases[-2:]])
            cells = " | ".join(f"{slope:.2f}" for slope in (*slopes, last))
            lines.append(f"| {attacks.replace(',', ', ')} | {models} | {version} | {cells} |")
    machines = "; ".join(dict.fromkeys(one["machine"] for one in kept))
    return f"""# Scoring saved evidence

Written by `python benchmarks/scale/score.py`. {machines}.

`glasshouse score` of made-up losses in a process of its own: reading, attacks, thresholds, all tests and the table;
*before* is the commit that the change began with. Two seconds of each are the start of Python. Processor time is that
of all threads; the clock also counts what other work on the machine takes. Memory is the largest resident size less
that of the same command on a hundred records; the evidence itself is 1 of its multiples.

Of a million records and 16 models the evidence is 168 MiB, of which 130 are losses that stay in their file and are in
memory only while they are looked at. Of each attack that has run 31 are held, as scores, scores for flags, p-values and
stabilities; while an attack runs, what is made of two simulated targets at once. The rest is memory that the C library
keeps. Rows of other attacks or of 8 or 64 models are of the version before losses stayed in their file.

{chr(10).join(lines)}
"""


def main() -> None:
    """Measure what is not kept yet, print it, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--models", type=int, default=16)
    parser.add_argument("--attacks", nargs="*", default=[TOGETHER, "stacked", "best"], help="lists of names, by commas")
    parser.add_argument("--against", type=Path, help="a checkout of another version")
    parser.add_argument("--machine", default="", help="a few words about it and what else it did")
    parser.add_argument("--write", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write_made_up(Path(options.write[0]), *map(int, options.write[1:]))
        return
    kept_at = HERE / "score.jsonl"
    kept = [json.loads(line) for line in kept_at.read_text().splitlines()] if kept_at.exists() else []
    versions = {"now": TREE} | ({"before": options.against.resolve()} if options.against else {})
    for attacks in options.attacks:
        for records in options.records:
            for version, tree in versions.items():
                case = {"attacks": attacks, "models": options.models, "records": records, "version": version}
                if any(case.items() <= one.items() for one in kept):
                    continue
                found = measure(tree, records, options.models, attacks)
                kept.append({**case, **found, "machine": options.machine})
                with kept_at.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(kept[-1]) + "\n")
                print(kept[-1], flush=True)
    (HERE / "score.md").write_text(table(kept), encoding="utf-8")


if __name__ == "__main__":
    main()
