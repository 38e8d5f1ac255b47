"""Every kind of file that is read: a whole one, how it is harmed and read, and what an accepted one must hold."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_mutations import in_archive, in_json, in_text, of_bytes
from sklearn.tree import DecisionTreeClassifier

from glasshouse import Evidence, Population, SklearnTrainer, TorchTrainer, audit_evidence, read_evidence
from glasshouse.config import read_audit_file, read_policy
from glasshouse.config.data import FileData
from glasshouse.evidence import query, write_evidence
from glasshouse.pool import ShadowPool
from glasshouse.pool.description import digest_of
from glasshouse.report import read_run_with_records, render_html
from glasshouse.report.policy import judge
from glasshouse.training import mlp

__all__ = ["KINDS", "Kind", "NonsenseError"]

Mutation = Callable[[bytes, np.random.Generator], bytes]

_RNG = np.random.default_rng(0)
_LOSS = _RNG.exponential(size=(5, 40))
_HALVES = _RNG.permuted(np.tile([True, False], (2, 20)), axis=1)
_MEMBERS = np.concatenate([np.arange(40)[None] % 2 == 0, _HALVES, ~_HALVES])
_IDS = [f"r{number}" for number in range(40)]
_LABELS = np.arange(40) // 2 % 2
_X = _RNG.normal(size=(40, 4))
_EVIDENCE = Evidence(target_loss=_LOSS[0], shadow_loss=_LOSS[1:], shadow_members=_MEMBERS[1:], ids=_IDS, labels=_LABELS)
_POPULATION = Population(_X, _LABELS, ids=_IDS)
_AUDIT = """title: An audit
data: {name: file, path: people.csv, label: income, id: person, members: trained_on, groups: [town]}
trainer: {kind: sklearn, estimator: RandomForestClassifier, parameters: {n_estimators: 20, max_depth: 3}}
attacks: [base, lira, {name: rmia, gamma: 2.0}]
shadows: 8
fraction: 0.5
fprs: [0.01, 0.1]
prior: 0.5
claim: {epsilon: 8.0, delta: 1.0e-5}
seed: 3
public: 0.2
"""
_POLICY = """limits:
  - {figure: tpr, at_fpr: 0.01, most: 0.05}
  - {figure: auc, most: 0.6, attack: base, end: lower}
