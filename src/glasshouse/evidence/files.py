"""Evidence from files: npz, csv or parquet holding losses, logits or class probabilities. Nothing is unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from glasshouse.core.arrays import BoolArray, FloatArray, TextArray
from glasshouse.core.errors import InputError, placed
from glasshouse.core.threads import forget_mapped, leave_in_file
from glasshouse.data import as_ids, as_members
from glasshouse.evidence.evidence import Evidence
from glasshouse.evidence.parts import PartLosses
from glasshouse.evidence.tables import Arrays, outputs_to_losses, read_text_table, tidy_arrays
from glasshouse.io.arrays import read_npz
from glasshouse.io.files import write_file
from glasshouse.io.guarded import file_size, guarded

_PICKLES = {".pkl", ".pickle", ".pt", ".pth", ".joblib", ".npy", ".bin"}
_ROUNDING = 1e-4  # of a text's loss, which sums of float32 may differ by
_OUTPUTS = ("loss", "logits", "probabilities")  # a file holds one of them
_DETAILS = ("reference", "compressed", "mean", "spread", "right")  # of tokens, as `TokenLoss` tells them
_PARTS = ("target_parts", "shadow_parts", "part_offsets", *(f"parts_{name}" for name in _DETAILS))
_WRITTEN = (
    *("target_loss", "shadow_loss", "shadow_members", "ids", "labels"),
    *("target_residual", "shadow_residual", "target_trace"),
)
_KNOWN = {
    *(*_WRITTEN, *_PARTS, "target_ids", "shadow_ids", "label_ids", "members", "member_ids", "unit"),
    *(f"{who}_{what}" for who in ("target", "shadow") for what in _OUTPUTS),
}


class EvidenceFile(NamedTuple):
    """What a file held: the evidence, and the target's members [N] if the file has them (only for evaluation)."""

    evidence: Evidence
    members: BoolArray | None


def read_evidence(path: Path | str) -> EvidenceFile:
    """Read evidence from ``.npz``, ``.csv`` or ``.parquet``; records are matched by id, never by position.

    *npz*: ``target_X`` [N, …] and ``shadow_X`` [K, N, …], X one of ``loss``, ``logits``, ``probabilities``;
    ``shadow_members`` [K, N]; ``labels`` [N] (needed for logits and probabilities); optionally ``members`` [N], or the
    members' ids as text, ``target_trace`` [T, N] and ``ids`` [N]. A regression has losses, and ``target_residual`` [N]
    and ``shadow_residual`` [K, N] beside them. Of texts, ``target_parts`` [P] and ``shadow_parts`` [K, P] have the
    losses of all tokens, those of one text after those of another, and ``part_offsets`` [N + 1] where each begins, and
    the end; losses of texts are their sums, and may be left out.

    If the target's records are in another order than the shadow models', give ``target_ids`` and ``shadow_ids`` in
    place of ``ids``: arrays named ``target_…`` are in the order of the one, and those named ``shadow_…`` in that of the
    other. Labels and members could be in either, so they need ``label_ids`` [N] and ``member_ids`` [N] then. ``unit``
    [N], in the target's order, says whose record each one is.

    *csv, parquet*: one row for each model and record: ``model`` (``target`` or any other name), ``id``, ``member``
    (may be empty for the target), ``label``, and ``loss``, or ``logit_0, logit_1, …``, or ``probability_0, …``.

    Example:
        >>> import tempfile
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=[[0.5, 1.0]], shadow_members=[[1, 0]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = write_evidence(Path(folder) / "evidence.npz", evidence)
        ...     read_evidence(path).evidence.target_loss
        array([0.1, 2. ])
    """
    path = Path(path)
    file_size(path)
    with guarded(path, what="a file of evidence"), path.open("rb") as file:
        opening = file.read(4)
    if path.suffix in _PICKLES or opening[:1] == b"\x80":
        raise InputError(
            f"{path}: looks like a pickle, which can run code when it is read; refused. Save the losses as .npz, .csv "
            f"or .parquet instead (glasshouse.evidence.write_evidence)."
        )
    if path.suffix not in (".npz", ".csv", ".parquet"):
        raise InputError(f"{path}: {path.suffix or 'no'} ending; evidence is read from .npz, .csv or .parquet.")
    arrays = read_npz(path, known=_KNOWN, mapped=_KNOWN - {"part_offsets"}) if path.suffix == ".npz" else None
    for values in (arrays or {}).values():
        leave_in_file(values)
    columns = read_text_table(path).columns if arrays is None else {}
    with guarded(path, what="a file of evidence"), placed(path):
        return _evidence_of(tidy_arrays(columns) if arrays is None else arrays)


