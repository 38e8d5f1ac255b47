"""Ids replaced by keyed hashes: a report can be passed on, and who has the key can still look a record up."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import TextArray
from glasshouse.errors import InputError
from glasshouse.store import resolved, write_file

__all__ = ["Redactor", "key_beside", "read_or_make_key"]

_LETTERS = 16  # hexadecimal digits, 64 bits: two of a million ids have the same hash in 3 of 100 million cases
_KEY = re.compile(r"[0-9a-f]{64}")
_WORD = re.compile(r"[^\s'\"“”‘’`,;()\[\]{}<>=]+")


@dataclass(frozen=True)
class Redactor:
    """Replaces ids by the first digits of their HMAC-SHA-256.

    Without the key nobody can compute the hash of a known id, so a list of all possible ids does not help.

    Args:
        key: secret bytes.

    Example:
        >>> Redactor(b"secret").hash("patient 7")
        '1f9b1ee1e445d1fb'
    """

    key: bytes

    def __repr__(self) -> str:
        return "Redactor(…)"  # a key has no place in a log

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

        Example:
            >>> Redactor(b"k").text("record 'ann' and 2 others", frozenset({"ann", "2"}))
            "record '9266175ac0e5692d' and 2 others"
        """
        for name in sorted((name for name in ids if not _WORD.fullmatch(name)), key=len, reverse=True):
            text = text.replace(name, self.hash(name))  # an id of several words
        return _WORD.sub(lambda found: self._word(found, ids), text)

    def texts(self, texts: Mapping[str, str], ids: frozenset[str]) -> dict[str, str]:
        """Texts by name, each redacted."""
        return {name: self.text(text, ids) for name, text in texts.items()}

    def _word(self, found: re.Match[str], ids: frozenset[str]) -> str:
        word = found[0]
        bare = word.rstrip(".:!?")
        quoted = found.string[max(0, found.start() - 1) : found.start()] in {"'", '"', "“", "‘", "`"}
        if bare not in ids or (bare.isdigit() and len(bare) < 5 and not quoted):
            return word
        return self.hash(bare) + word[len(bare) :]


def key_beside(folder: Path | str) -> Path:
    """Where the key of a run's folder is kept by default: beside the folder, so that the folder can be passed on.

    Example:
        >>> key_beside("runs/audit").name
        'audit.key'
    """
    path = resolved(folder)
    return path.with_name(f"{path.name}.key")


def read_or_make_key(path: Path | str) -> Redactor:
    """The key in a file; a new random one, readable by its owner alone, if there is no such file.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = read_or_make_key(Path(folder) / "audit.key")
        ...     made == read_or_make_key(Path(folder) / "audit.key")
        True
    """
    path = Path(path)
    try:
        if path.exists():
            text = path.read_text(encoding="ascii").strip()
            if not _KEY.fullmatch(text):
                raise InputError(f"{path}: is not a key of Glasshouse (64 hexadecimal digits). Give another file.")
            return Redactor(bytes.fromhex(text))
        key = secrets.token_bytes(32)
        write_file(path, key.hex() + "\n", once=True)  # on the disk before any run that nobody can read without it
        return Redactor(key)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not a key of Glasshouse (64 hexadecimal digits). Give another file.") from error
    except OSError as error:
        raise InputError(f"{path}: the key cannot be read or written: {error.strerror or error}.") from error
