"""Small files that hold much: a command stays within twice its limit on memory, or ends in one line.

Run: python benchmarks/robustness/memory_bombs.py [--files 100] [--seed 0]; writes memory_bombs.md. A seeded generator
writes evidence, data sets, graphs, runs and pools whose dimensions are drawn log-uniformly and whose content is
constant or repeats, compressed where the format can. Each goes through the command in a forked child of a process that
has imported everything; the system says the child's peak (wait4). The baseline of a kind is the peak of the same
command on its smallest file: the interpreter and its libraries, which no limit can take away.

A fault is: any exit code but 0 and 2, a refusal that is not one line for each fault, a process that dies or uses no
processor any more (a hang), and a peak over the baseline and twice the limit.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
import math
import os
import platform
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import glasshouse.attacks.stacked
import glasshouse.cli.audit
import glasshouse.cli.saved_runs  # noqa: F401 (imported before the fork)
from glasshouse import audit_evidence
from glasshouse.cli import main as command
from glasshouse.evidence import Evidence
from glasshouse.pool.description import digest_of

MOST_PROCESSOR = 300  # seconds of one command
IDLE = 60  # seconds without any work of the processor: it hangs
_AUDIT = """
data: {{name: file, path: {path}, label: label}}
trainer: {{kind: sklearn, estimator: DecisionTreeClassifier, parameters: {{max_depth: 2}}}}
attacks: [base]
shadows: 2
"""
_GRAPH = """
graph: {{name: ./{path}, network: {{hidden: 4, epochs: 1}}}}
attacks: [base]
shadows: 2
fprs: []
"""


@dataclass(frozen=True)
class Bomb:
    """A command on a file that holds much.

    Args:
        kind: of the file.
        about: its dimensions.
        arguments: of the command line.
        size: bytes of the file.
    """

    kind: str
    about: str
    arguments: tuple[str, ...]
    size: int


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (negative: a signal), its peak in bytes, its processor time, what it said."""

    code: int
    peak: int
    seconds: float
    said: str


def drawn(rng: np.random.Generator, least: float, most: float) -> int:
    """A whole number, log-uniform."""
    return round(math.exp(rng.uniform(math.log(least), math.log(max(least, most)))))