def write_evidence(path: Path | str, evidence: Evidence, *, members: BoolArray | None = None) -> Path:
    """Write evidence as ``.npz`` for `read_evidence`: losses, also of parts, but no logits, which few attacks need.

    Args:
        path: path of the file, ending in ``.npz``.
        evidence: what to write.
        members: [N] members of the target, so that a reader can evaluate; left out by default.
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise InputError(f"{path}: evidence is written as .npz; use a path that ends in .npz.")
    arrays: Arrays = {name: held for name in _WRITTEN if (held := getattr(evidence, name)) is not None}
    if members is not None:
        arrays["members"] = members
    if evidence.parts is not None:
        arrays |= evidence.parts.arrays()
    if evidence.unit is not None:
        arrays["unit"] = evidence.unit.names[evidence.unit.rows]
    return write_file(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]


def _evidence_of(arrays: Arrays) -> EvidenceFile:
    """Evidence from named arrays, with the records of the shadow models brought into the target's order by id."""
    parts = _parts_of(arrays)
    sums = None if parts is None else parts.sums()
    if sums is not None:
        arrays = {"target_loss": sums[0], "shadow_loss": sums[1:], **arrays}
    found = [kind for kind in _OUTPUTS if f"target_{kind}" in arrays]
    if not found:
        raise InputError("target_loss: missing; give target_loss, target_logits or target_probabilities.")
    if len(found) > 1:
        raise InputError(f"target_{found[1]}: cannot be used together with target_{found[0]}; leave one of them out.")
    kind = found[0]
    for name, values in arrays.items():  # numpy would make numbers of text and truth values
        if values.dtype.kind not in "iuf" and not name.endswith(("ids", "labels", "members", "unit")):
            raise InputError(f"{name}: is of type {values.dtype}; save numbers.")
    if not arrays.keys() & {"shadow_members", *(f"shadow_{kind}" for kind in _OUTPUTS)}:  # no shadow models
        none = {f"shadow_{kind}": np.empty((0, *(shape := arrays[f"target_{kind}"].shape)))}
        arrays = {**arrays, **none, "shadow_members": np.empty((0, shape[0]), np.bool_)}
    if "shadow_members" not in arrays:
        raise InputError("shadow_members: missing; give the members of each shadow model, [K, N].")
    if f"shadow_{kind}" not in arrays:
        raise InputError(f"shadow_{kind}: missing; the target is given as {kind}, so give the shadow models' too.")
    target, shadow = arrays[f"target_{kind}"], arrays[f"shadow_{kind}"]
    shadow_members = arrays["shadow_members"]
    if shadow.ndim != target.ndim + 1 or shadow_members.shape != shadow.shape[:2]:
        raise InputError(
            f"shadow_{kind}: shape {shadow.shape} does not fit target_{kind} {target.shape} and shadow_members "
            f"{shadow_members.shape}; expected [K, N, …] for a target [N, …]."
        )
    if ("target_ids" in arrays) != ("shadow_ids" in arrays):
        raise InputError("target_ids, shadow_ids: give both, or only ids if the order is the same.")
    if "ids" in arrays and "target_ids" in arrays:
        raise InputError("ids: cannot be used together with target_ids and shadow_ids; leave one of them out.")
    ids = as_ids(arrays.get("ids", arrays.get("target_ids")), len(target), place="ids")
    residuals: Arrays = {name: values for name, values in arrays.items() if name.endswith("_residual")}
    if "shadow_ids" in arrays:
        order = _order(ids, as_ids(arrays["shadow_ids"], shadow.shape[1], place="shadow_ids"))
        shadow, shadow_members = shadow[:, order], shadow_members[:, order]
        if (theirs := residuals.get("shadow_residual")) is not None and theirs.shape == shadow.shape:
            residuals["shadow_residual"] = theirs[:, order]  # another shape is refused below
    labels, members = _in_order("labels", arrays, ids), _in_order("members", arrays, ids)
    if residuals and kind != "loss":
        raise InputError(f"{next(iter(residuals))}: a regression has losses and residuals, and no {kind}.")
    given: dict[str, Any] = {"target_loss": target, "shadow_loss": shadow, **residuals}
    if sums is not None:
        _check_parts(sums, target, shadow, ids, arrays)
    elif not residuals:  # losses of a regression have no steps: an error of 0 is no vote
        given = outputs_to_losses(kind, target, shadow, labels, ids)
        forget_mapped()  # all of them were looked at
    evidence = Evidence(
        **given,
        shadow_members=shadow_members,
        target_trace=arrays.get("target_trace"),
        parts=parts,
        ids=ids,
        unit=arrays.get("unit"),
    )
    return EvidenceFile(evidence, None if members is None else as_members(members, ids.shape, place="members", ids=ids))


