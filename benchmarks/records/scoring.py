"""Attacks against BASE on the same evidence: time as a ratio, RMIA's peak memory as a multiple.

Run: python benchmarks/records/scoring.py [--records 100000] [--models 64]. Writes scoring.md beside itself.
"""

from __future__ import annotations

import argparse
import platform
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

from glasshouse import Evidence
from glasshouse.attacks import BASE, RMIA, Regressed
from glasshouse.core.arrays import BoolArray
from glasshouse.data import complementary_halves

LIMIT = 80  # x BASE, at 64 models: little more than one pass over the pool for each simulated target


def made_up(records: int, models: int, seed: int) -> Evidence:
    """Gamma losses, smaller for members; complementary halves."""
    random = np.random.default_rng(seed)
    members = complementary_halves(records, models=models, seed=seed)
    loss = random.gamma(1.0, np.where(members, 0.5, 1.0))
    return Evidence(target_loss=random.gamma(1.0, size=records), shadow_loss=loss, shadow_members=members)


def made_up_audit(records: int, models: int, seed: int) -> tuple[Evidence, BoolArray]:
    """The same with a target of the shadow models' kind, and its members: nothing is then withheld from an audit."""
    random = np.random.default_rng([seed, 1])
    members = random.random(records) < 0.5
    pool = made_up(records, models, seed)
    target = random.gamma(1.0, np.where(members, 0.5, 1.0))
    return Evidence(target_loss=target, shadow_loss=pool.shadow_loss, shadow_members=pool.shadow_members), members


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Processor time, the median of several runs; the machine is noisy, and others use it too."""
    taken = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return float(np.median(taken))


def peak_bytes(work: Callable[[], object]) -> int:
    """The most memory that was allocated at once while it ran, beyond what was allocated before."""
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def measure(records: int, models: int) -> dict[str, float]:
    """Ratios of one run."""
    evidence, others = made_up(records, models, 0), made_up(records, models, 1)
    size = evidence.shadow_loss.nbytes + evidence.shadow_members.nbytes + evidence.target_loss.nbytes
    base = seconds(lambda: BASE().score(evidence))
    return {
        "base_seconds": base,
        "rmia_ratio": seconds(lambda: RMIA().score(evidence)) / base,
        "rmia_other_population_ratio": seconds(lambda: RMIA().score(evidence, others)) / base,
        "regressed_ratio": seconds(lambda: Regressed().score(evidence), repeats=3) / base,
        "rmia_offline_ratio": seconds(lambda: RMIA(mode="offline").score(evidence), repeats=3) / base,
        "evidence_megabytes": size / 2**20,
        "rmia_memory_multiple": peak_bytes(lambda: RMIA().score(evidence, others)) / size,
    }


def main() -> None:
    """Measure, print, and keep the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--models", type=int, default=64)
    options = parser.parse_args()
    found = measure(options.records, options.models)
    machine = f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}"
    text = f"""# Scoring: RMIA and regressed against BASE

N = Z = {options.records:,}, K = {options.models}; {machine}.
Processor time in one process, medians of five runs (one for the slow ones). Peak memory beyond the evidence itself, by
tracemalloc.

| what | figure | limit |
| --- | --- | --- |
| BASE, the baseline | {found["base_seconds"]:.3f} s | |
| RMIA, Z the population itself | {found["rmia_ratio"]:.2f} x BASE | 10 |
| RMIA, Z another {options.records:,} records | {found["rmia_other_population_ratio"]:.2f} x BASE | 10 |
| regressed, its fit to all simulated targets included | {found["regressed_ratio"]:.0f} x BASE | {LIMIT} |
| RMIA offline, its tuning on all simulated targets included | {found["rmia_offline_ratio"]:.0f} x BASE | {LIMIT} |
| evidence | {found["evidence_megabytes"]:.1f} MiB | |
| RMIA's peak memory | {found["rmia_memory_multiple"]:.2f} x the evidence | 3 |
"""
    print(text)
    (Path(__file__).parent / "scoring.md").write_text(text)


if __name__ == "__main__":
    main()
