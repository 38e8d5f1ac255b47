from __future__ import annotations

from pathlib import Path

import pytest

from glasshouse import InputError
from glasshouse.io.guarded import guarded


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KeyError("auc"), r"f: is damaged, or is not JSON \(KeyError: 'auc'\)\. Copy it\."),
        (ValueError("a\nb\nc\nd"), r"\(ValueError: a: b: c\)"),
        (ValueError("x" * 10_000), "10000 characters|2000 characters"),
        (StopIteration(), r"\(StopIteration\)"),
        (MemoryError(), "f: needs more memory than there is"),
        (RecursionError(), "f: is nested too deeply to be JSON"),
        (OSError(13, "Permission denied"), "f: cannot be read: Permission denied"),
    ],
)
def test_whatever_a_library_raises_is_one_line(error: Exception, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught, guarded("f", what="JSON", advice="Copy it."):
        raise error
    assert len(caught.value.faults) == 1
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), GeneratorExit()])
def test_a_user_who_stops_the_program_is_not_taken_for_a_damaged_file(error: BaseException) -> None:
    with pytest.raises(type(error)), guarded(Path("f"), what="JSON"):
        raise error


def test_a_fault_that_is_clear_already_stays_as_it_is() -> None:
    with pytest.raises(InputError, match=r"^f: is odd\.$"), guarded("g", what="JSON"):
        raise InputError("f: is odd.")
