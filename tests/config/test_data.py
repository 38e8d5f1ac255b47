from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from glasshouse.config.data import Data


def test_digits_and_adult_are_loaded_by_name(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSHOUSE_DATA", str(real_data))
    some = TypeAdapter(Data).validate_python({"name": "adult", "records": 200}).load(Path(), 0)
    assert len(some.population) == 200
    assert some.members is None


def test_shares_and_counts_outside_their_range_are_refused() -> None:
    for wrong in ({"name": "digits", "mislabelled": 1.0}, {"name": "adult", "records": 5}):
        with pytest.raises(ValidationError):
            TypeAdapter(Data).validate_python(wrong)
