"""A trainer down to its values, as plain data: a later process must find the same to use the same models."""

from __future__ import annotations

import copyreg
import functools
import hashlib
import json
import types
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from glasshouse.errors import InputError
from glasshouse.pool.code import class_tree, function_tree, module_tree, named
from glasshouse.training.versioned import Versioned

__all__ = ["describe", "differences", "digest_of"]

_LONG = 64  # a longer list or dictionary is kept as a digest
_BUILTIN = (types.BuiltinFunctionType, types.MethodWrapperType)
_DESCRIPTORS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)


def describe(trainer: Any) -> Any:
    """A trainer as a tree of dictionaries, lists and values: the same in every process, different after any change.

    Functions are described by their code, defaults, closures and the globals that they read, and so on for everything
    that these hold; arrays and tensors by digests; what a library defines by its name and version.

    Example:
        >>> import functools
        >>> describe(functools.partial(torch.optim.SGD, lr=0.1))["keywords"]
        {'lr': 0.1}
    """
    try:
        return _Walker()(trainer, "trainer")
    except _UndescribableError as error:
        raise InputError(
            f"{error}, which cannot be described, so a pool could not notice a change. Give the trainer your own "
            f"version, glasshouse.training.Versioned(trainer, version='1'), and another version whenever you change "
            f"it; or leave out the pool."
        ) from None


def digest_of(tree: Any) -> str:
    """A short hash of a description.

    Example:
        >>> digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
        True
    """
    return hashlib.sha256(_text(tree).encode()).hexdigest()[:16]


def differences(before: Any, now: Any, path: str = "trainer") -> list[tuple[str, Any, Any]]:
    """Where two descriptions differ: the path, the value before and the value now; None if there is no value.

    Example:
        >>> differences({"lr": 0.1, "epochs": 3}, {"lr": 0.01, "epochs": 3})
        [('trainer.lr', 0.1, 0.01)]
    """
    if _text(before) == _text(now):
        return []
    if isinstance(before, dict) and isinstance(now, dict):
        found = []
        for name in sorted(before.keys() | now.keys()):
            old, new = before.get(name), now.get(name)
            if (name in before) != (name in now):  # also where the one value is None
                found.append((f"{path}.{name}", old, new))
            else:
                found += differences(old, new, f"{path}.{name}")
        return found
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        pairs = enumerate(zip(before, now, strict=True))
        return [one for index, (old, new) in pairs for one in differences(old, new, f"{path}[{index}]")]
    return [(path, before, now)]


class _UndescribableError(Exception):
    """Something that cannot be described as plain data, such as an open file."""


class _Walker:
    """One walk through everything that a value holds."""

    def __init__(self) -> None:
        self.seen: dict[int, str] = {}  # the path of each object that was visited, by its address
        self.kept: list[Any] = []  # those objects, so that Python does not use an address again

    def __call__(self, value: Any, path: str) -> Any:
        plain = _plain(value)
        if plain is not _NOT_PLAIN:
            return plain
        if isinstance(value, tuple | frozenset) and type(value) in (tuple, frozenset):  # equal ones may be shared
            return self._inside(value, path)
        if id(value) in self.seen:
            return {"(same as)": self.seen[id(value)]}
        self.seen[id(value)] = path
        self.kept.append(value)
        try:
            return self._inside(value, path)
        except RecursionError:
            raise _UndescribableError(f"{path}: is nested too deeply") from None

    def _inside(self, value: Any, path: str) -> Any:
        match value:
            case Versioned():
                return {"(version)": value.version}
            case types.FunctionType():
                return function_tree(value, self, path)
            case types.MethodType():
                return {"(method)": self(value.__func__, f"{path}.(method)"), "of": self(value.__self__, f"{path}.of")}
            case functools.partial():
                made = {"(partial)": self(value.func, f"{path}.(partial)"), "args": self(value.args, f"{path}.args")}
                return made | {"keywords": self(value.keywords, f"{path}.keywords")}
            case types.ModuleType():
                return module_tree(value, set(vars(value)), self, path)
            case type():
                return named(value) or class_tree(value, self, path)
            case staticmethod() | classmethod():
                return {f"({type(value).__name__})": self(value.__func__, path)}
            case property():
                parts = {"get": value.fget, "set": value.fset, "delete": value.fdel}
                return {f"({name})": self(part, f"{path}.({name})") for name, part in parts.items() if part}
            case functools.cached_property():
                return {"(cached)": self(value.func, path)}
            case functools._lru_cache_wrapper():
                return {"(cached)": self(value.__wrapped__, path)}
            case list() | tuple() if type(value) in (list, tuple, torch.Size):
                return self._list(value, path)
            case set() | frozenset() if type(value) in (set, frozenset):
                return {"(set)": _shortened(sorted((self(one, path) for one in value), key=_text))}
            case dict() | types.MappingProxyType() if type(value) in (dict, types.MappingProxyType):
                return self._mapping(value, path)
        return self._object(value, path)

    def _list(self, values: Iterable[Any], path: str) -> Any:
        return _shortened([self(one, f"{path}[{index}]") for index, one in enumerate(values)])

    def _mapping(self, values: Mapping[Any, Any], path: str) -> Any:
        if all(isinstance(name, str) for name in values):
            tree = {name: self(values[name], f"{path}.{name}") for name in sorted(values)}
            return tree if len(tree) <= _LONG else {"(entries)": len(tree), "(sha256)": digest_of(tree)}
        pairs = [[self(name, path), self(value, f"{path}[{name!r}]")] for name, value in values.items()]
        return {"(entries)": _shortened(sorted(pairs, key=_text))}

    def _object(self, value: Any, path: str) -> Any:
        """An instance: its type and its state as Python would copy it; fails if the state cannot be read."""
        kind = type(value)
        if isinstance(value, _BUILTIN) and not isinstance(value.__self__, types.ModuleType | types.NoneType):
            return {"(method)": value.__name__, "of": self(value.__self__, f"{path}.of")}
        if isinstance(value, _DESCRIPTORS):
            return {"(method)": value.__name__, "of": self(value.__objclass__, f"{path}.of")}
        if callable(value) and named(kind) and (name := named(value)):
            return name
        tree: dict[str, Any] = {"(type)": self(kind, f"{path}.(type)")}
        make, arguments, state, items, pairs = _reduced(value, path)
        if isinstance(make, str):
            return tree | {"(name)": f"{getattr(value, '__module__', '')}.{make}"}
        if arguments and arguments[0] is kind:
            arguments = arguments[1:]
        elif make is not kind:
            tree["(made by)"] = self(make, f"{path}.(made by)")
        if arguments:
            tree["(arguments)"] = self(arguments, path)
        own = vars(value) if hasattr(value, "__dict__") and _may_hide(kind) else {}
        for part in (own, *(state if isinstance(state, tuple) else (state,))):
            if isinstance(part, dict) and all(isinstance(name, str) for name in part):
                tree |= {name: self(part[name], f"{path}.{name}") for name in sorted(part) if name not in tree}
            elif part is not None:
                tree["(state)"] = self(part, path)
        if items is not None:
            tree["(items)"] = self._list(items, path)
        if pairs is not None:
            tree["(entries)"] = self._mapping(dict(pairs), path)
        return tree