def _parts_of(arrays: Arrays) -> PartLosses | None:
    """The losses of parts, if a file has them."""
    there = [name for name in _PARTS if name in arrays]
    if not there:
        return None
    lacking = next((name for name in _PARTS[:3] if name not in arrays), None)
    if lacking is not None:
        raise InputError(f"{lacking}: missing beside {there[0]}; give target_parts, shadow_parts and part_offsets.")
    target, shadow, ends = (arrays[name] for name in _PARTS[:3])
    if ends.ndim != 1 or ends.dtype.kind not in "iu" or target.ndim != 1:
        raise InputError("part_offsets, target_parts: give whole numbers [N + 1] and losses [P].")
    for name in there:
        values = arrays[name]
        if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
            raise InputError(f"{name}: some are not finite numbers; leave out the records whose losses are not known.")
        if name in _PARTS[:2] and values.min(initial=0.0) < 0:
            raise InputError(f"{name}: some are negative. If they are log-probabilities, negate them.")
    details = {}
    for name in there[3:]:
        values = details[name.removeprefix("parts_")] = np.atleast_2d(arrays[name]).astype(np.float32, copy=False)
        if values.shape not in ((1, len(target)), (1 + len(shadow), len(target))):
            raise InputError(f"{name}: shape {values.shape}; expected [1, {len(target)}] or one row per model.")
    target, shadow = (values.astype(np.float32, copy=False) for values in (target, shadow))
    return PartLosses(target=target, shadow=shadow, offsets=ends.astype(np.int64), details=details)


def _check_parts(sums: FloatArray, target: np.ndarray, shadow: np.ndarray, ids: TextArray, arrays: Arrays) -> None:
    """Refuse parts of other losses. Sums may differ from losses, as of densities, but alike for all models."""
    if "shadow_ids" in arrays and not np.array_equal(ids, as_ids(arrays["shadow_ids"], len(ids), place="shadow_ids")):
        raise InputError("shadow_ids: with parts all arrays must be in one order; give ids.")
    if sums.shape[1] != len(target):
        raise InputError(f"part_offsets: has {sums.shape[1] + 1} numbers; {len(target)} records need one more.")
    beyond = np.vstack([target, shadow]) - sums
    wrong = np.ptp(beyond, axis=0) > _ROUNDING * (1 + np.abs(sums).max(axis=0))
    if wrong.any():
        raise InputError(
            f"target_parts, shadow_parts: of {int(wrong.sum())} records, first {str(ids[wrong][0])!r}, their sums do "
            f"not fit the losses. Leave target_loss and shadow_loss out; the sums are used then."
        )


def _in_order(name: str, arrays: Arrays, ids: TextArray) -> np.ndarray | None:
    """Labels or members in the target's order, by their own ids; refused if their order is not known."""
    values, own = arrays.get(name), f"{name.removesuffix('s')}_ids"
    if own in arrays and (values is None or not arrays.keys() & {"ids", "target_ids"}):
        raise InputError(f"{own}: says whose {name} are where; give {name} and ids, or target_ids and shadow_ids, too.")
    if values is None or (name == "members" and values.dtype.kind == "U"):  # ids of the members
        return values
    if own in arrays:
        if values.shape != (len(ids),):
            raise InputError(f"{name}: shape {values.shape} does not fit {len(ids)} records; give one per record.")
        return values[_order(ids, as_ids(arrays[own], len(ids), place=own), name=own)]  # type: ignore[no-any-return]
    if "shadow_ids" in arrays and not np.array_equal(ids, as_ids(arrays["shadow_ids"], len(ids), place="shadow_ids")):
        raise InputError(
            f"{name}: target_ids and shadow_ids are in different orders, and {name} could be in either. Add {own}, "
            f"[N], the ids of the records in the order of {name}."
        )
    return values


def _order(wanted: np.ndarray, given: np.ndarray, *, name: str = "shadow_ids") -> np.ndarray:
    """Positions in ``given``, the ids of this name, of each wanted id."""
    for first, second, place in ((wanted, given, name), (given, wanted, "target_ids")):
        lost = ~np.isin(first, second)
        if lost.any():
            raise InputError(f"{place}: record {str(first[lost][0])!r} is missing ({int(lost.sum())} in total).")
    sorting = np.argsort(given)
    found: np.ndarray = sorting[np.searchsorted(given, wanted, sorter=sorting)]
    return found
