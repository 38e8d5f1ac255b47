"""How time and memory grow: ``python benchmarks/scale/growth.py``; writes growth.md and growth.svg beside itself.

Graphs (made up, with hubs: half of their nodes train a model): training, G-BASE, g-stacked and the report, at several
numbers of nodes. Records: a whole ``audit_evidence`` by one attack, at several numbers of records and shadow models.
Each case runs in its own process, so that its peak memory is its own; one that does not end within ``--limit`` seconds
is stopped, and the table says so. Measurements are kept in a file of lines (``--kept``), and what is there is not
measured again, so that graphs can be measured on one machine and records on another:

    python benchmarks/scale/growth.py --records --device cuda --kept graphs.jsonl     # graphs alone, on a GPU
    python benchmarks/scale/growth.py --nodes --kept records.jsonl                    # records alone
    python benchmarks/scale/growth.py --from graphs.jsonl records.jsonl               # table and picture alone
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from growth_tables import Measured, growth_picture, growth_text

Found = TypeVar("Found")
HERE = Path(__file__).parent
ATTACKS = ("base", "lira", "rmia", "stacked")
STEPS = ("g-base", "g-stacked")
SHADOWS, HIDDEN, DEGREE, EPOCHS = 4, 16, 14, 50


def graph_case(nodes: int, device: str, *, steps: Sequence[str] = STEPS) -> dict[str, float]:
    """Seconds of each step of an audit, one after another; each is printed when it ends, so a stopped case keeps it."""
    import torch
    from made_graphs import hubs, two_step_paths

    from glasshouse.graph import GNNTrainer, audit
    from glasshouse.pool import ShadowPool

    data = hubs(nodes, degree=DEGREE)
    told: dict[str, float] = {}

    def tell(found: dict[str, float]) -> None:
        told.update(found)
        print(json.dumps({**found, "peak": peak_memory()}), flush=True)

    def timed(step: str, work: Callable[[], Found]) -> Found:
        began, worked = time.perf_counter(), time.process_time()
        done = work()
        if device == "cuda":
            torch.cuda.synchronize()
        tell({step: time.perf_counter() - began, f"{step} processor": time.process_time() - worked})
        return done

    edges, paths = two_step_paths(data)
    tell({"edges": edges, "paths": paths})
    trainer = GNNTrainer(hidden=HIDDEN, epochs=EPOCHS, device=device)
    with tempfile.TemporaryDirectory() as folder:
        how: dict[str, Any] = {"trainer": trainer, "shadows": SHADOWS, "seed": 0}
        pool = ShadowPool.plan(data, folder=folder, **how)
        timed("training", lambda: pool.train(progress=False))
        for step in steps:
            result = timed(step, partial(audit, data, attacks=[step], pool=folder, progress=False, **how))
            if "report" not in told:
                timed("report", partial(result.report, Path(folder) / "report.html"))
    return told


def record_case(records: int, models: int, attack: str) -> dict[str, float]:
    """Seconds of a whole audit of evidence by one attack, of the wall clock and of all processors."""
    import numpy as np
    from scoring import made_up_audit

    from glasshouse import audit_evidence

    evidence, members = made_up_audit(records, models, 0)
    began, worked = time.perf_counter(), time.process_time()
    audit_evidence(evidence, members=members, attacks=[attack], progress=False)
    found = {attack: time.perf_counter() - began, "processor": time.process_time() - worked}
    began = time.perf_counter()
    np.sort(evidence.shadow_loss, axis=1)  # the named baseline: what these numbers take to be sorted once
    found = {**found, "sort": time.perf_counter() - began}
    print(json.dumps({**found, "peak": peak_memory()}), flush=True)
    return found


def peak_memory() -> float:
    """The largest memory of this process so far, MiB; with a GPU in use, of its memory or of the main one."""
    main = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    torch = sys.modules.get("torch")
    used = torch.cuda.max_memory_allocated() / 2**20 if torch is not None and torch.cuda.is_available() else 0.0
    return float(max(main, used))


def measure(case: Sequence[str], limit: float) -> dict[str, float]:
    """Run a case in its own process; what it told before the limit, with ``stopped`` if that ended it."""
    command = [sys.executable, str(Path(__file__).resolve()), "--case", *case]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        told, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        told, _ = process.communicate()
    found: dict[str, float] = {}
    for line in told.splitlines():
        if line.startswith("{"):
            found.update(json.loads(line))
    return found if process.returncode == 0 else {**found, "stopped": limit}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is not kept yet, print, and write the table and the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=[10_000, 30_000, 100_000, 300_000])
    parser.add_argument("--records", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--models", type=int, nargs="*", default=[8, 16, 64])
    parser.add_argument("--attacks", nargs="*", default=list(ATTACKS))
    parser.add_argument("--device", default="cpu", help="where graphs are trained and attacked")
    parser.add_argument("--steps", nargs="*", default=list(STEPS), help="attacks on graphs")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of one case")
    parser.add_argument("--machine", default="", help="a few words about it, for the table")
    parser.add_argument("--note", default="", help="what a reader must know about this run")
    parser.add_argument("--kept", type=Path, default=HERE / "growth.jsonl")
    parser.add_argument("--from", dest="files", type=Path, nargs="*", help="draw these measurements alone")
    parser.add_argument("--out", type=Path, default=HERE / "growth.md")
    parser.add_argument("--case", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.case:
        kind, size, *rest = options.case
        if kind == "graph":
            graph_case(int(size), rest[0], steps=rest[1:])
        else:
            record_case(int(size), int(rest[0]), rest[1])
        return
    cases = [["graph", str(size), options.device, *options.steps] for size in options.nodes]
    cases += [
        ["records", str(size), str(models), attack]
        for attack in options.attacks
        for models in options.models
        for size in options.records
    ]
    known = _read(options.files or [options.kept])
    for case in [] if options.files else cases:
        if any(one.case == tuple(case) for one in known):
            continue
        known.append(Measured(case=tuple(case), found=measure(case, options.limit), machine=options.machine))
        with options.kept.open("a", encoding="utf-8") as file:
            file.write(json.dumps(known[-1]._asdict()) + "\n")
        print(*case, known[-1].found, flush=True)
    text = growth_text(known, note=options.note)
    print(text)
    options.out.write_text(text, encoding="utf-8")
    options.out.with_suffix(".svg").write_text(growth_picture(known), encoding="utf-8")


def _read(files: Sequence[Path]) -> list[Measured]:
    lines = [line for file in files if file.exists() for line in file.read_text(encoding="utf-8").splitlines()]
    return [Measured(tuple(one["case"]), one["found"], one["machine"]) for one in map(json.loads, lines)]


if __name__ == "__main__":
    main()