def content(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Zeros, one number everywhere, or a few numbers over and over."""
    kind = rng.integers(3)
    if kind == 0:
        return np.zeros(shape)
    if kind == 1:
        return np.full(shape, round(float(rng.uniform(0, 3)), 3))
    return np.resize(np.round(rng.exponential(size=7), 3), shape)


def halves(models: int, records: int) -> np.ndarray:
    """[K, N] members, so that each record has models with and without it."""
    return np.asarray((np.arange(models)[:, None] + np.arange(records)) % 2 == 0)


def evidence_npz(rng: np.random.Generator, folder: Path, *, scale: float) -> Bomb:
    """Losses of many models or records, or logits of many classes."""
    models, records = 2 * drawn(rng, 1, 300), drawn(rng, 40, 2e6 * scale)
    models = max(2, min(models, 2 * int(4e7 * scale / records)))
    if classes := drawn(rng, 2, 2000) if rng.integers(3) == 0 else 0:
        records = max(40, records // classes)
        models = max(2, min(models, 2 * int(4e7 * scale / records / classes)))
        shown: dict[str, Any] = {"target_logits": content(rng, (records, classes))}
        shown["shadow_logits"] = content(rng, (models, records, classes))
        shown["labels"] = np.arange(records) % classes
    else:
        shown = {"target_loss": content(rng, (records,)), "shadow_loss": content(rng, (models, records))}
    known: dict[str, Any] = {"members": halves(1, records)[0]} if rng.integers(2) else {}
    save = np.savez if rng.integers(4) == 0 else np.savez_compressed
    save(folder / "e.npz", **shown, **known, shadow_members=halves(models, records))
    return scored("evidence, npz", rng, folder / "e.npz", f"{models} models, {records} records, {classes} classes")


def scored(kind: str, rng: np.random.Generator, path: Path, about: str) -> Bomb:
    """``glasshouse score`` of a file, with the default attacks or two of all."""
    names = ["base", "rmia", "lira", "stacked", "quantile", "loss", "bavaria", "shrunk-lira", "classifier"]
    some = [] if rng.integers(2) else [str(one) for one in rng.choice(names, size=2, replace=False)]
    flags = [part for name in some for part in ("-a", name)]
    about = f"{about}, {' and '.join(some) or 'default attacks'}"
    return Bomb(kind, about, ("score", str(path), "-q", *flags), path.stat().st_size)


def tidy(rng: np.random.Generator, models: int, records: int) -> dict[str, list[str]]:
    """The columns of a table of evidence."""
    width = drawn(rng, 1, 200)
    ids = [f"{one:0{width}d}" for one in range(records)]
    member = halves(models, records).astype(int).astype(str)
    return {
        "model": [f"s{one}" if one else "target" for one in range(models) for _ in range(records)],
        "id": ids * models,
        "member": member.ravel().tolist(),
        "loss": [f"{one:g}" for one in content(rng, (models * records,))],
    }


def evidence_csv(rng: np.random.Generator, folder: Path, *, scale: float) -> Bomb:
    """A long table of text."""
    models = 1 + 2 * drawn(rng, 1, 200)
    records = max(2, drawn(rng, 40, 1e6 * scale) // models)
    columns = tidy(rng, models, records)
    rows = map(",".join, zip(*columns.values(), strict=True))
    (folder / "e.csv").write_text("\n".join([",".join(columns), *rows]) + "\n")
    return scored("evidence, csv", rng, folder / "e.csv", f"{models} models, {records} records")


def evidence_parquet(rng: np.random.Generator, folder: Path, *, scale: float) -> Bomb:
    """The same table, packed."""
    import pyarrow
    import pyarrow.parquet

    models = 1 + 2 * drawn(rng, 1, 200)
    records = max(2, drawn(rng, 40, 4e6 * scale) // models)
    table = pyarrow.table(tidy(rng, models, records))
    pyarrow.parquet.write_table(table, folder / "e.parquet", compression="zstd")
    return scored("evidence, parquet", rng, folder / "e.parquet", f"{models} models, {records} records")


def audited(kind: str, folder: Path, path: Path, about: str, text: str = _AUDIT) -> Bomb:
    """``glasshouse audit`` of a data set or a graph."""
    (folder / "audit.yaml").write_text(text.format(path=path.name))
    arguments = ("audit", str(folder / "audit.yaml"), "-q", "--out", str(folder / "run"))
    return Bomb(kind, about, arguments, path.stat().st_size)


def data_npz(rng: np.random.Generator, folder: Path, *, scale: float) -> Bomb:
    """Records of many features."""
    records = drawn(rng, 100, 1e6 * scale)
    features = max(1, min(drawn(rng, 1, 1e6 * scale), int(1e8 * scale / records)))
    x = content(rng, (records, features)).astype(rng.choice(["f4", "f8", "i1"]))
    np.savez_compressed(folder / "d.npz", x=x, y=np.arange(records) % 2)
    about = f"{records} records, {features} features, {x.dtype}"
    text = _AUDIT.replace(", label: label", "")
    return audited("data set, npz", folder, folder / "d.npz", about, text)


def data_csv(rng: np.random.Generator, folder: Path, *, scale: float) -> Bomb:
    """A table with many columns, or with many rows; numbers or a few texts."""
    columns = drawn(rng, 1, 1e5 * scale)
    records = max(40, drawn(rng, 100, 3e6 * scale) // columns)
    cells = [str(rng.choice(["0", "1.5", "a", ""])) for _ in range(columns)]
    cells[0] = "0"
    row = ",".join(cells)
    rows = [f"{row},{one % 2}" for one in range(records)]
    header = ",".join([f"c{one}" for one in range(columns)] + ["label"])
    (folder / "d.csv").write_text("\n".join([header, *rows]) + "\n")
    return audited("data set, csv", folder, folder / "d.csv", f"{records} records, {columns} columns")


def data_parquet(rng: np.random.Generator, folder: Path, *, scale: float) -> Bomb:
    """A packed table; one long text in every cell, or numbers."""
    import pyarrow
    import pyarrow.parquet

    columns = drawn(rng, 1, 3e3 * scale + 1)
    records = max(40, drawn(rng, 100, 1e7 * scale) // columns)
    text = pyarrow.array(["x" * drawn(rng, 1, 1e5)])
    kinds = (pyarrow.DictionaryArray.from_arrays(np.zeros(records, "i4"), text), pyarrow.array(np.full(records, 0.5)))
    one = kinds[rng.integers(2)]
    held = {f"c{place}": one for place in range(columns)} | {"label": pyarrow.array(np.arange(records) % 2)}
    pyarrow.parquet.write_table(pyarrow.table(held), folder / "d.parquet", compression="zstd")
    about = f"{records} records, {columns} columns of {one.type}"
    return audited("data set, parquet", folder, folder / "d.parquet", about)


def graph_npz(rng: np.random.Generator, folder: Path, *, scale: float) -> Bomb:
    """Many nodes, edges or features."""
    nodes = drawn(rng, 60, 1e6 * scale)
    edges = drawn(rng, 60, 2e7 * scale)
    features = max(1, min(drawn(rng, 1, 1e5 * scale), int(1e8 * scale / nodes)))
    ends = np.resize(np.stack([np.arange(nodes), np.roll(np.arange(nodes), 1)]), (2, edges))
    x = content(rng, (nodes, features)).astype("f4")
    np.savez_compressed(folder / "g.npz", x=x, y=np.arange(nodes) % 2, edge_index=ends)
    about = f"{nodes} nodes, {edges} edges, {features} features"
    return audited("graph, npz", folder, folder / "g.npz", about, _GRAPH)


def run_folder(rng: np.random.Generator, folder: Path, *, scale: float) -> Bomb:
    """A run with long lists in its figures or many rows of records, whose checksums fit."""
    base = Evidence(target_loss=np.linspace(0, 1, 40), shadow_loss=np.ones((4, 40)), shadow_members=halves(4, 40))
    run = folder / "run"
    audit_evidence(base, members=halves(1, 40)[0], attacks=["base", "loss"], progress=False).save(run)
    rows = drawn(rng, 40, 1e6 * scale)
    if rng.integers(2):
        name, lines = "records.csv", (run / "records.csv").read_text().splitlines()
        after = lines[1].partition(",")[2]
        text = "\n".join([lines[0], *(f"r{one},{after}" for one in range(rows))]) + "\n"
    else:
        name, figures = "metrics.json", json.loads((run / "metrics.json").read_text())
        figures["notes"] = ["note"] * rows
        text = json.dumps(figures)
    (run / name).write_text(text)
    told = json.loads((run / "run.json").read_text())
    told.pop("run_sha256", None)
    told["files"][name]["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (run / "run.json").write_text(json.dumps(told))
    arguments = ("report", str(run), "--out", str(folder / "page.html"))
    return Bomb("run", f"{name} with {rows} entries", arguments, (run / name).stat().st_size)


def pool_folder(rng: np.random.Generator, folder: Path, *, scale: float) -> Bomb:
    """A pool in which one model's file holds a huge array of zeros; the file is sparse, and its checksums fit."""
    (folder / "d.csv").write_text("a,label\n" + "".join(f"{one},{one % 2}\n" for one in range(60)))
    (folder / "audit.yaml").write_text(_AUDIT.format(path="d.csv"))
    shared = (str(folder / "audit.yaml"), "-q", "--pool", str(folder / "pool"))
    if (first := in_child(("audit", *shared, "--out", str(folder / "first")), memory=None)).code:
        raise SystemExit(first.said)
    path, times = folder / "pool" / "model-00000.safetensors", drawn(rng, 2, 2e9 * scale / 1000)
    kept = path.read_bytes()
    start = 8 + int.from_bytes(kept[:8], "little")
    header, values = json.loads(kept[8:start]), kept[start:]
    name = max(header.keys() - {"__metadata__"}, key=lambda one: header[one]["data_offsets"][1])  # the last one
    first, last = header[name]["data_offsets"]
    last = first + times * (last - first)
    header[name] |= {"shape": [times * header[name]["shape"][0], *header[name]["shape"][1:]]}
    header[name]["data_offsets"] = [first, last]
    described = json.dumps(header).encode()
    described += b" " * (-len(described) % 8)
    with path.open("wb") as file:
        file.write(len(described).to_bytes(8, "little") + described + values)
        file.truncate(8 + len(described) + last)
    told = json.loads((folder / "pool" / "model-00000.json").read_text())
    told.pop("manifest_sha256", None)
    with path.open("rb") as file:
        told["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
    told["manifest_sha256"] = digest_of(told)
    (folder / "pool" / "model-00000.json").write_text(json.dumps(told))
    about = f"a model's {name} {times} times as long, zeros, sparse"
    return Bomb("pool", about, ("audit", *shared, "--out", str(folder / "run")), path.stat().st_size)


KINDS: tuple[Callable[..., Bomb], ...] = (
    evidence_npz,
    evidence_csv,
    evidence_parquet,
    data_npz,
    data_csv,
    data_parquet,
    graph_npz,
    run_folder,
    pool_folder,
)


def zeros(folder: Path) -> Bomb:
    """48 MB of zeros, which took 2.2 GB: losses of a million records, not packed."""
    records = 1_000_000
    shown: dict[str, Any] = {"target_loss": np.zeros(records), "shadow_loss": np.zeros((4, records))}
    np.savez(folder / "e.npz", **shown, shadow_members=halves(4, records), members=halves(1, records)[0])
    path = folder / "e.npz"
    return Bomb("48 MB of zeros", "4 models, 1000000 records", ("score", str(path), "-q"), path.stat().st_size)


def packed_zeros(folder: Path) -> Bomb:
    """0.9 MB of zeros, which took 23 GB: a hundred models of a million records."""
    records = 1_000_000
    shown: dict[str, Any] = {"target_loss": np.zeros(records), "shadow_loss": np.zeros((100, records))}
    np.savez_compressed(folder / "e.npz", **shown, shadow_members=halves(100, records))
    path = folder / "e.npz"
    return Bomb("0.9 MB of zeros", "100 models, 1000000 records", ("score", str(path), "-q"), path.stat().st_size)


def in_child(arguments: tuple[str, ...], *, memory: str | None) -> Ended:
    """Run a command in a forked child; one that waits for ever, or works too long, is killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _run((*arguments, *(() if memory is None else ("--memory", memory))), writing)
    os.close(writing)
    said, idle, before = b"", 0.0, -1
    os.set_blocking(reading, False)
    while not (ended := os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)):
        time.sleep(0.05)
        said += _read(reading)
        now = _work(child)
        idle = 0.0 if now != before else idle + 0.05
        before = now
        if idle > IDLE:
            os.kill(child, signal.SIGKILL)
    del ended
    said += _read(reading)
    os.close(reading)
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return Ended(code, used.ru_maxrss * 1024, used.ru_utime + used.ru_stime, said.decode("utf-8", "replace").strip())


def _run(arguments: tuple[str, ...], writing: int) -> None:
    code = 99
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_PROCESSOR, MOST_PROCESSOR))
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(writing, 2)
        sys.argv = ["glasshouse", *arguments]
        command()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0
    finally:
        os._exit(code)


def _read(pipe: int) -> bytes:
    with contextlib.suppress(BlockingIOError):
        return os.read(pipe, 1 << 20)
    return b""


def _work(process: int) -> int:
    """Ticks of the processor that a process has used."""
    with contextlib.suppress(OSError):
        told = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return int(told[11]) + int(told[12])
    return -1


def faults(ended: Ended, *, most: int) -> list[str]:
    """What is wrong with how a command ended."""
    found = []
    if ended.code not in (0, 2):
        found.append(f"exit code {ended.code}")
    if "Traceback" in ended.said or any(line.startswith(" ") for line in ended.said.splitlines()):
        found.append("more than one line for a fault")
    if ended.peak > most:
        found.append(f"peak {ended.peak / 1e6:.0f} MB, at most {most / 1e6:.0f}")
    return found


@contextlib.contextmanager
def emptied(folder: Path) -> Iterator[Path]:
    """The folder, which is emptied afterwards."""
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


Row = tuple[Bomb, Ended, int, list[str]]


def measure(files: int, *, seed: int, memory: str, limit: int, scale: float) -> Iterator[Row]:
    """Each file's command, how it ended, the most that it may take, and what is wrong."""
    importlib.import_module("glasshouse.graph.audit")  # before the fork; the other kinds do without
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "files"
        baselines: dict[str, int] = {}
        for number in range(files):
            make = KINDS[number % len(KINDS)]
            rng = np.random.default_rng([seed, number])
            if make.__name__ not in baselines:
                with emptied(folder):
                    least = in_child_made(make, np.random.default_rng(0), folder, 1e-5)
                    baselines[make.__name__] = in_child(least.arguments, memory=memory).peak
            with emptied(folder):
                made = in_child_made(make, rng, folder, scale)
                ended = in_child(made.arguments, memory=memory)
            most = baselines[make.__name__] + 2 * limit
            yield made, ended, most, faults(ended, most=most)
        for known in (zeros, packed_zeros):
            with emptied(folder):
                made = known(folder)
                for given, allowed in ((memory, limit), (None, 2**30)):
                    ended = in_child(made.arguments, memory=given)
                    most = baselines["evidence_npz"] + 2 * allowed
                    yield made, ended, most, faults(ended, most=most)


def in_child_made(make: Callable[..., Bomb], rng: np.random.Generator, folder: Path, scale: float) -> Bomb:
    """Write the file in a child of its own, so that this process, which is forked, stays small."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            made = make(rng, folder, scale=scale)
            os.write(writing, json.dumps([made.kind, made.about, made.arguments, made.size]).encode())
            code = 0
        except Exception as error:
            print(make, repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reading) as file:
        told = file.read()
    if status:
        raise SystemExit(f"{make} could not write its file")
    kind, about, arguments, size = json.loads(told)
    return Bomb(kind, about, tuple(arguments), size)


def page(rows: list[Row], *, memory: str, seed: int) -> str:
    """The page of results."""
    done = sum(ended.code == 0 for _, ended, _, _ in rows)
    wrong = sum(bool(found) for *_, found in rows)
    lines = [
        "# Small files that hold much",
        "",
        f"`python benchmarks/robustness/memory_bombs.py --memory {memory} --seed {seed}`, Python "
        f"{platform.python_version()}, "
        f"{os.cpu_count()} cores, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'not set')}. Each file goes "
        f"through its command in a process of its own. *Most*: the peak of the same command on the smallest file of "
        f"its kind, and twice the limit ({memory}; the rows of zeros at the end also with the default, 1 GiB).",
        "",
        f"{len(rows)} commands: {done} finished, {len(rows) - done} refused, {wrong} faults.",
        "",
        "| file | bytes | ended | peak, in MB | most | processor, in s | fault |",
        "| --- | ---: | --- | ---: | ---: | ---: | --- |",
    ]
    for made, ended, most, found in rows:
        how = "finished" if ended.code == 0 else "refused" if ended.code == 2 else str(ended.code)
        cells = [f"{made.kind}: {made.about}", str(made.size), how, f"{ended.peak / 1e6:.0f}", f"{most / 1e6:.0f}"]
        lines.append(f"| {' | '.join([*cells, f'{ended.seconds:.1f}', '; '.join(found)])} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--memory", default="256MiB")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    from glasshouse.io.limits import as_bytes

    size = as_bytes(options.memory)
    kept: list[Row] = []
    for row in measure(options.files, seed=options.seed, memory=options.memory, limit=size, scale=size / 2**30 * 2):
        kept.append(row)
        print(len(kept), *row, flush=True)
        options.out.write_text(page(kept, memory=options.memory, seed=options.seed))
