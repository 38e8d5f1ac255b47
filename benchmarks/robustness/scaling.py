"""How processor time and memory grow with each dimension of an input: n, 2n and 4n.

Run: python benchmarks/robustness/scaling.py [--only columns] [--turns 2]; writes scaling.md, where rows of dimensions
that are not named stay. Each size runs as a command in a forked child of a process that has imported everything
(`memory_bombs.in_child`); of several turns the least counts. Growth is (f(4n) - f(2n)) / (f(2n) - f(n)), so that what
every command needs does not count: 2 for linear work, 2.2 for n log n with these sizes, 4 for quadratic work. Tests in
tests/benchmarks/test_scaling.py count comparisons and additions instead.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from memory_bombs import Bomb, emptied, halves, in_child, in_child_made

import glasshouse.graph.audit  # noqa: F401 (imported before the fork)

MOST = 3.0  # growth; n log n has 2.2, and processors are shared
LEAST_SECONDS, LEAST_BYTES = 0.15, 2e7  # what grows by less than this is lost in the noise
_TABLE = """
data: {{name: file, path: d.csv, label: label, groups: [{groups}]}}
trainer: {{kind: sklearn, estimator: DecisionTreeClassifier, parameters: {{max_depth: 2}}}}
attacks: [base]
shadows: 2
"""
_GRAPH = """
graph: {name: ./g.npz, network: {hidden: 8, epochs: 5}}
attacks: [base]
shadows: 4
"""


_LIGHT = ("base", "rmia", "lira")


def _evidence(
    folder: Path, *, records: int, models: int, classes: int = 0, attacks: tuple[str, ...] = (), paired: bool = True
) -> Bomb:
    random = np.random.default_rng(0)
    kind, shape = ("logits", (records, classes)) if classes else ("loss", (records,))
    shown: dict[str, Any] = {
        f"target_{kind}": random.exponential(size=shape),
        f"shadow_{kind}": random.exponential(size=(models, *shape)),
    }
    known: dict[str, Any] = {"labels": np.arange(records) % classes} if classes else {}
    members = random.permuted(halves(models // 2, records), axis=1)
    members = np.concatenate([members, ~members])
    if not paired:  # every record is still in half of the models, as Carlini et al. draw them
        members = random.permuted(members, axis=0)
    np.savez(folder / "e.npz", **shown, **known, shadow_members=members, members=members[0])
    flags = [part for name in attacks for part in ("-a", name)]
    return Bomb("", "", ("score", str(folder / "e.npz"), "-q", *flags), 0)


def _table(folder: Path, *, records: int, columns: int, groups: int = 0, values: int = 0) -> Bomb:
    random = np.random.default_rng(0)
    names = [f"c{one}" for one in range(columns)] + [f"g{one}" for one in range(groups)] + ["label"]
    with (folder / "d.csv").open("w") as file:
        file.write(",".join(names) + "\n")
        for record in range(records):
            numbers = random.integers(100, size=columns).astype(str).tolist()
            parts = [f"v{(record * 7 + one) % max(values, 2)}" for one in range(groups)]
            file.write(",".join([*numbers, *parts, str(record % 2)]) + "\n")
    (folder / "audit.yaml").write_text(_TABLE.format(groups=", ".join(f"g{one}" for one in range(groups))))
    return Bomb("", "", ("audit", str(folder / "audit.yaml"), "-q", "--out", str(folder / "run")), 0)


def _ids(folder: Path, *, length: int) -> Bomb:
    records, models = 8000, 9
    members = halves(models, records).astype(int)
    with (folder / "e.csv").open("w") as file:
        file.write("model,id,member,loss\n")
        for model in range(models):
            name = f"s{model}" if model else "target"
            file.writelines(f"{name},{one:0{length}d},{members[model, one]},{one % 13}\n" for one in range(records))
    return Bomb("", "", ("score", str(folder / "e.csv"), "-q", "-a", "base", "--out", str(folder / "run")), 0)


def _edges(folder: Path, *, edges: int) -> Bomb:
    random = np.random.default_rng(0)
    x, y = random.normal(size=(1000, 8)).astype("f4"), np.arange(1000) % 2
    np.savez(folder / "g.npz", x=x, y=y, edge_index=random.integers(1000, size=(2, edges)))
    (folder / "audit.yaml").write_text(_GRAPH)
    return Bomb("", "", ("audit", str(folder / "audit.yaml"), "-q", "--out", str(folder / "run")), 0)


@dataclass(frozen=True)
class Dimension:
    """What is made larger: a name, the smallest size, and a function that writes the input of a size."""

    name: str
    least: int
    make: Callable[[Path, int], Bomb]


DIMENSIONS = (
    Dimension("records", 200_000, lambda folder, n: _evidence(folder, records=n, models=8)),
    Dimension("models", 256, lambda folder, n: _evidence(folder, records=2000, models=n, attacks=_LIGHT)),
    Dimension(
        "models without pairs",
        256,
        lambda folder, n: _evidence(folder, records=2000, models=n, attacks=_LIGHT, paired=False),
    ),
    Dimension(
        "models, bavaria",
        256,
        lambda folder, n: _evidence(folder, records=1000, models=n, attacks=("bavaria",)),
    ),
    Dimension(
        "classes", 1000, lambda folder, n: _evidence(folder, records=500, models=4, classes=n, attacks=("base",))
    ),
    Dimension("columns", 10_000, lambda folder, n: _table(folder, records=40, columns=n)),
    Dimension("length of ids", 60, lambda folder, n: _ids(folder, length=n)),
    Dimension("edges", 200_000, lambda folder, n: _edges(folder, edges=n)),
    Dimension("attacks", 16, lambda folder, n: _evidence(folder, records=10_000, models=8, attacks=("base",) * n)),
    Dimension("columns of groups", 40, lambda folder, n: _table(folder, records=2000, columns=2, groups=n, values=4)),
    Dimension("groups of a column", 50, lambda folder, n: _table(folder, records=4000, columns=2, groups=1, values=n)),
)


@dataclass(frozen=True)
class Grown:
    """Processor seconds and peaks in bytes at n, 2n and 4n."""

    name: str
    least: int
    seconds: tuple[float, ...]
    peaks: tuple[float, ...]

    @property
    def growth(self) -> tuple[float, float]:
        """Of processor time and of memory; 0 where next to nothing grows."""
        return growth(self.seconds, LEAST_SECONDS), growth(self.peaks, LEAST_BYTES)


def growth(values: tuple[float, ...], least: float) -> float:
    """(f(4n) - f(2n)) / (f(2n) - f(n)); 0 where the last step is below ``least``."""
    first, second = values[1] - values[0], values[2] - values[1]
    return 0.0 if second < least else second / max(first, least / 2)


def measured(one: Dimension, *, turns: int) -> Grown:
    """A dimension at its three sizes; of several turns the least counts, since others use the machine too."""
    seconds, peaks = [], []
    with tempfile.TemporaryDirectory() as place:
        for times in (1, 2, 4):
            tried, size = [], times * one.least
            for _ in range(turns):
                with emptied(Path(place) / "files") as folder:
                    make = partial(_made, one, size)
                    made = in_child_made(make, np.random.default_rng(0), folder, 1.0)
                    ended = in_child(made.arguments, memory="8GiB")
                if ended.code:
                    raise SystemExit(f"{one.name}, {size}: {ended}")
                tried.append(ended)
            seconds.append(min(ended.seconds for ended in tried))
            peaks.append(float(min(ended.peak for ended in tried)))
    return Grown(one.name, one.least, tuple(seconds), tuple(peaks))


def _made(one: Dimension, size: int, rng: np.random.Generator, folder: Path, *, scale: float) -> Bomb:
    """The input of a size, with the arguments of the bombs' generators."""
    return one.make(folder, size)