def _may_hide(kind: type) -> bool:
    """Whether the user's code decides what is copied of an object, and so may leave out what affects the training."""
    mine = [vars(base) for base in kind.__mro__ if named(base) is None]
    return any(name in one for one in mine for name in ("__getstate__", "__reduce__", "__reduce_ex__"))


def _reduced(value: Any, path: str) -> tuple[Any, tuple[Any, ...], Any, Any, Any]:
    """How Python would copy an object: the function that makes it, its arguments, its state, and its items."""
    try:
        reduce = copyreg.dispatch_table.get(type(value))
        found = reduce(value) if reduce else value.__reduce_ex__(4)
    except Exception:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise _UndescribableError(f"{path}: holds an object of type {kind}") from None
    if isinstance(found, str):
        return found, (), None, None, None
    make, arguments, *rest = found
    state, items, pairs = (*rest, None, None, None)[:3]
    return make, arguments, state, items, pairs


_NOT_PLAIN = object()


def _plain(value: Any) -> Any:
    """Numbers, text and arrays, which hold no other objects; arrays and long text by their digests."""
    if value is None or type(value) in (bool, int):
        return value
    if value is Ellipsis or value is NotImplemented:
        return {"(constant)": repr(value)}
    if type(value) is float:
        return value if np.isfinite(value) else {"(float)": repr(value)}
    if type(value) in (str, bytes):
        if len(value) <= 1000:
            return value if isinstance(value, str) else {"(bytes)": repr(value)}
        content = value.encode() if isinstance(value, str) else value
        return {f"({type(value).__name__})": len(value), "(sha256)": hashlib.sha256(content).hexdigest()[:16]}
    if isinstance(value, torch.Tensor) and not value.is_sparse:
        kept = value.detach().cpu()
        # numpy does not have bfloat16
        exact = kept.float() if kept.is_floating_point() and kept.element_size() < 4 else kept
        return _array(np.asarray(exact), str(value.dtype))
    if isinstance(value, torch.Generator):
        return {"(generator)": _array(value.get_state().numpy(), "state")}
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        return _array(np.asarray(value), f"{type(value).__module__}.{value.dtype}")
    if isinstance(value, np.dtype):
        return {"(dtype)": str(value)}
    return _NOT_PLAIN


def _array(values: np.ndarray, kind: str) -> Any:
    if values.size <= 4:
        return {"(array)": f"{kind} {list(values.shape)}", "values": repr(values.tolist())}
    content = np.ascontiguousarray(values).tobytes()
    return {"(array)": f"{kind} {list(values.shape)}", "(sha256)": hashlib.sha256(content).hexdigest()[:16]}


def _shortened(trees: list[Any]) -> Any:
    return trees if len(trees) <= _LONG else {"(items)": len(trees), "(sha256)": digest_of(trees)}


def _text(tree: Any) -> str:
    return json.dumps(tree, sort_keys=True, ensure_ascii=False)