end: upper
attacks: [base, loss]
shadows: 4
age_days: 30
"""


_NO_NUMBER = re.compile(r'="-?(nan|inf)"|(?<=[ ,"])(nan|inf)(?=[ ,"])')  # in an attribute of a drawing


class NonsenseError(Exception):
    """A file was accepted, and what it gave is not a possible input."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of file.

    Args:
        file: the name of the file that is harmed, below the folder of a trial.
        make: writes the whole file and what belongs to it.
        read: reads the harmed file, checks what it gives, and returns a digest of it.
        harm: the ways to harm it.
        mend: makes what guards the file fit again, such as its checksum elsewhere; None if nothing does.
        sealed: whether bytes that were harmed must be refused or change nothing: the file has a checksum of its own.
    """

    file: str
    make: Callable[[Path], None]
    read: Callable[[Path], str]
    harm: tuple[Mutation, ...]
    mend: Callable[[Path], None] | None = None
    sealed: bool = False


def must(condition: Any, what: str) -> None:
    """Raise if what was accepted cannot be right."""
    if not condition:
        raise NonsenseError(what)


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr([np.asarray(one).tolist() for one in parts]).encode("utf-8", "replace")).hexdigest()


def _read_evidence(path: Path) -> str:
    found = read_evidence(path)
    evidence, members = found.evidence, found.members
    n = evidence.records
    must(n >= 1 and evidence.target_loss.shape == (n,), "shape of the target's losses")
    must(evidence.shadow_loss.shape == evidence.shadow_members.shape == (evidence.models, n), "shape of shadow losses")
    for losses in (evidence.target_loss, evidence.shadow_loss):
        must(losses.dtype == np.float64 and np.isfinite(losses).all() and (losses >= 0).all(), "losses")
    must(len(set(evidence.ids.tolist())) == n and all(one.strip() for one in evidence.ids.tolist()), "ids")
    "".join(evidence.ids.tolist()).encode()
    must(evidence.shadow_members.dtype == np.bool_, "members of shadow models")
    must(members is None or (members.dtype == np.bool_ and members.shape == (n,)), "members")
    must(evidence.labels is None or evidence.labels.shape == (n,), "labels")
    told = _digest(evidence.target_loss, evidence.shadow_loss, evidence.shadow_members, evidence.ids, members)
    if told not in _ATTACKED:  # what is accepted can also be attacked, and gives figures that are numbers
        summary = audit_evidence(evidence, members=members, attacks=["loss"]).summary()
        measured = [attack.metrics for attack in summary.attacks if attack.metrics is not None]
        must(all(0 <= one.auc <= 1 for one in measured), "AUC")
        _ATTACKED.add(told)
    return told


_ATTACKED: set[str] = set()


def _write_evidence(folder: Path) -> None:
    write_evidence(folder / "e.npz", _EVIDENCE, members=_MEMBERS[0])


def _write_compressed(folder: Path) -> None:
    _write_evidence(folder)
    with np.load(folder / "e.npz", allow_pickle=False) as archive:
        np.savez_compressed(folder / "e.npz", **dict(archive))


def _rows() -> dict[str, list[Any]]:
    places = [(model, record) for model in range(5) for record in range(40)]
    return {
        "model": ["target" if model == 0 else f"s{model}" for model, _ in places],
        "id": [_IDS[record] for _, record in places],
        "member": [int(_MEMBERS[place]) for place in places],
        "label": [int(_LABELS[record]) for _, record in places],
        "loss": [float(_LOSS[place]) for place in places],
    }


def _write_csv(folder: Path) -> None:
    lines = [",".join(_rows()), *(",".join(map(str, row)) for row in zip(*_rows().values(), strict=True))]
    (folder / "e.csv").write_text("\n".join(lines) + "\n")


def _write_parquet(folder: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(_rows()), folder / "e.parquet")


def _write_people(folder: Path) -> None:
    lines = [
        f"{_IDS[i]},{20 + i % 7},{'ab'[i // 4 % 2]},{_LABELS[i]},{int(_MEMBERS[0, i])},2021-03-{1 + i % 28}"
        for i in range(40)
    ]
    (folder / "people.csv").write_text("person,age,town,income,trained_on,day\n" + "\n".join(lines) + "\n")


def _read_people(path: Path) -> str:
    keys: dict[str, Any] = {"label": "income", "id": "person", "members": "trained_on", "groups": ("town",)}
    return _checked_records(FileData(name="file", path=path.name, **keys), path.parent)


def _write_archive(folder: Path) -> None:
    np.savez(folder / "d.npz", x=_X, y=_LABELS, ids=_IDS, members=_MEMBERS[0])


def _checked_records(section: FileData, folder: Path) -> str:
    data = section.load(folder, 0)
    population, members = data.population, data.members
    must(population.x.dtype.kind in "biuf" and np.isfinite(population.x).all(), "features")
    must(len(set(population.ids.tolist())) == len(population) == len(population.x), "ids")
    must(members is None or (members.dtype == np.bool_ and members.shape == (len(population),)), "members")
    return _digest(population.x, population.labels, population.ids, members)


def _read_archive(path: Path) -> str:
    return _checked_records(FileData(name="file", path=path.name), path.parent)


def _write_graph(folder: Path) -> None:
    edges = np.random.default_rng(1).integers(0, 40, size=(2, 90))
    np.savez(folder / "g.npz", x=_X, y=_LABELS, edge_index=edges, edge_weight=np.ones(90), ids=_IDS)


def _read_graph(path: Path) -> str:
    from glasshouse.graph import load_graph

    data = load_graph(path)
    must(bool(data.x.isfinite().all()) and data.x.ndim == 2, "features")
    ends = data.edge_index.numpy()
    must(ends.shape[0] == 2 and ((ends >= 0) & (ends < len(data.x))).all(), "edges")
    must(data.y.shape == (len(data.x),), "labels")
    return _digest(data.x, data.edge_index, data.y, getattr(data, "ids", None) or 0)


def _write_audit(folder: Path) -> None:
    (folder / "audit.yaml").write_text(_AUDIT)


def _read_audit(path: Path) -> str:
    found = read_audit_file(path).model_dump(mode="json")
    parameters = (found.get("trainer") or {}).pop("parameters", None)
    json.dumps(found, allow_nan=False)  # fails for a number that is none
    return _digest(json.dumps(found, sort_keys=True), repr(parameters))


def _write_policy(folder: Path) -> None:
    (folder / "risk.yaml").write_text(_POLICY)


def _read_policy(path: Path) -> str:
    return _digest(repr(read_policy(path)))


def _write_run(folder: Path) -> None:
    audit_evidence(_EVIDENCE, members=_MEMBERS[0], attacks=["base", "loss"]).save(folder / "run")


def _mend_run(folder: Path) -> None:
    """The list of files has the digests of what is there."""
    told = json.loads((folder / "run" / "run.json").read_bytes())
    told.pop("run_sha256", None)
    for name in ("metrics.json", "records.csv"):
        told["files"][name]["sha256"] = hashlib.sha256((folder / "run" / name).read_bytes()).hexdigest()
    (folder / "run" / "run.json").write_text(json.dumps(told))


def _mend_own(folder: Path) -> None:
    """A run.json without a checksum of its own, as earlier versions wrote it, if it still has keys."""
    path = folder / "run" / "run.json"
    try:
        told = json.loads(path.read_bytes())
        told.pop("run_sha256", None)
        path.write_text(json.dumps(told))
    except (ValueError, AttributeError, TypeError, RecursionError):
        return


def _read_run(path: Path) -> str:
    from glasshouse.io.guarded import guarded

    found = read_run_with_records(path.parent)
    summary = found.summary()
    (path.parent.parent / "risk.yaml").write_text(_POLICY)
    with guarded(path, what="a run"):  # as the commands do
        page = render_html(summary)
        judge(summary, read_policy(path.parent.parent / "risk.yaml"))
    # text that somebody wrote may say anything; drawings and cells of numbers may not
    drawn = re.sub(r'>[^<]*<|option value="[^"]*"| title="[^"]*"| data-class="[^"]*"', "><", page)
    must(not _NO_NUMBER.search(drawn), "NaN in a drawing")
    scores = [values for name, values in found.records().items() if name.endswith("_score")]
    must(all(not np.isnan(one).any() for one in scores), "scores")
    return hashlib.sha256(page.encode("utf-8", "replace")).hexdigest()


def _asks(population: Population, members: Any, seed: int) -> Any:
    """A model of the user's own, of which only the answers are kept."""
    return lambda x: np.stack([x[:, 0], -x[:, 0]], axis=1)


