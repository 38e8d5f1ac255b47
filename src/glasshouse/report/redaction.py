"""Ids replaced by keyed hashes: a report can be passed on, and who has the key can still look a record up."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.arrays import TextArray
from glasshouse.core.errors import InputError
from glasshouse.core.table import Table
from glasshouse.io.files import resolved, write_file
from glasshouse.report.context import Context
from glasshouse.report.summary import Summary

_LETTERS = 16  # hexadecimal digits, 64 bits: two of a million ids have the same hash in 3 of 100 million cases
_KEY = re.compile(r"[0-9a-f]{64}")
_WORD = re.compile(r"[^\s'\"“”‘’`,;()\[\]{}<>=]+")


@dataclass(frozen=True)
class Redactor:
    """Replaces ids by the first digits of their HMAC-SHA-256: without the key nobody can compute that of a known id."""

    key: bytes = field(repr=False)  # it has no place in a log

    def hash(self, name: str) -> str:
        """The hash of one id."""
        return hmac.new(self.key, name.encode(), hashlib.sha256).hexdigest()[:_LETTERS]

    def ids(self, ids: Iterable[Any]) -> TextArray:
        """The hashes [N] of ids; equal hashes of different ids are refused."""
        names = [str(name) for name in ids]
        hashed = np.array([self.hash(name) for name in names], dtype=np.str_)
        if len(set(hashed.tolist())) < len(set(names)):
            raise InputError("redact: two ids have the same hash, which is very rare. Use another key.")
        return hashed

    def column(self, values: NDArray[Any], ids: Iterable[Any]) -> NDArray[Any]:
        """A column [N], hashed if it only repeats the ids [N]."""
        same = [str(value) for value in values.tolist()] == [str(name) for name in ids]
        return self.ids(values.tolist()) if same else values

    def text(self, text: str, ids: frozenset[str]) -> str:
        """A text of a report with every id in it replaced.

        An id of digits alone is replaced only in quotes or with five digits or more: a text is full of small numbers,
        and Glasshouse writes ids in quotes.
        """
        for name in sorted((name for name in ids if not _WORD.fullmatch(name)), key=len, reverse=True):
            text = text.replace(name, self.hash(name))  # an id of several words
        return _WORD.sub(lambda found: self._word(found, ids), text)

    def texts(self, texts: Mapping[str, Any], ids: frozenset[str]) -> dict[str, str]:
        """Texts by name, each redacted."""
        return {name: self.text(str(text), ids) for name, text in texts.items()}

    def _word(self, found: re.Match[str], ids: frozenset[str]) -> str:
        word = found[0]
        bare = word.rstrip(".:!?")
        quoted = found.string[max(0, found.start() - 1) : found.start()] in {"'", '"', "“", "‘", "`"}
        if bare not in ids or (bare.isdigit() and len(bare) < 5 and not quoted):
            return word
        return self.hash(bare) + word[len(bare) :]


def key_beside(folder: Path | str) -> Path:
    """Where the key of a run's folder is kept by default: beside the folder, so that the folder can be passed on."""
    path = resolved(folder)
    return path.with_name(f"{path.name}.key")


def read_or_make_key(path: Path | str) -> Redactor:
    """The key in a file; a new random one, readable by its owner alone, if there is no such file."""
    path = Path(path)
    try:
        if path.exists():
            text = path.read_text(encoding="ascii", errors="replace").strip()
            if not _KEY.fullmatch(text):
                raise InputError(f"{path}: is not a key of Glasshouse (64 hexadecimal digits). Give another file.")
            return Redactor(bytes.fromhex(text))
        key = secrets.token_bytes(32)
        write_file(path, key.hex() + "\n", once=True)  # on the disk before any run that nobody can read without it
        return Redactor(key)
    except OSError as error:
        raise InputError(f"{path}: the key cannot be read or written: {error.strerror or error}.") from error


def redacted_context(context: Context, redactor: Redactor, ids: frozenset[str]) -> Context:
    """The same context with every id in its texts replaced."""
    return dataclasses.replace(
        context,
        title=redactor.text(context.title, ids),
        about=redactor.text(context.about, ids),
        settings=redactor.texts(context.settings, ids),
        warnings=tuple(redactor.text(one, ids) for one in context.warnings),
        notes=tuple(redactor.text(one, ids) for one in context.notes),
        redacted=True,
    )


def redacted_summary(summary: Summary, redactor: Redactor, ids: Iterable[str]) -> Summary:
    """The same summary with every id replaced, in records and in texts; ``ids`` are those of all audited records."""
    if summary.context.redacted:
        return summary
    known, rows = frozenset(ids), summary.top_records
    names = rows["id"].tolist() if "id" in rows else []
    hashed = {name: redactor.column(rows[name], names) for name in rows}
    cell, texts = summary.worst_cell, summary.texts
    if texts is not None:
        few = tuple(dataclasses.replace(one, id=redactor.hash(one.id), words=()) for one in texts.texts)
        texts = dataclasses.replace(texts, texts=few)
    repeats = {name for name in rows if name != "id" and hashed[name] is not rows[name]}

    def group(column: str, name: str) -> str:
        return redactor.hash(name) if column in repeats else name

    return dataclasses.replace(
        summary,
        context=redacted_context(summary.context, redactor, known),
        top_records=Table(hashed),
        verdict=redactor.text(summary.verdict, known),
        notes=tuple(redactor.text(one, known) for one in summary.notes),
        left_out=redactor.texts(summary.left_out, known),
        attacks=tuple(
            dataclasses.replace(one, note=redactor.text(one.note, known), doubt=redactor.text(one.doubt, known))
            for one in summary.attacks
        ),
        groups=tuple(dataclasses.replace(one, group=group(one.column, one.group)) for one in summary.groups),
        texts=texts,
        worst_cell=cell
        and dataclasses.replace(cell, parts=tuple((name, group(name, one)) for name, one in cell.parts)),
    )
