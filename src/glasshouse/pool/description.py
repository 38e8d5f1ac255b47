"""A trainer down to its values, as plain data: a later process must find the same to use the same models."""

from __future__ import annotations

import copyreg
import dis
import enum
import functools
import hashlib
import importlib
import json
import site
import sys
import sysconfig
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from glasshouse.core.errors import InputError
from glasshouse.core.optional import installed_version, is_made_by, is_tensor
from glasshouse.training.trainer import Versioned

_PYTHON = f"python {sys.version_info.major}.{sys.version_info.minor}"
Walk = Callable[[Any, str], Any]  # a value and its path to a tree of plain data
_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)
_MACHINERY = (*_METHODS, types.GetSetDescriptorType, types.MemberDescriptorType)  # what Python itself puts into a class
_LONG = 64  # a longer list or dictionary is kept as a digest
_BUILTIN = (types.BuiltinFunctionType, types.MethodWrapperType)
_NOT_PLAIN = object()
_OF_THIS_PROCESS = {"_original_object_hash"}  # Python's hash of text, which transformers keep in a GenerationConfig


def library_of(module: str | None) -> str | None:
    """The library of a module, with its version, if it is where Python installs packages; None for the user's own."""
    top = (module or "").partition(".")[0]
    if top in ("", "__main__"):
        return None
    if top == "builtins" or top in sys.stdlib_module_names:
        return _PYTHON
    found = sys.modules.get(top)
    places = [getattr(found, "__file__", None), *getattr(found, "__path__", ())]
    place = next((Path(one).resolve() for one in places if one), None)
    if top != "glasshouse" and (place is None or not any(place.is_relative_to(root) for root in _roots())):
        return None
    return f"{top} {_version(top, found)}"


