"""Seeded harm to files: to any bytes, to text, to JSON, and inside archives so that their checksums fit."""

from __future__ import annotations

import copy
import io
import json
import re
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["in_archive", "in_json", "in_text", "of_bytes"]

Mutation = Callable[[bytes, np.random.Generator], bytes]

TOKENS = (
    *(
        "nan",
        "NaN",
        "inf",
        "-inf",
        ".inf",
        ".nan",
        "1e999",
        "-1",
        "0",
        "1",
        "2",
        "1e308",
        "-0.0",
        "1e-320",
        "True",
        "no",
    ),
    *("", "null", "~", "[]", "{}", "''", "9" * 30, "9" * 5000, "x" * 2000, "1_0", "0x10", "1:59:59", "\u0661", "é"),
    *(
        "2021-13-45",
        "&a",
        "*a",
        "<<",
        "!!python/object:os.system",
        "!!binary x",
        "- ",
        "? ",
        "\t",
        "\x00",
        "\ufeff",
        "\u202e",
    ),
    *("target", "s0", "loss", "member", "id", "=1+1", "1.5", "100000000", "100000000000", "../../etc/passwd", "\ud7ff"),
)
SIGNS = (*TOKENS, *(",", ";", ":", '"', "[", "]", "{", "}", "\r", "\n", " "))
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 10**20, 10**300, 0.5, -0.5, 1e308, float("nan"), float("inf"), 1e-320),
    *("", "x", "nan", "<b>", "x" * 2000, [], {}, [[]], [1, 2, 3], [0.5] * 300, {"a": 1}, [None], {"auc": 0.5}),
)
KINDS = (
    "<f8",
    "<f4",
    "<f2",
    ">f8",
    "<i8",
    "<u8",
    "|b1",
    "|u1",
    "<U4",
    "|S8",
    "<M8[s]",
    "<c16",
    "|V8",
    "|O",
    "<U0",
    "<f16",
)


def of_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """One to four changes of any bytes."""
    harmed = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        if not harmed:
            break
        at = int(rng.integers(len(harmed)))
        size = int(min(rng.geometric(0.05), 4000))
        match int(rng.integers(8)):
            case 0:
                harmed[at] ^= 1 << int(rng.integers(8))
            case 1:
                harmed[at] = int(rng.choice([0, 1, 127, 128, 255]))
            case 2:
                del harmed[at : at + size]
            case 3:
                harmed[at:at] = harmed[at : at + size]
            case 4:
                harmed[at:at] = rng.bytes(size)
            case 5:
                harmed[at : at + 4] = int(rng.choice([0, 1, 2**31 - 1, 2**31, 2**32 - 1])).to_bytes(4, "little")
            case 6:
                other = int(rng.integers(len(harmed)))
                harmed[at : at + size] = harmed[other : other + size]
            case _:
                del harmed[at:]
    return bytes(harmed)


def in_text(content: bytes, rng: np.random.Generator) -> bytes:
    """A word, a number, a line or a sign of a text becomes another one."""
    text = content.decode("utf-8", "surrogateescape")
    for _ in range(int(rng.integers(1, 4))):
        lines = text.split("\n")
        line = int(rng.integers(len(lines)))
        words = list(re.finditer(r"[\w.+-]+", text))
        match int(rng.integers(6)):
            case 0 | 1 | 2 if words:
                word = words[int(rng.integers(len(words)))]
                text = text[: word.start()] + str(rng.choice(TOKENS)) + text[word.end() :]
            case 3:
                lines.insert(int(rng.integers(len(lines))), lines[line])
                text = "\n".join(lines)
            case 4:
                del lines[line]
                text = "\n".join(lines)
            case _:
                at = int(rng.integers(len(text) + 1))
                text = text[:at] + str(rng.choice(SIGNS)) + text[at:]
    return text.encode("utf-8", "surrogateescape")


