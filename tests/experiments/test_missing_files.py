from __future__ import annotations

from pathlib import Path

import pytest

from glasshouse import InputError
from glasshouse_experiments import reproduce


@pytest.mark.parametrize(
    ("experiment", "dataset", "told"),
    [
        ("table-1", "flickr", ["flickr/raw/feats.npy: there is no such file", "89250 x 500", "6740dc59750ef52a"]),
        ("iid", "cifar100", ["cifar100: there is neither train.bin", "cifar-100-binary.tar.gz", "03b5dce01913d631"]),
    ],
)
def test_a_data_set_without_files_says_what_to_place_where(
    experiment: str, dataset: str, told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSHOUSE_DATA", str(tmp_path / "data"))
    with pytest.raises(InputError) as error:
        reproduce(experiment, preset="paper", datasets=[dataset], out=tmp_path, pools=tmp_path, progress=False)
    assert all(text in str(error.value) for text in told)
    assert not list(tmp_path.rglob("*.csv"))