def page(rows: list[Grown], turns: int, before: str = "") -> str:
    """The page of results, with the rows of the page before for dimensions that were not measured."""
    told = "the only turn" if turns == 1 else f"the least of {turns} turns"
    lines = [
        "# Growth with each dimension",
        "",
        f"`python benchmarks/robustness/scaling.py`, Python {platform.python_version()}, {os.cpu_count()} cores "
        f"that others used "
        f"too; {told}. Rows that were not measured again are of an earlier run. Growth: (f(4n) - f(2n)) / (f(2n) - "
        f"f(n)), 2 for linear work, 2.2 for n log n, 4 for quadratic work, and – where less than {LEAST_SECONDS} s or "
        f"{LEAST_BYTES / 1e6:.0f} MB is added.",
        "",
        "Models: base, rmia and lira; each of the K simulated targets is judged by all others, and only sums that "
        "contain a model that is left out are made again (`in_out_moments.py`). Ids have at most 256 characters.",
        "",
        "| dimension | n | processor, in s: n, 2n, 4n | growth | peak, in MB: n, 2n, 4n | growth |",
        "| --- | ---: | --- | ---: | --- | ---: |",
    ]
    known = {line.split("|")[1].strip(): line for line in before.splitlines() if line.startswith("| ")}
    for row in rows:
        times, sizes = (f"{one:.1f}" if one else "–" for one in row.growth)
        took = ", ".join(f"{one:.2f}" for one in row.seconds)
        held = ", ".join(f"{one / 1e6:.0f}" for one in row.peaks)
        known[row.name] = f"| {row.name} | {row.least} | {took} | {times} | {held} | {sizes} |"
    lines += [known[one.name] for one in DIMENSIONS if one.name in known]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", action="append", choices=[one.name for one in DIMENSIONS])
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    found: list[Grown] = []
    for dimension in DIMENSIONS:
        if not options.only or dimension.name in options.only:
            found.append(measured(dimension, turns=options.turns))
            print(found[-1], found[-1].growth, flush=True)
    before = options.out.read_text() if options.out.exists() else ""
    options.out.write_text(page(found, options.turns, before))
