"""What every reader does: look at the file before it is opened, and turn whatever a library raises into one line.

JSON and YAML from untrusted files: safe loaders, every key once, limits on size, nesting and aliases.
"""

from __future__ import annotations

import json
import math
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import yaml

from glasshouse.core.errors import InputError, first_line, shortened
from glasshouse.io.limits import check_memory


@contextmanager
def guarded(place: Path | str, *, what: str, advice: str = "") -> Iterator[None]:
    """Around everything that a library does with an untrusted file: each fault, of any kind, becomes an `InputError`.

    It names the ``place``, ``what`` the file should be, such as ``"a .npz file"``, and a sentence of ``advice``.
    """
    after = f" {advice}" if advice else ""
    try:
        yield
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(
            f"{place}: needs more memory than there is, or than the limit allows. If the file is right, raise the "
            f"limit, such as --memory 8GiB, or use a smaller file."
        ) from error
    except RecursionError as error:
        raise InputError(f"{place}: is nested too deeply to be {what}.{after}") from error
    except OSError as error:
        raise InputError(f"{place}: cannot be read: {error.strerror or first_line(error)}.{after}") from error
    except Exception as error:
        told = first_line(error, lines=3).rstrip(".: ")  # pydantic says what is wrong in the third
        raise InputError(f"{place}: is damaged, or is not {what} ({told}).{after}") from error


def file_size(path: Path, *, missing: str = "there is no such file.") -> int:
    """The size of a plain file in bytes; a folder, a device, a pipe and a name that is too long are refused."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a name with a zero in it
        raise InputError(f"{path}: {missing}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}.") from error
    if stat.S_ISDIR(found.st_mode):
        raise InputError(f"{path}: is a folder; give a file.")
    if not stat.S_ISREG(found.st_mode):  # reading a pipe may never end
        raise InputError(f"{path}: is not a plain file; copy its content into one.")
    return found.st_size


def read_content(path: Path, *, times: int = 1, missing: str = "there is no such file.") -> bytes:
    """The content of a plain file that, once read, is at most ``times`` as large within the memory limit; 0: any."""
    check_memory(times * file_size(path, missing=missing), place=str(path), what="once read it may take")
    with guarded(path, what="a file"):
        return path.read_bytes()


_TIMES = 3  # the bytes, the text and the texts in it
_OF_ENTRY = 64  # bytes that Python needs for a value besides its letters
_JSON_DEPTH = 200
_JSON_DIGITS = 400  # of the largest float there are 309
_BYTES = 256 * 2**10  # of a file of settings
_ENTRIES = 10_000  # in it
_YAML_DEPTH = 50
_YAML_DIGITS = 100  # of a number
_NUMBERS = (":int", ":float")  # how their tags end


def read_json(path: Path, *, advice: str = "", missing: str = "there is no such file.") -> dict[str, Any]:
    """A JSON file that holds a dictionary: no NaN, no infinite number, no key twice, and at most 200 levels."""
    content = read_content(path, times=_TIMES, missing=missing)
    entries = sum(content.count(sign) for sign in (b",", b"[", b"{", b":"))
    check_memory(_TIMES * len(content) + _OF_ENTRY * entries, place=str(path), what="once read it may take")
    with guarded(path, what="JSON", advice=advice):
        found = json.loads(
            content, parse_constant=_refused, parse_float=_number, parse_int=_whole, object_pairs_hook=each_once
        )
        _check_depth(found)
    if not isinstance(found, dict):
        raise InputError(f"{path}: is damaged: it does not hold keys and values. {advice}".rstrip())
    return found


def _refused(text: str) -> Any:
    raise ValueError(f"{text} is not a number")


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{shortened(text)} is too large")
    return value


def _whole(text: str) -> int:
    if len(text) > _JSON_DIGITS:
        raise ValueError(f"a number has {len(text)} digits")
    return int(text)


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A dictionary of JSON, for `json.loads`; a key that is there twice is a `ValueError`."""
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise ValueError(f"{shortened(name)} is there twice")
    return dict(pairs)


def _check_depth(found: Any) -> None:
    level, depth = [found], 0
    while level:
        if depth > _JSON_DEPTH:
            raise RecursionError
        nested = [one for one in level if isinstance(one, dict | list)]
        level = [inside for one in nested for inside in (one.values() if isinstance(one, dict) else one)]
        depth += 1


def read_settings(path: Path, *, form: bool = False) -> dict[Any, Any]:
    """A YAML file that holds a dictionary of plain values; a ``form`` may have none."""
    if file_size(path) > _BYTES:
        raise InputError(f"{path}: is larger than {_BYTES >> 10} KiB, which is too large for a file of settings.")
    with guarded(path, what="YAML"):
        text = path.read_bytes().decode("utf-8-sig")
        try:
            found = _Judged(text, path).get_single_data()
        except yaml.YAMLError as error:
            told = " ".join(str(error).split()[:100])
            raise InputError(f"{path}: is not YAML: {shortened(told, most=300, quoted=False)}") from error
    if form and found is None:
        return {}
    if not isinstance(found, dict):
        raise InputError(f"{path}: has no keys; write lines such as 'shadows: 8'.")
    return found


class _Judged(yaml.SafeLoader):
    """PyYAML's safe loader, which counts while it reads: nothing is built that is too large."""

    def __init__(self, text: str, path: Path) -> None:
        super().__init__(text)
        self._path = path
        self._level = 0
        self._entries = 0
        self._sizes: dict[str, int] = {}  # entries below each anchor that is complete

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            if event.anchor in self.anchors and event.anchor not in self._sizes:
                self._refuse(line, f"{shortened(event.anchor)} is used inside itself; write it out.")
            self._count(self._sizes.get(str(event.anchor), 0), line)
            return super().compose_node(parent, index)
        self._level += 1
        if self._level > _YAML_DEPTH:
            self._refuse(line, f"is nested more than {_YAML_DEPTH} levels deep.")
        before = self._entries
        self._count(1, line)
        node = super().compose_node(parent, index)
        self._level -= 1
        if event.anchor is not None:
            self._sizes[event.anchor] = self._entries - before
        if isinstance(node, yaml.MappingNode):
            self._check_keys(node)
        elif isinstance(node, yaml.ScalarNode) and node.tag.endswith(_NUMBERS) and len(node.value) > _YAML_DIGITS:
            self._refuse(line, f"a number has {len(node.value)} digits; the most is {_YAML_DIGITS}.")
        return node

    def _count(self, more: int, line: int) -> None:
        self._entries += more
        if self._entries > _ENTRIES:
            self._refuse(line, f"there are more than {_ENTRIES} entries, aliases written out. Settings have fewer.")

    def _check_keys(self, node: yaml.MappingNode) -> None:
        seen: set[tuple[str, str]] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if (key.tag, key.value) in seen:
                self._refuse(key.start_mark.line + 1, f"{shortened(key.value)} is given twice; give it once.")
            seen.add((key.tag, key.value))

    def _refuse(self, line: int, fault: str) -> NoReturn:
        raise InputError(f"{self._path}: line {line}: {fault}")