@functools.cache
def _roots() -> tuple[Path, ...]:
    named = sysconfig.get_paths()
    places = [named[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    places += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple(Path(place).resolve() for place in places)


@functools.cache
def _version(top: str, module: ModuleType | None) -> str:
    """Without the part after a plus, which tells how a library was built and not what it does."""
    told = getattr(module, "__version__", None)
    if not isinstance(told, str):
        told = installed_version(top) or "of unknown version"
    return told.partition("+")[0]


def named(thing: Any) -> str | None:
    """A function, class or other object of a library by its name and version; None if it is not from a library."""
    module = getattr(thing, "__module__", None)
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None)
    library = library_of(module) if isinstance(module, str) else None
    return f"{module}.{name} ({library})" if library and isinstance(name, str) else None


def function_tree(function: FunctionType, walk: Walk, path: str) -> dict[str, Any]:
    """A function: its code, defaults and closure, and the globals that it reads; of a library's, name and closure."""
    code = function.__code__
    home = function.__globals__.get("__name__")
    tree: dict[str, Any] = {"(function)": code.co_qualname}
    if cells := dict(zip(code.co_freevars, function.__closure__ or (), strict=True)):
        tree["closure"] = {name: _cell(cell, walk, f"{path}.closure.{name}") for name, cell in sorted(cells.items())}
    if library := library_of(home):
        return tree | {"(function)": f"{home}.{code.co_qualname} ({library})"}
    if defaults := _defaults(function):
        tree["defaults"] = _each(defaults, walk, f"{path}.defaults")
    tree |= _each({name: value for name, value in sorted(vars(function).items()) if name != "__wrapped__"}, walk, path)
    if used := _used(function):
        names = {name for one in _codes(code) for name in one.co_names}
        tree["globals"] = {name: _part(used[name], names, walk, f"{path}.globals.{name}") for name in used}
    # another version of Python compiles to other code
    return tree | {"code": {"python": _PYTHON.removeprefix("python "), **_code_tree(code)}}


def class_tree(kind: type, walk: Walk, path: str) -> dict[str, Any]:
    """A class of the user: its bases, methods and values."""
    bases = [walk(base, f"{path}.(bases)[{index}]") for index, base in enumerate(kind.__bases__)]
    own = dict(vars(kind))
    if issubclass(kind, enum.Enum):
        methods = {name: value for name, value in own.items() if isinstance(value, FunctionType)}
        own = {name: member.value for name, member in kind.__members__.items()} | methods
    shown = {
        name: value
        for name, value in sorted(own.items())
        if isinstance(value, FunctionType) or not (name.startswith("__") and name.endswith("__"))
        if not isinstance(value, _MACHINERY) and name not in ("__repr__", "__str__", "_abc_impl")
    }
    return {"(class)": kind.__qualname__, "(bases)": bases} | _each(shown, walk, path)


def _part(value: Any, names: set[str], walk: Walk, path: str) -> Any:
    """What code may use: of a module, a library's by its name and the user's by those of its parts that it names."""
    if not isinstance(value, ModuleType):
        return walk(value, path)
    if library := library_of(value.__name__):
        return f"{value.__name__} ({library})"
    inside = vars(value)
    used = sorted(names & inside.keys())
    # each name once on a way down, so that the walk ends if a module holds itself
    parts = {name: _part(inside[name], names - {name}, walk, f"{path}.{name}") for name in used}
    return {"(module)": value.__name__} | parts


def _each(values: Mapping[str, Any], walk: Walk, path: str) -> dict[str, Any]:
    """Values by name, each described at its own path."""
    return {name: walk(value, f"{path}.{name}") for name, value in values.items()}


def _used(function: FunctionType) -> dict[str, Any]:
    """The globals that a function reads and the modules that it imports, by name; builtins are left out."""
    found: dict[str, Any] = {}
    inside = function.__globals__
    for code in _codes(function.__code__):
        for step in dis.get_instructions(code):
            if step.opname in _GLOBAL and step.argval in inside:
                found[step.argval] = inside[step.argval]
            elif step.opname == "IMPORT_NAME":
                found |= _imported(str(step.argval), inside)
    return dict(sorted(found.items()))


def _imported(name: str, inside: dict[str, Any]) -> dict[str, ModuleType]:
    """A module that a function imports when it runs; a missing one is left out, the function itself will fail."""
    package = inside.get("__package__")
    for place in (name, f"{package}.{name}" if package and name else package):
        try:
            if place:
                return {place: importlib.import_module(place)}
        except ImportError:
            continue
    return {}


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _cell(cell: Any, walk: Walk, path: str) -> Any:
    try:
        value = cell.cell_contents
    except ValueError:  # a name that is not bound yet
        return "(nothing yet)"
    return walk(value, path)


def _defaults(function: FunctionType) -> dict[str, Any]:
    """Default values by the names of their arguments."""
    code = function.__code__
    given = function.__defaults__ or ()
    first = code.co_argcount - len(given)
    return dict(zip(code.co_varnames[first : code.co_argcount], given, strict=True)) | (function.__kwdefaults__ or {})


def _code_tree(code: CodeType) -> dict[str, Any]:
    """Code as Python runs it: no line numbers, comments or docstring, which would shift the numbers of constants."""
    constants: dict[str, Any] = {}
    steps = []
    for step in dis.get_instructions(code):
        argument = step.argval if step.arg is not None else None
        if step.opcode in dis.hasconst:
            tree = _code_tree(argument) if isinstance(argument, CodeType) else _constant(argument)
            constants.setdefault(repr(tree), tree)
            argument = list(constants).index(repr(tree))
        steps.append((step.opname, argument))
    names = (code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    parts = (steps, code.co_exceptiontable.hex(), *names, counts)
    return {"constants": list(constants.values()), "names": list(code.co_names), "steps": _digest(repr(parts).encode())}


def _constant(value: Any) -> Any:
    """A constant as text that is the same in every process; sets are sorted, since they have no order."""
    if isinstance(value, frozenset):
        return "frozenset " + ", ".join(sorted(map(str, map(_constant, value))))
    if isinstance(value, tuple):
        return [_constant(one) for one in value]
    return repr(value)


def describe(trainer: Any) -> Any:
    """A trainer as a tree of dictionaries, lists and values: the same in every process, different after any change."""
    try:
        return _Walker()(trainer, "trainer")
    except _UndescribableError as error:
        raise InputError(
            f"{error}, which cannot be described, so a pool could not notice a change. Give the trainer your own "
            f"version, glasshouse.training.Versioned(trainer, version='1'), and another version whenever you change "
            f"it; or leave out the pool."
        ) from None


def digest_of(tree: Any) -> str:
    """A short hash of a description."""
    return _digest(_text(tree).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def differences(before: Any, now: Any, path: str = "trainer") -> list[tuple[str, Any, Any]]:
    """Where two descriptions differ: the path, the value before and the value now; None if there is no value."""
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
        # the path of each object that was visited, by its address; and the object, so that no other gets its address
        self.seen: dict[int, tuple[str, Any]] = {}

    def __call__(self, value: Any, path: str) -> Any:
        plain = _plain(value)
        if plain is not _NOT_PLAIN:
            return plain
        if isinstance(value, tuple | frozenset) and type(value) in (tuple, frozenset):  # equal ones may be shared
            return self._inside(value, path)
        if id(value) in self.seen:
            return {"(same as)": self.seen[id(value)][0]}
        self.seen[id(value)] = (path, value)
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
                return _each({"(method)": value.__func__, "of": value.__self__}, self, path)
            case functools.partial():
                return _each({"(partial)": value.func, "args": value.args, "keywords": value.keywords}, self, path)
            case types.ModuleType():
                return _part(value, set(vars(value)), self, path)
            case type():
                return named(value) or class_tree(value, self, path)
            case staticmethod() | classmethod():
                return {f"({type(value).__name__})": self(value.__func__, path)}
            case property():
                parts = {"(get)": value.fget, "(set)": value.fset, "(delete)": value.fdel}
                return _each({name: part for name, part in parts.items() if part}, self, path)
            case functools.cached_property():
                return {"(cached)": self(value.func, path)}
            case functools._lru_cache_wrapper():
                return {"(cached)": self(value.__wrapped__, path)}
            case list() | tuple() if type(value) in (list, tuple) or is_made_by(value, "torch", "Size"):
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
            tree = _each(dict(sorted(values.items())), self, path)
            return tree if len(tree) <= _LONG else {"(entries)": len(tree), "(sha256)": digest_of(tree)}
        pairs = [[self(name, path), self(value, f"{path}[{name!r}]")] for name, value in values.items()]
        return {"(entries)": _shortened(sorted(pairs, key=_text))}

    def _object(self, value: Any, path: str) -> Any:
        """An instance: its type and its state as Python would copy it; fails if the state cannot be read."""
        kind = type(value)
        if isinstance(value, _BUILTIN) and not isinstance(value.__self__, types.ModuleType | types.NoneType):
            return {"(method)": value.__name__, "of": self(value.__self__, f"{path}.of")}
        if isinstance(value, (*_METHODS, types.ClassMethodDescriptorType)):
            return {"(method)": value.__name__, "of": self(value.__objclass__, f"{path}.of")}
        if callable(value) and named(kind) and (name := named(value)):
            return name
        tree: dict[str, Any] = {"(type)": self(kind, f"{path}.(type)")}
        copied = _reduced(value, path)
        if isinstance(copied, str):
            return tree | {"(name)": f"{getattr(value, '__module__', '')}.{copied}"}
        make, arguments, state, items, pairs = (*copied, None, None, None)[:5]
        if arguments and arguments[0] is kind:
            arguments = arguments[1:]
        elif make is not kind:
            tree["(made by)"] = self(make, f"{path}.(made by)")
        if arguments:
            tree["(arguments)"] = self(arguments, path)
        # where the user's code decides what is copied, it may leave out what affects the training
        mine = [vars(base) for base in kind.__mro__ if named(base) is None]
        hides = any(name in one for one in mine for name in ("__getstate__", "__reduce__", "__reduce_ex__"))
        own = vars(value) if hides and hasattr(value, "__dict__") else {}
        for part in (own, *(state if isinstance(state, tuple) else (state,))):
            if isinstance(part, dict) and all(isinstance(name, str) for name in part):
                names = sorted(part.keys() - tree.keys() - _OF_THIS_PROCESS)
                tree |= _each({name: part[name] for name in names}, self, path)
            elif part is not None:
                tree["(state)"] = self(part, path)
        if items is not None:
            tree["(items)"] = self._list(items, path)
        if pairs is not None:
            tree["(entries)"] = self._mapping(dict(pairs), path)
        return tree


def _reduced(value: Any, path: str) -> Any:
    """How Python would copy an object: its name, or the function that makes it, arguments, state, items and entries."""
    try:
        reduce = copyreg.dispatch_table.get(type(value))
        return reduce(value) if reduce else value.__reduce_ex__(4)
    except Exception:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise _UndescribableError(f"{path}: holds an object of type {kind}") from None


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
        return {f"({type(value).__name__})": len(value), "(sha256)": _digest(content)}
    if is_tensor(value) and not value.is_sparse:
        kept = value.detach().cpu()
        # numpy does not have bfloat16
        exact = kept.float() if kept.is_floating_point() and kept.element_size() < 4 else kept
        return _array(np.asarray(exact), str(value.dtype))
    if is_made_by(value, "torch", "Generator"):
        return {"(generator)": _array(value.get_state().numpy(), "state")}
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        return _array(np.asarray(value), f"{type(value).__module__}.{value.dtype}")
    if isinstance(value, np.dtype):
        return {"(dtype)": str(value)}
    return _NOT_PLAIN


def _array(values: np.ndarray, kind: str) -> Any:
    if values.size <= 4:
        return {"(array)": f"{kind} {list(values.shape)}", "values": repr(values.tolist())}
    return {"(array)": f"{kind} {list(values.shape)}", "(sha256)": _digest(np.ascontiguousarray(values).tobytes())}


def _shortened(trees: list[Any]) -> Any:
    return trees if len(trees) <= _LONG else {"(items)": len(trees), "(sha256)": digest_of(trees)}


def _text(tree: Any) -> str:
    return json.dumps(tree, sort_keys=True, ensure_ascii=False)