def in_json(content: bytes, rng: np.random.Generator) -> bytes:
    """One to three values of a tree become others, are left out, or are there more often."""
    tree = json.loads(content)
    for _ in range(int(rng.integers(1, 4))):
        places = _places(tree)
        if not places:
            break
        inside, key = places[int(rng.integers(len(places)))]
        match int(rng.integers(6)):
            case 0:
                del inside[key]
            case 1 if isinstance(inside, list):
                inside.insert(key, copy.deepcopy(inside[key]))
            case 2 if isinstance(inside[key], int | float) and not isinstance(inside[key], bool):
                inside[key] = inside[key] * float(rng.choice([-1, 0.5, 2, 1e300])) + float(rng.choice([0, 1, -1e-9]))
            case 3:
                inside[key] = [inside[key]]
            case _:
                inside[key] = copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])
    return json.dumps(tree).encode()


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Every value of a tree, by what holds it and its key there."""
    found: list[tuple[Any, Any]] = []
    left = [tree]
    while left:
        one = left.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else []
        found += [(one, key) for key in keys]
        left += [one[key] for key in keys]
    return found


def in_archive(content: bytes, rng: np.random.Generator) -> bytes:
    """Members of a zip are changed and packed again, so that no checksum shows it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = [(name, archive.read(name)) for name in archive.namelist()]
    at = int(rng.integers(len(files)))
    name, data = files[at]
    match int(rng.integers(8)):
        case 0:
            del files[at]
        case 1:
            files[at] = (files[int(rng.integers(len(files)))][0], data)
        case 2:
            files[at] = (name.removesuffix(".npy"), data)
        case 3 if name.endswith(".npy"):
            files[at] = (name, _other_header(data, rng))
        case 4 | 5 if name.endswith(".npy"):
            files[at] = (name, _other_array(data, rng))
        case 6 if name.endswith(".json"):
            files[at] = (name, in_json(data, rng))
        case _:
            files[at] = (name, of_bytes(data, rng))
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names that are there twice
        with zipfile.ZipFile(buffer, "w", int(rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))) as archive:
            for one, inside in files:
                archive.writestr(one, inside)
    return buffer.getvalue()


def _other_header(data: bytes, rng: np.random.Generator) -> bytes:
    """The same numbers under another type or shape, with a header of a fitting length."""
    values = np.lib.format.read_array(io.BytesIO(data))
    shape = list(values.shape)
    if shape and rng.random() < 0.6:
        side = int(rng.integers(len(shape)))
        shape[side] = int(rng.choice([0, 1, -1, shape[side] + 1, 2**31, 2**62, 10**12]))
    if rng.random() < 0.3:
        shape = [*shape, int(rng.choice([0, 1, 2]))] if rng.random() < 0.5 else shape[1:]
    kind = str(rng.choice(KINDS)) if rng.random() < 0.6 else values.dtype.str
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": kind, "fortran_order": False, "shape": tuple(shape)})
    body = values.tobytes()
    return buffer.getvalue() + (body if rng.random() < 0.8 else body * 2)


def _other_array(data: bytes, rng: np.random.Generator) -> bytes:
    """Another array of a fitting header: some entries changed, another type, another order of records."""
    values = np.array(np.lib.format.read_array(io.BytesIO(data)))
    with np.errstate(all="ignore"):
        match int(rng.integers(5)):
            case 0 if values.dtype.kind == "f" and values.size:
                values.flat[int(rng.integers(values.size))] = float(rng.choice([np.nan, np.inf, -1, 1e308, 0, 1e-320]))
            case 1 if values.dtype.kind in "fiub":
                values = values.astype(str(rng.choice(["f2", "f4", "i8", "u1", "U8", "M8[s]", "c16", "S8", "bool"])))
            case 2 if values.ndim:
                values = rng.permutation(values)
            case 3:
                values = values[..., : max(0, values.shape[-1] - 1)] if values.ndim else values
            case _:
                values = values.reshape(-1)[:1].reshape(()) if values.size else values
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(values) if values.ndim else values, allow_pickle=False)
    return buffer.getvalue()