_TRAINERS: Mapping[str, Any] = {
    "torch": TorchTrainer(module=mlp(4, 2, hidden=[3]), epochs=1),
    "sklearn": SklearnTrainer(estimator=DecisionTreeClassifier(max_depth=3)),
    "answers": _asks,
}


def _pool(kind: str, folder: Path) -> ShadowPool:
    return ShadowPool.plan(_POPULATION, _TRAINERS[kind], shadows=2, folder=folder)


def _write_pool(kind: str) -> Callable[[Path], None]:
    return lambda folder: void(_pool(kind, folder / "pool").train(progress=False))


def void(_: object) -> None:
    """For a call whose result is not needed."""


def _mend_pool(folder: Path) -> None:
    """The manifest has the checksum of what is there."""
    manifest = json.loads((folder / "pool" / "model-00000.json").read_bytes())
    path = next(path for path in (folder / "pool").glob("model-00000.*") if path.suffix != ".json")
    manifest.pop("manifest_sha256", None)
    manifest["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    manifest["manifest_sha256"] = digest_of(manifest)
    (folder / "pool" / "model-00000.json").write_text(json.dumps(manifest))


def _mend_manifest(folder: Path) -> None:
    """The manifest has its own checksum, if it still has keys."""
    path = folder / "pool" / "model-00000.json"
    try:
        manifest = json.loads(path.read_bytes())
        manifest.pop("manifest_sha256", None)
        path.write_text(json.dumps(manifest | {"manifest_sha256": digest_of(manifest)}))
    except (ValueError, AttributeError, TypeError, RecursionError):
        return


def _read_pool(kind: str) -> Callable[[Path], str]:
    def read(path: Path) -> str:
        losses = []
        for model in _pool(kind, path.parent):
            answers = query(model, _POPULATION)
            must(answers.loss.shape == (40,), "losses of a stored model")
            losses.append(Evidence(target_loss=answers.loss).target_loss)  # as an audit does; it refuses NaN
        return _digest(*losses)

    return read


def _model(kind: str, ending: str, harm: tuple[Mutation, ...]) -> Kind:
    return Kind(
        file=f"pool/model-00000{ending}",
        make=_write_pool(kind),
        read=_read_pool(kind),
        harm=harm,
        mend=_mend_pool,
    )


KINDS: dict[str, Kind] = {
    "evidence, npz": Kind(
        file="e.npz", make=_write_evidence, read=_read_evidence, harm=(of_bytes, in_archive), sealed=True
    ),
    "evidence, packed npz": Kind(
        file="e.npz", make=_write_compressed, read=_read_evidence, harm=(of_bytes, in_archive), sealed=True
    ),
    "evidence, csv": Kind(file="e.csv", make=_write_csv, read=_read_evidence, harm=(of_bytes, in_text, in_text)),
    "evidence, parquet": Kind(file="e.parquet", make=_write_parquet, read=_read_evidence, harm=(of_bytes,)),
    "records, csv": Kind(file="people.csv", make=_write_people, read=_read_people, harm=(of_bytes, in_text, in_text)),
    "records, npz": Kind(
        file="d.npz", make=_write_archive, read=_read_archive, harm=(of_bytes, in_archive), sealed=True
    ),
    "graph, npz": Kind(file="g.npz", make=_write_graph, read=_read_graph, harm=(of_bytes, in_archive), sealed=True),
    "audit file": Kind(file="audit.yaml", make=_write_audit, read=_read_audit, harm=(of_bytes, in_text, in_text)),
    "policy file": Kind(file="risk.yaml", make=_write_policy, read=_read_policy, harm=(of_bytes, in_text, in_text)),
    "run: metrics.json": Kind(
        file="run/metrics.json", make=_write_run, read=_read_run, harm=(of_bytes, in_json, in_json), mend=_mend_run
    ),
    "run: run.json": Kind(
        file="run/run.json", make=_write_run, read=_read_run, harm=(of_bytes, in_json, in_json), mend=_mend_own
    ),
    "run: records.csv": Kind(
        file="run/records.csv", make=_write_run, read=_read_run, harm=(of_bytes, in_text), mend=_mend_run
    ),
    "pool: torch model": _model("torch", ".safetensors", (of_bytes,)),
    "pool: kept answers": _model("answers", ".safetensors", (of_bytes,)),
    "pool: answers of an estimator": _model("sklearn", ".safetensors", (of_bytes,)),
    "pool: manifest": Kind(
        file="pool/model-00000.json",
        make=_write_pool("answers"),
        read=_read_pool("answers"),
        harm=(of_bytes, in_json),
        mend=_mend_manifest,
    ),
    "pool: pool.json": Kind(
        file="pool/pool.json", make=_write_pool("answers"), read=_read_pool("answers"), harm=(of_bytes, in_json)
    ),
}
