"""Harmed files of every kind that is read: each must be refused by one clear line, or give a possible input.

Run: python benchmarks/robustness/fuzz.py [--trials 100000] [--seed 0] [--kind "audit file"]. Writes fuzz.md beside
itself; runs with other seeds are added to what it holds (--add). The tests run a few thousand trials of the same code.

The trials run in forked children, some hundred in each: a process that dies is seen, and so is the peak of its memory.

A trial writes a whole file, harms it by a seeded mutation, makes checksums around it fit again where a stranger could,
and reads it as a command would. What counts as a failure: any exception but `InputError`, over 20 processor seconds,
over 1 GiB, and an accepted file whose content cannot be right (`fuzz_kinds.py` says what is checked for each kind).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_kinds import KINDS, Kind, NonsenseError
from fuzz_mutations import of_bytes

from glasshouse import InputError

MOST_SECONDS = 20
MOST_BYTES = 2**30
IN_ONE_CHILD = 400  # trials
FAILURES = ("escaped", "too slow", "too large", "nonsense accepted", "process died")
OUTCOMES = ("refused", "unchanged", "another input", *FAILURES)


_ABOUT = (
    "`python benchmarks/robustness/fuzz.py`. Each trial harms one whole file by a seeded mutation, of its "
    "bytes or of what they "
    "mean (members of an archive, values of a JSON tree, words of a text), makes checksums around it fit again, and "
    "reads it as a command would. *Unchanged*: the file gave what the whole one gives. *Another input*: what it gave "
    "is different and possible, such as another digit in a table. The last five columns are failures: an exception "
    "other than `InputError`, more than 20 s, more than 1 GiB, content that cannot be right, and a process that ended. "
    "Peak: the most that a child took in all, as the system says, its libraries included."
)

_FOUND = (
    "What the first runs found, and what was mended since: harmed trees of a stored estimator crashed the process (no "
    "estimator is stored any more); archives whose list of members was cut gave the members that were left."
)


class TooSlowError(BaseException):
    """Not an `Exception`, so that no door takes it for a fault of the file."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """At most 20 seconds of the processor, and at most 1 GiB more than there is now."""

    def stop(*_: object) -> None:
        raise TooSlowError

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_BYTES, before[1]))
    old = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)
        resource.setrlimit(resource.RLIMIT_AS, before)


class Fuzzer:
    """Trials of one kind of file.

    Args:
        kind: what is harmed and how it is read.
        folder: an empty folder to work in.
    """

    def __init__(self, kind: Kind, folder: Path) -> None:
        self.kind = kind
        self.whole = folder / "whole"
        self.trial = folder / "trial"
        self.whole.mkdir()
        kind.make(self.whole)
        self.content = (self.whole / kind.file).read_bytes()
        self.expected = self._read()
        self.seconds = 0.0

    def _fresh(self) -> Path:
        shutil.rmtree(self.trial, ignore_errors=True)
        shutil.copytree(self.whole, self.trial)
        return self.trial / self.kind.file

    def _read(self) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.kind.read(self._fresh())

    def outcome(self, seed: int) -> tuple[str, str]:
        """How a harmed file ends: one of `OUTCOMES`, and what was said."""
        rng = np.random.default_rng([seed, len(self.content)])
        harm = self.kind.harm[int(rng.integers(len(self.kind.harm)))]
        path = self._fresh()
        path.write_bytes(harm(self.content, rng))
        if self.kind.mend is not None:
            self.kind.mend(self.trial)
        started = time.process_time()
        try:
            with limited(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = self.kind.read(path)
        except InputError as error:
            told = str(error)
            if "needs more memory than there is" in told:
                return "too large", told
            return ("refused", told) if all(len(one) < 2100 for one in error.faults) else ("escaped", "a long line")
        except TooSlowError:
            return "too slow", ""
        except NonsenseError as error:
            return "nonsense accepted", str(error)
        except MemoryError as error:
            return "too large", repr(error)
        except Exception as error:
            return "escaped", f"{type(error).__name__}: {error}"[:300] + "\n" + "".join(
                traceback.format_tb(error.__traceback__)[-3:]
            )
        finally:
            self.seconds = max(self.seconds, time.process_time() - started)
        if found == self.expected:
            return "unchanged", ""
        if self.kind.sealed and harm is of_bytes:
            return "nonsense accepted", "a checksum did not notice other content"
        return "another input", ""


def fuzz(name: str, *, trials: int, seed: int = 0, first: int = 0) -> tuple[Counter[str], float, list[str]]:
    """Counts of outcomes of a kind, the longest trial in seconds of the processor, and a line for each failure."""
    counts: Counter[str] = Counter()
    failures = []
    with tempfile.TemporaryDirectory() as place:
        fuzzer = Fuzzer(KINDS[name], Path(place))
        for trial in range(first, first + trials):
            one = seed * 1_000_000 + trial
            ended, told = fuzzer.outcome(one)
            counts[ended] += 1
            if ended in FAILURES:
                failures.append(f"{name}, seed {one}: {ended}: {told}")
        return counts, fuzzer.seconds, failures


def in_a_child(name: str, *, trials: int, seed: int, first: int) -> tuple[Counter[str], float, list[str], int]:
    """The same in a forked child, and its peak in bytes; a child that dies is one failure, and its trials are lost."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.close(reading)
            with os.fdopen(writing, "w") as file:
                json.dump(fuzz(name, trials=trials, seed=seed, first=first), file)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as file:
        told = file.read()
    _, status, used = os.wait4(child, 0)
    if status:
        line = f"{name}, seeds {seed * 1_000_000 + first} and the next {trials}: the process ended with {status}"
        return Counter({"process died": 1}), 0.0, [line], used.ru_maxrss * 1024
    counts, seconds, failures = json.loads(told)
    return Counter(counts), seconds, failures, used.ru_maxrss * 1024


