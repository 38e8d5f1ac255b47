from __future__ import annotations

from pathlib import Path

from tests.changed import paths_for


def test_a_changed_module_has_its_own_tests_or_those_of_its_room(tmp_path: Path) -> None:
    for name in ("src/glasshouse/a/one.py", "src/glasshouse/a/b/two.py", "tests/a/test_one.py", "docs/page.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert paths_for(["src/glasshouse/a/one.py"], tmp_path) == ["src/glasshouse/a/one.py", "tests/a/test_one.py"]
    assert paths_for(["src/glasshouse/a/b/two.py"], tmp_path) == ["src/glasshouse/a/b/two.py", "tests/a"]
    everything = ["src/glasshouse/a/b/two.py", "tests/a/test_one.py", "docs/page.md", "src/glasshouse/gone.py"]
    assert paths_for(everything, tmp_path) == ["src/glasshouse/a/b/two.py", "tests/a"]
    assert paths_for([], tmp_path) == []
