from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset

from glasshouse.core.errors import InputError
from glasshouse.graph.data.load import graph_names, load_graph

EDGES = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
FIELDS: dict[str, Any] = {"edge_index": EDGES, "x": np.eye(3), "y": np.array([0, 1, 0])}


def snapshot(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.stat().st_mtime_ns) for path in folder.rglob("*"))


def check_standard(data: Data) -> None:
    assert data.x.dtype == torch.float32
    assert data.edge_index.dtype == data.y.dtype == torch.int64
    assert data.y.shape == (len(data.x),)


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "features", "classes"),
    [
        ("cora", 2708, 10556, 1433, 7),
        ("citeseer", 3327, 9104, 3703, 6),
        ("pubmed", 19717, 88648, 500, 3),
        ("amazon-photo", 7650, 238162, 745, 8),
        ("github", 37700, 578006, 128, 2),
    ],
)
def test_real_graphs_have_their_known_counts_and_their_folder_stays_as_it_was(
    name: str, nodes: int, edges: int, features: int, classes: int, real_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSHOUSE_DATA", str(real_data))
    before = snapshot(real_data)
    graph = load_graph(name)
    assert (graph.num_nodes, graph.num_edges) == (nodes, edges)
    assert graph.x.shape[1] == features
    assert len(graph.y.unique()) == classes
    check_standard(graph)
    assert snapshot(real_data) == before


def test_real_graphs_are_found_through_a_root_as_well(real_data: Path) -> None:
    assert load_graph("cora", root=real_data).num_nodes == 2708


def test_the_synthetic_graph_needs_no_file_and_says_that_it_is_synthetic() -> None:
    graph = load_graph("synthetic")
    check_standard(graph)
    assert "synthetic" in graph.about
    assert graph_names()[0] == "synthetic"


@pytest.mark.parametrize(
    ("name", "file", "advice"),
    [
        ("cora", "planetoid/Cora/raw/ind.cora.x", "GLASSHOUSE_DATA"),
        ("amazon-photo", "amazon/Photo/raw/amazon_electronics_photo.npz", "GLASSHOUSE_DATA"),
        ("github", "github/raw/github.npz", "address for it is broken"),
        ("flickr", "flickr/raw/feats.npy", "feats.npy holds"),
        ("torch_geometric:WikiCS", "WikiCS/raw/data.json", "GLASSHOUSE_DATA"),
        ("torch_geometric:Coauthor:CS", "Coauthor/CS/raw/ms_academic_cs.npz", "GLASSHOUSE_DATA"),
    ],
)
def test_missing_files_are_named_with_their_place_and_nothing_is_downloaded(
    name: str, file: str, advice: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        load_graph(name, root=tmp_path)
    assert f"{tmp_path / file}: there is no such file." in caught.value.faults
    assert advice in caught.value.faults[-1]
    assert not list(tmp_path.iterdir())


def test_flickr_is_read_once_its_features_are_there(tmp_path: Path) -> None:
    flickr(tmp_path / "flickr" / "raw")
    graph = load_graph("flickr", root=tmp_path)
    check_standard(graph)
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert not (tmp_path / "flickr" / "processed").exists()


def test_what_somebody_has_processed_before_is_not_trusted(tmp_path: Path) -> None:
    """PyTorch Geometric unpickles such files without a question."""
    folder = tmp_path / "github"
    (folder / "raw").mkdir(parents=True)
    (folder / "processed").mkdir()
    (folder / "processed" / "data.pt").write_bytes(b"not a graph")
    np.savez(folder / "raw" / "github.npz", edges=EDGES.T, features=np.eye(3), target=[0, 1, 0])
    assert load_graph("github", root=tmp_path).num_nodes == 3


def test_files_that_pytorch_geometric_cannot_read_are_named(tmp_path: Path) -> None:
    raw = tmp_path / "github" / "raw"
    raw.mkdir(parents=True)
    np.savez(raw / "github.npz", edges=EDGES.T)
    with pytest.raises(InputError, match="github: torch_geometric cannot read these files"):
        load_graph("github", root=tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("corra", 'Did you mean "cora"'),
        ("torch_geometric:Wikics", 'Did you mean "WikiCS"'),
        ("torch_geometric:Coauthor", "torch_geometric:Coauthor:NAME"),
        ("torch_geometric:Amazon:Sofas", "no such name"),
    ],
)
def test_a_name_that_is_not_known_is_answered_with_a_suggestion(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        load_graph(name, root=tmp_path)


def offered(monkeypatch: pytest.MonkeyPatch, *graphs: Data) -> str:
    """A name under which PyTorch Geometric seems to have a data set of these graphs."""

    class Offered(InMemoryDataset):  # type: ignore[misc]
        raw_file_names = ()
        processed_file_names = ("data.pt",)

        def __init__(self, root: str) -> None:
            super().__init__(root)
            self.load(self.processed_paths[0])

        def download(self) -> None:
            raise AssertionError

        def process(self) -> None:
            self.save(list(graphs), self.processed_paths[0])

    monkeypatch.setattr("torch_geometric.datasets.Offered", Offered, raising=False)
    return "torch_geometric:Offered"


def test_other_data_sets_are_brought_to_the_same_form(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    graph = Data(
        x=torch.eye(3).to_sparse(), edge_index=torch.from_numpy(EDGES), y=torch.tensor([[0.0], [1.0], [np.nan]])
    )
    loaded = load_graph(offered(monkeypatch, graph), root=tmp_path)
    check_standard(loaded)
    assert loaded.x.tolist() == np.eye(3).tolist()
    assert loaded.y.tolist() == [0, 1, -1]


def test_data_sets_of_several_graphs_or_without_features_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bare = Data(edge_index=torch.from_numpy(EDGES), y=torch.tensor([0, 1, 0]))
    with pytest.raises(InputError, match="holds 2 graphs"):
        load_graph(offered(monkeypatch, bare, bare), root=tmp_path)
    with pytest.raises(InputError, match="Offered: x: is missing"):
        load_graph(offered(monkeypatch, bare), root=tmp_path)


@pytest.mark.parametrize("ids", [None, ["ann", "bob", "eve"]])
def test_a_file_of_ones_own_is_read_with_its_ids(ids: list[str] | None, tmp_path: Path) -> None:
    path = tmp_path / "friends.npz"
    fields = FIELDS | ({"ids": np.array(ids)} if ids else {})
    np.savez(path, **fields)
    graph = load_graph(path)
    check_standard(graph)
    assert graph.about.startswith("friends.npz (3 nodes")
    assert getattr(graph, "ids", None) == ids
    assert graph.edge_index.tolist() == EDGES.tolist()


@pytest.mark.parametrize("kind", ["u1", "i2", ">i4", "u4", ">i8"])
def test_whole_numbers_of_any_kind_will_do(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    np.savez(path, edge_index=EDGES.astype(kind), x=np.eye(3, dtype=kind), y=FIELDS["y"].astype(kind))
    assert load_graph(str(path)).edge_index.tolist() == EDGES.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": None}, "y: is missing"),
        ({"edge_index": EDGES.T}, r"edge_index: has shape \(4, 2\)"),
        ({"edge_index": EDGES + 1}, "edge_index: names nodes outside 0 to 2"),
        ({"edge_index": EDGES - 1}, "edge_index: names nodes outside 0 to 2"),
        ({"edge_index": EDGES + 0.5}, "edge_index: .* type torch.float64"),
        ({"x": np.ones(3)}, r"x: has shape \(3,\)"),
        ({"x": np.ones((0, 2))}, r"x: has shape \(0, 2\)"),
        ({"x": np.array([[1.0], [np.nan], [1.0]])}, "x: node 1 has a NaN"),
        ({"x": np.array([[1.0], [1.0], [1e300]])}, "x: node 2 has a NaN or infinite feature"),
        ({"x": np.array([["a"], ["b"], ["c"]])}, "x: is of type <U1"),
        ({"x": np.array([[{}], [1], [2]], dtype=object)}, "x: holds pickled objects"),
        ({"y": np.array([0, 1])}, r"y: has shape \(2,\)"),
        ({"y": np.array([0.0, 0.5, 1.0])}, "y: some labels are not whole numbers"),
        ({"y": np.array([0.0, np.inf, 1.0])}, "y: some labels are not whole numbers"),
        ({"y": np.array([-1, -1, -1])}, "y: its largest label is -1"),
        ({"y": np.array([0, 1, 10**9])}, "y: its largest label is 1000000000"),
        ({"ids": np.array(["a", "a", "b"])}, "ids: id 'a' is repeated"),
        ({"ids": np.array(["a", "b"])}, r"ids: ids have shape \(2,\)"),
    ],
)
def test_a_file_with_a_fault_is_refused_by_file_and_field(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    np.savez(path, **{name: value for name, value in (FIELDS | change).items() if value is not None})
    with pytest.raises(InputError, match=message) as caught:
        load_graph(path)
    assert all(fault.startswith(str(path)) for fault in caught.value.faults)


def test_several_faults_of_a_file_are_said_at_once(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    np.savez(path, x=np.full((3, 1), np.nan), edge_index=EDGES + 9, y=np.zeros(4))
    with pytest.raises(InputError) as caught:
        load_graph(path)
    assert len(caught.value.faults) == 3


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 broken"])
def test_a_file_that_is_no_npz_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="is not a complete archive|is one array and not an archive"):
        load_graph(path)


def test_a_lone_array_or_no_file_at_all_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "graph.npz").open("wb") as file:
        np.save(file, EDGES)
    with pytest.raises(InputError, match="is not a complete archive|is one array and not an archive"):
        load_graph(tmp_path / "graph.npz")
    with pytest.raises(InputError, match="no such file"):
        load_graph(tmp_path / "other.npz")


def test_values_of_edges_are_read_from_a_file_and_kinds_of_edges_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    np.savez(path, **FIELDS, edge_weight=np.arange(4), edge_attr=np.eye(4))
    graph = load_graph(path)
    assert graph.edge_weight.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert graph.edge_weight.dtype == graph.edge_attr.dtype == torch.float32
    np.savez(path, **FIELDS, edge_attr=np.arange(4))
    assert load_graph(path).edge_attr.dtype == torch.int64  # codes of kinds, for an embedding
    np.savez(path, **FIELDS, edge_weight=np.ones(3))
    with pytest.raises(InputError, match=r"mine.npz: edge_weight: has shape \(3,\) for 4 edges"):
        load_graph(path)
    np.savez(path, **FIELDS, edge_type=np.arange(4))
    assert load_graph(path).edge_type.tolist() == [0, 1, 2, 3]


def test_values_of_edges_of_a_named_graph_travel_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    parts = {name: torch.from_numpy(value) for name, value in FIELDS.items()}
    name = offered(monkeypatch, Data(**parts, edge_attr=torch.ones(4, 2)))
    assert load_graph(name, root=tmp_path).edge_attr.tolist() == [[1.0, 1.0]] * 4


def amazon(**change: Any) -> dict[str, Any]:
    """A graph of three nodes as Amazon's file has it."""
    adjacent = {"adj_indptr": [0, 1, 3, 4], "adj_indices": [1, 0, 2, 1], "adj_data": np.ones(4), "adj_shape": [3, 3]}
    features = {"attr_indptr": [0, 1, 2, 3], "attr_indices": [0, 1, 0], "attr_data": np.ones(3), "attr_shape": [3, 2]}
    return {name: np.asarray(value) for name, value in {**adjacent, **features, "labels": [0, 1, 0], **change}.items()}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attr_indices": [0, 10**9, 0]}, "attr_indices: lead outside of the matrix, which has 2 columns"),
        ({"adj_indices": [1, 0, -7, 1]}, "adj_indices: lead outside"),
        ({"adj_indptr": [0, 1, 10**9, 4]}, "adj_indptr: does not divide 4 entries into 3 rows"),
        ({"adj_indptr": [0, 3, 1, 4]}, "adj_indptr: does not divide"),
        ({"adj_shape": [10**12, 3]}, "adj_indptr: does not divide 4 entries into 1000000000000 rows"),
        ({"attr_shape": [3, 10**11]}, r"attr_data written out takes .* GiB"),
        ({"attr_data": np.ones(2)}, "attr_data: has 2 entries for 3 columns"),
        ({"adj_indices": np.ones(4)}, "adj_indices: is not a list of whole numbers"),
        ({"adj_shape": [3]}, "adj_shape, adj_data: are not those of a matrix"),
        ({"adj_shape": [3, 9]}, "adj_shape: is 3 x 9 for 3 nodes; edges need 3 x 3"),
        ({"adj_indptr": [0, 1, 3, 4, 4], "adj_shape": [4, 4]}, "adj_shape: is 4 x 4 for 3 nodes"),
        ({"labels": [0, 1]}, "labels: are not one whole number for each of 3 nodes"),
        ({"labels": np.array([0, 1, 0], dtype=object)}, "labels: holds pickled objects"),
    ],
)
def test_a_sparse_matrix_that_leads_outside_of_itself_is_refused_before_a_library_follows_it(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    folder = tmp_path / "amazon" / "Photo" / "raw"
    folder.mkdir(parents=True)
    np.savez(folder / "amazon_electronics_photo.npz", **amazon())
    assert load_graph("amazon-photo", root=tmp_path).num_nodes == 3
    np.savez(folder / "amazon_electronics_photo.npz", **amazon(**change))
    with pytest.raises(InputError, match=message):
        load_graph("amazon-photo", root=tmp_path)


def flickr(raw: Path, **change: str) -> None:
    """GraphSAINT's four files of three nodes, some of them with another content."""
    raw.mkdir(parents=True, exist_ok=True)
    np.savez(raw / "adj_full.npz", data=np.ones(4), indices=[1, 0, 2, 1], indptr=[0, 1, 3, 4], shape=(3, 3))
    np.save(raw / "feats.npy", np.eye(3))
    (raw / "class_map.json").write_text(change.get("classes", '{"0": 0, "1": 1, "2": 0}'))
    (raw / "role.json").write_text(change.get("roles", '{"tr": [0], "va": [1], "te": [2]}'))


def test_flickrs_matrix_is_checked_too(tmp_path: Path) -> None:
    (tmp_path / "flickr" / "raw").mkdir(parents=True)
    np.savez(tmp_path / "flickr" / "raw" / "adj_full.npz", indptr=[0, 1], indices=[10**9], data=[1.0], shape=[1, 1])
    with pytest.raises(InputError, match="indices: lead outside of the matrix"):
        load_graph("flickr", root=tmp_path)


def npy(shape: str, *, kind: str = "<f4", size: int = 0) -> bytes:
    """The file of an array by what its header says, with so many bytes after it."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(size)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npy("(3, 1000000000000)", size=12), r"feats.npy: is damaged: its size does not fit its shape"),
        (npy("(-3, -1)", size=12), r"feats.npy: is damaged: its size does not fit its shape"),
        (npy("(2, 1)", size=8), r"feats.npy: has shape \(2, 1\) for 3 nodes"),
        (npy("(3, 1)", kind="|O", size=24), "feats.npy: holds pickled objects"),
        (b"PK\x03\x04 an archive", r"feats.npy: is damaged, or is not a \.npy file"),
    ],
)
def test_flickrs_features_are_judged_by_their_header(content: bytes, message: str, tmp_path: Path) -> None:
    flickr(tmp_path / "flickr" / "raw")
    (tmp_path / "flickr" / "raw" / "feats.npy").write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_graph("flickr", root=tmp_path)


def test_flickrs_features_beyond_the_limit_on_memory_are_not_read(tmp_path: Path) -> None:
    """The file takes no room on the disk."""
    flickr(tmp_path / "flickr" / "raw")
    with (tmp_path / "flickr" / "raw" / "feats.npy").open("wb") as file:
        file.write(npy("(3, 1000000000)"))
        file.truncate(file.tell() + 12 * 10**9)
    with pytest.raises(InputError, match=r"feats.npy: it takes .* GiB"):
        load_graph("flickr", root=tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": '{"0": 0, "1": 1, "-1": 0}'}, r"class_map.json: names nodes outside 0 to 2"),
        ({"classes": '{"0": 0, "1": 1, "3": 0}'}, r"class_map.json: names nodes outside 0 to 2"),
        ({"classes": '{"0": 0, "1": 1, "2": [[[]]]}'}, r"class_map.json: some classes are not whole numbers"),
        ({"roles": '{"tr": [0], "va": [-3], "te": [2]}'}, r"role.json: va: names nodes outside 0 to 2"),
        ({"roles": '{"tr": [0], "va": 1, "te": [2]}'}, r"role.json: va: names nodes outside 0 to 2"),
        ({"roles": "[" * 100_000}, r"role.json: is nested too deeply"),
    ],
)
def test_flickrs_lists_of_nodes_stay_within_the_graph(change: dict[str, str], message: str, tmp_path: Path) -> None:
    flickr(tmp_path / "flickr" / "raw", **change)
    with pytest.raises(InputError, match=message):
        load_graph("flickr", root=tmp_path)


class Poison:
    """An object whose pickle makes a file when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.mark), "w")


@pytest.mark.parametrize("how", ["an array of objects", "a pickle before the archive"])
def test_githubs_file_runs_no_code(how: str, tmp_path: Path) -> None:
    """PyTorch Geometric reads it with pickle allowed, and goes by its first bytes."""
    mark = tmp_path / "ran"
    file = tmp_path / "github" / "raw" / "github.npz"
    file.parent.mkdir(parents=True)
    target = np.array([Poison(mark), 1, 0]) if how.startswith("an array") else np.array([0, 1, 0])
    np.savez(file, edges=EDGES.T, features=np.eye(3), target=target)
    if how.startswith("a pickle"):
        file.write_bytes(pickle.dumps(Poison(mark)) + file.read_bytes())
    with pytest.raises(InputError, match="pickled objects|something stands before the archive"):
        load_graph("github", root=tmp_path)
    assert not mark.exists()
