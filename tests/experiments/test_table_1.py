from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from glasshouse import InputError
from glasshouse.graph import citation_graph
from glasshouse_experiments.bench import Bench
from glasshouse_experiments.cells import compared
from glasshouse_experiments.roc import ROC_SETTINGS, draw, roc
from glasshouse_experiments.settings import SETTINGS, Preset
from glasshouse_experiments.stand_in import FLICKR, experiment_graph
from glasshouse_experiments.table_1 import many, table_1


def write_flickr(folder: Path, nodes: int) -> None:
    """Files of Flickr's shape with a made-up graph in them."""
    data = citation_graph(nodes=nodes, classes=3, seed=0)
    raw = folder / "flickr" / "raw"
    raw.mkdir(parents=True)
    source, target = data.edge_index.numpy()
    order = np.lexsort((target, source))
    starts = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=nodes))])
    np.savez(
        raw / "adj_full.npz", data=np.ones(len(source)), indices=target[order], indptr=starts, shape=(nodes, nodes)
    )
    np.save(raw / "feats.npy", data.x.numpy())
    (raw / "class_map.json").write_text(json.dumps({str(node): int(label) for node, label in enumerate(data.y)}))
    third = nodes // 3
    roles = {
        "tr": list(range(third)),
        "va": list(range(third, 2 * third)),
        "te": list(range(2 * third, nodes)),
    }
    (raw / "role.json").write_text(json.dumps(roles))


def test_flickr_runs_by_the_same_code_with_few_and_many_shadow_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_flickr(tmp_path, 80)
    monkeypatch.setenv("GLASSHOUSE_DATA", str(tmp_path))
    preset = Preset(targets=1, datasets=("flickr",), epochs=0.005, most_shadows=128)
    bench = Bench(setting=SETTINGS.find("flickr"), preset=preset, folder=tmp_path / "pools", progress=False)
    table = compared([*table_1(bench), *many(bench)])
    assert table.height == 3 * (2 + 2 * 6 + 2 * 4)
    assert set(table["K"]) == {"8", "4", "128", "64"}
    assert not any(np.isnan(table["mean"]))
    assert "not printed" not in set(table["verdict"])  # every cell has the paper's beside it


def test_flickrs_stand_in_has_its_edges_and_labels_and_says_that_its_features_are_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_flickr(tmp_path, 80)
    monkeypatch.setenv("GLASSHOUSE_DATA", str(tmp_path))
    whole = experiment_graph("flickr")
    (tmp_path / "flickr" / "raw" / "feats.npy").unlink()
    with pytest.raises(InputError, match="feats.npy: there is no such file"):
        experiment_graph("flickr")
    data = experiment_graph(FLICKR)
    assert data.edge_index.equal(whole.edge_index)
    assert data.y.equal(whole.y)
    assert data.x.shape == (80, 500)
    assert data.x.equal(experiment_graph(FLICKR).x)
    for name in ("flickr-stand-in", "flickr-gat-stand-in"):
        preset = Preset(targets=1, datasets=(), epochs=0.003)
        setting = ROC_SETTINGS.find(name)
        bench = Bench(setting=setting, preset=preset, folder=tmp_path / "pools", progress=False)
        table = compared(roc(bench))
        assert set(table["verdict"]) == {"not printed"}
        assert "printed" not in draw(table)
        assert setting.note.startswith("NOT Flickr's features")
