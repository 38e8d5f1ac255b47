"""What workers need, as bytes in memory: a model or a large tensor travels to a worker once, whatever refers to it."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from glasshouse.core.errors import InputError
from glasshouse.core.optional import is_module

try:
    import cloudpickle
except ImportError:  # joblib before 1.6 has its own copy
    from joblib.externals import cloudpickle


_LARGE = 1 << 16  # bytes; what is smaller is sent with whatever refers to it
_KEPT = 8  # runs after which what none of them used is dropped
_NO_GPU = "a model lies on a GPU, and the tasks of the cluster reserve none; pass RayCluster(gpus=1), or --gpus 1"


class NotSentError(InputError):
    """Something cannot be sent to workers; nothing was run."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"compute: the trainer or the data cannot be sent to worker processes ({reason}). Make such objects inside "
            f"the training function, or train in this process."
        )


@dataclass
class _Sent:
    """An object that was sent: it is kept, so that no other object gets its identity."""

    object: Any
    version: int
    key: str
    run: int


def send_by_value(modules: Iterable[ModuleType], folder: Path) -> None:
    """Let what these modules define travel as code, if they are files of a folder: workers cannot import them."""
    for module in modules:
        place = getattr(module, "__file__", None)
        if place is not None and folder.resolve() in Path(place).resolve().parents:
            cloudpickle.register_pickle_by_value(module)


class Parcels:
    """The sender's side: objects become bytes under a key, and ``store`` keeps them where workers can ask for them.

    Modules and tensors of 64 KiB or more are parcels of their own, sent once; without ``apart`` every task gets its own
    copy of them. A tensor on a GPU travels as numbers to the worker's own GPU, but not without ``gpus``.
    """

    def __init__(
        self, store: Callable[[str, bytes], None], drop: Callable[[str], None], *, gpus: bool = True, apart: bool = True
    ) -> None:
        self._store, self._drop = store, drop
        self.gpus, self.apart = gpus, apart
        self._sent: dict[int, _Sent] = {}
        self._keys, self._run = itertools.count(1), 0

    def pack(self, content: Any) -> str:
        """The key of the parcel with this content, for one run; whatever cannot be sent is refused: `NotSentError`."""
        self._run += 1
        for number, sent in list(self._sent.items()):
            if sent.run < self._run - _KEPT:
                self._drop(sent.key)
                del self._sent[number]
        try:
            return self._packed(content)
        except NotSentError:
            raise
        except Exception as error:  # a user's own object may raise anything; the last line says most
            lines = [line.strip(' "') for line in str(error).splitlines()]
            said = next((f": {line}" for line in reversed(lines) if line), "")
            raise NotSentError(f"{type(error).__name__}{said}") from error

    def forget(self, key: str) -> None:
        """Drop a parcel that was packed for one run."""
        with suppress(KeyError):
            self._drop(key)

    def key_of(self, content: Any) -> str:
        """The key of a module or a tensor; it is packed if it was not sent yet, or was written to since."""
        version, sent = _version(content), self._sent.get(id(content))
        if sent is None or sent.version != version:
            if sent is not None:
                self._drop(sent.key)
            sent = self._sent[id(content)] = _Sent(content, version, self._packed(content), self._run)
        sent.run = self._run
        return sent.key

    def _packed(self, content: Any) -> str:
        file = io.BytesIO()
        _Packer(file, self, content).dump(content)
        key = str(next(self._keys))
        self._store(key, file.getvalue())
        return key


class _Packer(cloudpickle.Pickler):  # type: ignore[misc]
    """Code by value, as cloudpickle does, and a key for what is a parcel of its own."""

    def __init__(self, file: io.BytesIO, parcels: Parcels, root: Any) -> None:
        super().__init__(file)
        self._parcels, self._root = parcels, root

    def reducer_override(self, content: Any) -> Any:
        apart = self._parcels.apart and content is not self._root and not is_module(self._root)
        if apart and is_module(content):
            return _fetched, (self._parcels.key_of(content),)
        if (type(content).__module__, type(content).__name__) == ("torch", "Tensor"):  # and of no class derived from it
            if apart and content.nbytes >= _LARGE and content.is_leaf and not content.is_inference():
                return _fetched, (self._parcels.key_of(content),)
            if content.is_cuda:
                if not self._parcels.gpus:
                    raise NotSentError(_NO_GPU)
                return _on_gpu, (content.detach().cpu(), content.requires_grad)
        return super().reducer_override(content)


def _version(content: Any) -> int:
    """How often a tensor was written to, or all tensors of a module together."""
    if not is_module(content):
        return int(content._version)
    return sum(one._version for one in (*content.parameters(), *content.buffers()) if not one.is_inference())


def _on_gpu(content: Any, requires_grad: bool) -> Any:
    """A tensor on the worker's own GPU."""
    return content.cuda().requires_grad_(requires_grad)


class _Shelf:
    """The worker's side: what it was sent, and where it asks for more."""

    def __init__(self) -> None:
        self.source: Callable[[str], bytes] = dict[str, bytes]().__getitem__
        self.held: dict[str, tuple[Any, int]] = {}  # by key: an object, and the last run that used it
        self.parcel = ("", b"")  # of the current run
        self.run = 0


_HERE = _Shelf()


def receive_from(source: Callable[[str], bytes], *, anew: bool = True) -> None:
    """Ask ``source`` for parcels from now on; ``anew`` if its keys have nothing to do with those of the last one."""
    _HERE.source = source
    if anew:
        _HERE.held.clear()
        _HERE.parcel = ("", b"")


def _fetched(key: str) -> Any:
    """A module or a tensor, made once in this process."""
    content = _HERE.held[key][0] if key in _HERE.held else cloudpickle.loads(_HERE.source(key))
    _HERE.held[key] = (content, _HERE.run)
    return content


def open_parcel(key: str) -> Any:
    """The content for one task, made anew from bytes that came once; parcels of their own stay while they are used."""
    if _HERE.parcel[0] != key:
        _HERE.run += 1
        _HERE.held = {one: kept for one, kept in _HERE.held.items() if kept[1] >= _HERE.run - _KEPT}
        _HERE.parcel = (key, _HERE.source(key))
    return cloudpickle.loads(_HERE.parcel[1])
