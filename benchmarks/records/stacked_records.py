"""Memory and time of `stacked` on records, beside the evidence itself. Writes stacked_records.md beside itself.

Run: python benchmarks/records/stacked_records.py [--records 100000] [--models 8] [--modes online offline]. Each row is
a process of its own. Memory is what is allocated at once beyond the evidence, by tracemalloc, which takes time: seconds
are measured without it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np

from glasshouse import Evidence
from glasshouse.attacks import Stacked
from glasshouse.core.numerics import margin_to_loss
from glasshouse.data import complementary_halves
from glasshouse.evidence import Mode

LIMIT = 4.0  # times the evidence


def made_up(records: int, models: int, seed: int) -> Evidence:
    """Gaussian margins, larger for members; complementary halves; ten classes."""
    random = np.random.default_rng(seed)
    members = complementary_halves(records, models=models + 2, seed=seed)
    loss = margin_to_loss(random.normal(2, 2, size=records) + random.normal(size=members.shape) + members)
    labels = random.integers(10, size=records)
    return Evidence(target_loss=loss[-1], shadow_loss=loss[:-2], shadow_members=members[:-2], labels=labels)


def measure(records: int, models: int, mode: Mode, jobs: int) -> dict[str, float]:
    """Seconds (wall, processor) and megabytes of learning and scoring; and the size of the evidence."""
    attack = Stacked(mode=mode, jobs=jobs)
    attack.score(made_up(1000, models, 1))  # imports
    evidence = made_up(records, models, 0)
    size = evidence.target_loss.nbytes + evidence.shadow_loss.nbytes + evidence.shadow_members.nbytes
    start, work = time.perf_counter(), time.process_time()
    attack.score(evidence)
    found = {"seconds": time.perf_counter() - start, "processor": time.process_time() - work, "size": size / 1e6}
    tracemalloc.start()
    attack.score(evidence)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return found | {"peak": peak / 1e6}


def main() -> None:
    """Measure, print, and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--models", type=int, default=8)
    parser.add_argument("--modes", nargs="+", choices=["online", "offline"], default=["online"])
    parser.add_argument("--one", nargs=2, metavar=("MODE", "JOBS"), help="one row, as JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.records, options.models, options.one[0], int(options.one[1]))))
        return
    lines = [
        f"# `stacked` on {options.records:,} records with {options.models} shadow models",
        "",
        f"Learning and scoring. Memory beyond the evidence by tracemalloc, limit {LIMIT:.0f} times the evidence;",
        "seconds without tracemalloc. A fit has rows of its own, so more fits in parallel take more.",
        "",
        "| mode | jobs | seconds | processor | evidence, MB | beyond it, MB | times the evidence |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for mode in options.modes:
        for jobs in (1, 2):
            given = ["--records", str(options.records), "--models", str(options.models), "--one", mode, str(jobs)]
            done = subprocess.run([sys.executable, __file__, *given], capture_output=True, text=True, check=True)
            row = json.loads(done.stdout)
            figures = [f"{row[name]:.1f}" for name in ("seconds", "processor", "size", "peak")]
            lines.append(f"| {mode} | {jobs} | {' | '.join(figures)} | {row['peak'] / row['size']:.1f} |")
            print(lines[-1], flush=True)
    (Path(__file__).parent / "stacked_records.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
