"""Functions, classes and modules as plain data: what they do, without their place in a file or their layout."""

from __future__ import annotations

import dis
import enum
import hashlib
import importlib
import sys
import types
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from glasshouse.pool.libraries import library_of

__all__ = ["Walk", "class_tree", "function_tree", "module_tree", "named"]

Walk = Callable[[Any, str], Any]  # a value and its path to a tree of plain data

_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_MACHINERY = (  # what Python itself puts into a class
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
)


def named(thing: Any) -> str | None:
    """A function, class or other object of a library by its name and version; None if it is not from a library.

    Example:
        >>> named(dict)[:19]
        'builtins.dict (pyth'
    """
    module = getattr(thing, "__module__", None)
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None)
    library = library_of(module) if isinstance(module, str) else None
    return f"{module}.{name} ({library})" if library and isinstance(name, str) else None


def function_tree(function: FunctionType, walk: Walk, path: str) -> dict[str, Any]:
    """A function: its code, its defaults, its closure, and the globals that it reads.

    A library's function is described by its name instead of its code. Its closure is still described, since a decorator
    holds the function that it decorates in its closure.
    """
    code = function.__code__
    home = function.__globals__.get("__name__")
    tree: dict[str, Any] = {"(function)": code.co_qualname}
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    if cells:
        tree["closure"] = {name: _cell(cell, walk, f"{path}.closure.{name}") for name, cell in sorted(cells.items())}
    if library := library_of(home):
        return tree | {"(function)": f"{home}.{code.co_qualname} ({library})"}
    if defaults := _defaults(function):
        tree["defaults"] = {name: walk(value, f"{path}.defaults.{name}") for name, value in defaults.items()}
    attributes = {name: value for name, value in sorted(vars(function).items()) if name != "__wrapped__"}
    tree |= {name: walk(value, f"{path}.{name}") for name, value in attributes.items()}
    used = _used(function)
    if used:
        tree["globals"] = {
            name: module_tree(value, _names(code), walk, f"{path}.globals.{name}")
            if isinstance(value, ModuleType)
            else walk(value, f"{path}.globals.{name}")
            for name, value in used.items()
        }
    python = f"{sys.version_info.major}.{sys.version_info.minor}"  # another version compiles to other code
    return tree | {"code": {"python": python, **_code_tree(code)}}


def class_tree(kind: type, walk: Walk, path: str) -> dict[str, Any]:
    """A class of the user: its bases, methods and values."""
    tree: dict[str, Any] = {"(class)": kind.__qualname__}
    tree["(bases)"] = [walk(base, f"{path}.(bases)[{index}]") for index, base in enumerate(kind.__bases__)]
    if issubclass(kind, enum.Enum):
        members: dict[str, Any] = {name: member.value for name, member in kind.__members__.items()}
        own = {name: value for name, value in vars(kind).items() if isinstance(value, FunctionType)}
    else:
        members, own = {}, dict(vars(kind))
    for name, value in sorted((members | own).items()):
        hidden = name.startswith("__") and name.endswith("__") and not isinstance(value, FunctionType)
        if hidden or isinstance(value, _MACHINERY) or name in ("__repr__", "__str__", "_abc_impl"):
            continue
        tree[name] = walk(value, f"{path}.{name}")
    return tree


def module_tree(module: ModuleType, names: set[str], walk: Walk, path: str) -> Any:
    """A module: a library's by its name, the user's by those of its parts that the code around it may use."""
    if library := library_of(module.__name__):
        return f"{module.__name__} ({library})"
    tree: dict[str, Any] = {"(module)": module.__name__}
    for name in sorted(names & vars(module).keys()):
        value = vars(module)[name]
        if isinstance(value, ModuleType):
            inner = names - {name}  # so that the walk ends if a module holds itself
            tree[name] = module_tree(value, inner, walk, f"{path}.{name}")
        else:
            tree[name] = walk(value, f"{path}.{name}")
    return tree


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


def _names(code: CodeType) -> set[str]:
    return {name for one in _codes(code) for name in one.co_names}


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
    """Code as Python runs it: no line numbers, no comments, no docstring.

    Constants are numbered again, in the order of their use, since a docstring takes the first number and shifts all
    others. A changed constant then changes nothing else.
    """
    constants: dict[str, Any] = {}
    numbers: dict[str, int] = {}
    steps = []
    for step in dis.get_instructions(code):
        argument = step.argval if step.arg is not None else None
        if step.opcode in dis.hasconst:
            tree = _code_tree(argument) if isinstance(argument, CodeType) else _constant(argument)
            constants.setdefault(repr(tree), tree)
            argument = numbers.setdefault(repr(tree), len(numbers))
        steps.append((step.opname, argument))
    parts = (
        steps,
        code.co_exceptiontable.hex(),
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags),
    )
    return {
        "constants": list(constants.values()),
        "names": list(code.co_names),
        "steps": hashlib.sha256(repr(parts).encode()).hexdigest()[:16],
    }


def _constant(value: Any) -> Any:
    """A constant as text that is the same in every process; sets are sorted, since they have no order."""
    if isinstance(value, frozenset):
        return "frozenset " + ", ".join(sorted(map(str, map(_constant, value))))
    if isinstance(value, tuple):
        return [_constant(one) for one in value]
    return repr(value)
