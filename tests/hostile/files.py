"""Whole files of every kind that is read, and the tools to harm them."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

RNG = np.random.default_rng(0)
LOSS = RNG.exponential(size=(5, 40))  # the target and 4 shadow models, 40 records
MEMBERS = np.concatenate([np.arange(40)[None] % 2 == 0, RNG.permuted(np.tile([True, False], (4, 20)), axis=1)])
MEMBERS[[2, 4]] = ~MEMBERS[[1, 3]]
IDS = np.array([f"r{number}" for number in range(40)])
EVIDENCE: dict[str, Any] = {
    "target_loss": LOSS[0],
    "shadow_loss": LOSS[1:],
    "shadow_members": MEMBERS[1:],
    "members": MEMBERS[0],
    "ids": IDS,
}
GRAPH: dict[str, Any] = {
    "x": RNG.normal(size=(40, 5)),
    "edge_index": RNG.integers(0, 40, size=(2, 90)),
    "y": np.arange(40) % 3,
}
RECORDS: dict[str, Any] = {
    "x": RNG.normal(size=(40, 4)),
    "y": np.arange(40) // 2 % 2,
    "members": MEMBERS[0],
    "ids": IDS,
}


def npz(path: Path, arrays: dict[str, Any], **changed: Any) -> Path:
    """An archive with some arrays changed, or left out where the change is None."""
    np.savez(path, **{name: value for name, value in (arrays | changed).items() if value is not None})
    return path


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def header(shape: tuple[int, ...], kind: str, data: bytes = b"") -> bytes:
    """An array file with any header."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": kind, "fortran_order": False, "shape": shape})
    return buffer.getvalue() + data


def members(path: Path, files: dict[str, bytes], *, compression: int = zipfile.ZIP_STORED) -> Path:
    """An archive with these members in it, byte by byte."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def unpacked(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def table() -> list[dict[str, str]]:
    """Evidence with one row for each model and record."""
    return [
        {
            "model": "target" if model == 0 else f"s{model}",
            "id": str(IDS[record]),
            "member": str(int(MEMBERS[model, record])),
            "label": str(record % 3),
            "loss": repr(float(LOSS[model, record])),
        }
        for model in range(5)
        for record in range(40)
    ]


def csv(path: Path, rows: list[dict[str, str]]) -> Path:
    lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def listed_again(folder: Path) -> Path:
    """A run whose list of files fits what is in it now: an honest digest of hostile content."""
    run = json.loads((folder / "run.json").read_bytes())
    run.pop("run_sha256", None)
    for name in run["files"]:
        if (folder / name).is_file():
            run["files"][name]["sha256"] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "run.json").write_text(json.dumps(run))
    return folder


def saved_run(folder: Path) -> Path:
    """A run on disk, with two attacks."""
    from glasshouse import Evidence, audit_evidence

    names = ("target_loss", "shadow_loss", "shadow_members", "ids")
    evidence = Evidence(**{name: EVIDENCE[name] for name in names})
    return audit_evidence(evidence, members=MEMBERS[0], attacks=["base", "loss"]).save(folder)