def in_children(name: str, *, trials: int, seed: int = 0) -> tuple[Counter[str], float, list[str], int]:
    """Trials of a kind in as many children as needed: counts, longest seconds, failures, and the highest peak."""
    counts, seconds, failures, peak = Counter[str](), 0.0, list[str](), 0
    for first in range(0, trials, IN_ONE_CHILD):
        some = in_a_child(name, trials=min(IN_ONE_CHILD, trials - first), seed=seed, first=first)
        counts, failures = counts + some[0], failures + some[2]
        seconds, peak = max(seconds, some[1]), max(peak, some[3])
    return counts, seconds, failures, peak


def page(kept: dict[str, Any]) -> str:
    """The counts as Markdown."""
    total: Counter[str] = sum((Counter(one["counts"]) for one in kept.values()), Counter())
    lines = [
        "# Harmed files",
        "",
        _ABOUT,
        "",
        _FOUND,
        "",
        f"{sum(total.values())} trials: {total['refused']} refused by a line, {total['unchanged']} unchanged, "
        f"{total['another input']} another input, {sum(total[one] for one in FAILURES)} failures.",
        "",
        "| file | trials | longest, in s | peak, in MB | " + " | ".join(OUTCOMES) + " |",
        "| --- |" + " ---: |" * (3 + len(OUTCOMES)),
    ]
    for name, one in kept.items():
        cells = [str(sum(one["counts"].values())), f"{one['seconds']:.1f}", f"{one['peak'] / 1e6:.0f}"]
        lines.append(f"| {name} | " + " | ".join(cells + [str(one["counts"].get(each, 0)) for each in OUTCOMES]) + " |")
    return "\n".join([*lines, "", f"<!-- {json.dumps(kept)} -->", ""])


def main() -> None:
    """Run the trials, kind by kind, and write the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=list(KINDS), action="append")
    parser.add_argument("--add", action="store_true", help="add to the counts that fuzz.md holds")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    kept: dict[str, Any] = {}
    if options.add and options.out.exists():
        kept = json.loads(options.out.read_text().rsplit("<!-- ", 1)[1].rsplit(" -->", 1)[0])
    chosen = options.kind or list(KINDS)
    for name in chosen:
        counts, seconds, failures, peak = in_children(name, trials=-(-options.trials // len(chosen)), seed=options.seed)
        before = kept.get(name, {"counts": {}, "seconds": 0.0, "peak": 0})
        kept[name] = {
            "counts": dict(Counter(before["counts"]) + counts),
            "seconds": round(max(seconds, before["seconds"]), 1),
            "peak": max(peak, before["peak"]),
        }
        print(name, dict(counts), f"{seconds:.2f} s, {peak / 1e6:.0f} MB", flush=True)
        for line in failures:
            print("  " + line, flush=True)
        options.out.write_text(page({one: kept[one] for one in KINDS if one in kept}))


if __name__ == "__main__":
    main()
