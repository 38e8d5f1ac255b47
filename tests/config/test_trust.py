from __future__ import annotations

from pathlib import Path

import pytest

from glasshouse import InputError
from glasshouse.config.trust import check_code


def test_a_dotted_module_is_placed_without_importing_its_package(tmp_path: Path) -> None:
    package = tmp_path / "strange_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    with pytest.raises(InputError, match=f"strange_package.part:make, from {package / '__init__.py'}"):
        check_code({"target": "strange_package.part:make"}, graph=None, folder=tmp_path)
    with pytest.raises(InputError, match="no_such_module:make, from a module that was not found"):
        check_code({"target": "no_such_module:make"}, graph=None, folder=tmp_path)


def test_pickled_graphs_are_read_from_a_folder_that_the_user_named_and_from_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive from elsewhere may hold an audit file and a folder ``data``, which is where we look by default."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GLASSHOUSE_DATA", raising=False)
    with pytest.raises(
        InputError, match=f"graph.name: cora is read with pickle.*from {tmp_path / 'data'}.*--trust-code"
    ):
        check_code({}, graph="cora", folder=tmp_path)
    monkeypatch.setenv("GLASSHOUSE_DATA", str(tmp_path))
    check_code({}, graph="cora", folder=tmp_path)
    with pytest.raises(InputError, match="torch_geometric:Coauthor:CS is read by a loader of torch_geometric that may"):
        check_code({}, graph="torch_geometric:Coauthor:CS", folder=tmp_path)
    for harmless in ("synthetic", "flickr", "mine.npz", None):
        check_code({}, graph=harmless, folder=tmp_path)
