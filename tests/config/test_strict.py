from __future__ import annotations

from pathlib import Path

import pytest

from glasshouse import InputError
from glasshouse.config.yaml_model import Strict, read_yaml


class Section(Strict):
    count: int = 1
    share: float = 0.5


def test_numbers_are_not_made_from_text_nor_truths(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("count: true\nshare: '0.5'\n")
    with pytest.raises(InputError) as caught:
        read_yaml(path, Section)
    assert len(caught.value.faults) == 2


def test_whole_numbers_are_shares_too(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("share: 1\n")
    assert read_yaml(path, Section).share == 1.0
