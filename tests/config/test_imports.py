from __future__ import annotations

import sys
from pathlib import Path

from glasshouse.config.trust import imported


def test_the_search_path_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "beside_the_file.py").write_text("def answer():\n    return 42\n")
    before = list(sys.path)
    assert imported("beside_the_file:answer", tmp_path, "data.factory")() == 42
    assert sys.path == before
