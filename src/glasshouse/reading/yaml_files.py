"""The door to YAML: the safe loader, with every key once and a limit on size, nesting and what aliases expand to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from glasshouse.errors import InputError, shortened
from glasshouse.reading.doors import file_size, guarded

__all__ = ["read_settings"]

_BYTES = 256 * 2**10
_ENTRIES = 10_000
_DEPTH = 50
_DIGITS = 100  # of a number


def read_settings(path: Path) -> dict[Any, Any]:
    """A YAML file that holds a dictionary of plain values.

    Example:
        >>> read_settings(Path("no/such.yaml"))
        Traceback (most recent call last):
        glasshouse.errors.InputError: no/such.yaml: there is no such file.
    """
    if file_size(path) > _BYTES:
        raise InputError(f"{path}: is larger than {_BYTES >> 10} KiB, which is too large for a file of settings.")
    with guarded(path, what="YAML"):
        text = path.read_bytes().decode("utf-8-sig")
        try:
            found = _parsed(text)
        except yaml.YAMLError as error:
            told = " ".join(str(error).split()[:100])
            raise InputError(f"{path}: is not YAML: {shortened(told, most=300, quoted=False)}") from error
        except _RefusedError as error:
            raise InputError(f"{path}: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"{path}: has no keys; write lines such as 'shadows: 8'.")
    return found


class _RefusedError(Exception):
    """What may be YAML, and is refused."""


class _Judged(yaml.SafeLoader):
    """PyYAML's safe loader, which counts while it reads: nothing is built that is too large."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._level = 0
        self._entries = 0
        self._sizes: dict[str, int] = {}  # entries below each anchor that is complete

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            if event.anchor in self.anchors and event.anchor not in self._sizes:
                raise _RefusedError(f"line {line}: {shortened(event.anchor)} is used inside itself; write it out.")
            self._count(self._sizes.get(str(event.anchor), 0), line)
            return super().compose_node(parent, index)
        self._level += 1
        if self._level > _DEPTH:
            raise _RefusedError(f"line {line}: is nested more than {_DEPTH} levels deep.")
        before = self._entries
        self._count(1, line)
        node = super().compose_node(parent, index)
        self._level -= 1
        if event.anchor is not None:
            self._sizes[event.anchor] = self._entries - before
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
        elif isinstance(node, yaml.ScalarNode) and node.tag.endswith((":int", ":float")) and len(node.value) > _DIGITS:
            raise _RefusedError(f"line {line}: a number has {len(node.value)} digits; the most is {_DIGITS}.")
        return node

    def _count(self, more: int, line: int) -> None:
        self._entries += more
        if self._entries > _ENTRIES:
            raise _RefusedError(
                f"line {line}: there are more than {_ENTRIES} entries, aliases written out. Settings have fewer."
            )


def _check_keys(node: yaml.MappingNode) -> None:
    seen: set[tuple[str, str]] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        if (key.tag, key.value) in seen:
            line = key.start_mark.line + 1
            raise _RefusedError(f"line {line}: {shortened(key.value)} is given twice; give it once.")
        seen.add((key.tag, key.value))


def _parsed(text: str) -> Any:
    loader = _Judged(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()
