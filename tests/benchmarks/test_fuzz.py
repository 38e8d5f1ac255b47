"""A small version of `fuzz.py`: harmed files of every kind end in one clear line, or in a possible input."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.scripts import benchmark

pytest.importorskip("pyarrow")
pytest.importorskip("torch_geometric")
fuzz = benchmark("fuzz")

TRIALS = 50  # of each kind; benchmarks/robustness/fuzz.md has thousands


@pytest.mark.parametrize("name", fuzz.KINDS)
def test_harmed_files_are_refused_by_a_line_or_give_a_possible_input(name: str) -> None:
    counts, seconds, failures = fuzz.fuzz(name, trials=TRIALS)
    assert failures == []
    assert sum(counts.values()) == TRIALS
    assert counts["refused"] > TRIALS // 10  # the harm is harm
    assert seconds < fuzz.MOST_SECONDS  # of the processor


def test_the_fuzzer_sees_what_a_reader_lets_through(tmp_path: Path) -> None:
    """A reader that looks at nothing: its errors, its waste and its nonsense are all counted."""

    def careless(path: Path) -> str:
        content = path.read_bytes()
        if content == b"whole":
            return "whole"
        if content[0] % 3 == 0:
            raise KeyError("escaped")
        if content[0] % 3 == 1:
            bytearray(2**31)
        raise fuzz.NonsenseError("an AUC of 7")

    kind = fuzz.Kind(
        file="f",
        make=lambda folder: (folder / "f").write_bytes(b"whole"),
        read=careless,
        harm=(lambda content, rng: rng.bytes(4),),
    )
    fuzzer = fuzz.Fuzzer(kind, tmp_path)
    assert {fuzzer.outcome(seed)[0] for seed in range(20)} == {"escaped", "too large", "nonsense accepted"}
