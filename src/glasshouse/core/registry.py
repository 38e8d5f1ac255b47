"""Things by name: registered with a decorator, found by name, with a hint if the name is misspelt."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from glasshouse.core.errors import InputError, shortened

Thing = TypeVar("Thing")

_MOST = 2000  # names that are compared
_LONGEST = 100  # characters of one


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint at the nearest known name, with a space before it; empty if none is near."""
    # comparing takes the product of both lengths, and what is that long is not a misspelt name
    few = [one for one in itertools.islice(known, _MOST) if len(one) <= _LONGEST]
    near = difflib.get_close_matches(name, few, n=1) if len(name) <= _LONGEST else []
    return f' Did you mean "{near[0]}"?' if near else ""


class Registry(Generic[Thing]):
    """Classes or functions of one kind, by name; ``kind`` is what they are, for errors: ``"an attack"``."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._things: dict[str, Thing] = {}
        self._modules: dict[str, str] = {}  # names that are known before their module is imported

    def add(self, name: str, thing: Thing) -> Thing:
        """Register a thing, and give it back; a second one with the same name replaces the first."""
        self._things[name] = thing
        return thing

    def add_lazy(self, name: str, *, module: str) -> None:
        """Register a name whose thing is added when its module is imported; `find` imports it."""
        self._modules[name] = module

    def names(self) -> list[str]:
        """All names, in the order they were added; those that are not imported yet come last."""
        return [*self._things, *self.lazy()]

    def lazy(self) -> list[str]:
        """Names whose module is not imported yet."""
        return [name for name in self._modules if name not in self._things]

    def find(self, name: str) -> Thing:
        """The thing with this name; an unknown name is refused with the nearest name and all known ones."""
        given: Any = name  # a caller may pass anything
        if not isinstance(given, str):
            raise InputError(f"{shortened(given)} is not the name of {self.kind}. Known: {', '.join(self.names())}.")
        if name in self.lazy():
            importlib.import_module(self._modules[name])
        if name not in self._things:
            hint = did_you_mean(name, self.names())
            name = shortened(name, quoted=False)
            raise InputError(f'"{name}" is not {self.kind}.{hint} Known: {", ".join(self.names())}.')
        return self._things[name]

    def parameters(self, name: str) -> list[str]:
        """The fields of a registered dataclass, without those that it learns itself: their names end in ``_``."""
        fields = dataclasses.fields(self.find(name))  # type: ignore[arg-type]
        return [field.name for field in fields if not field.name.endswith("_")]

    def create(self, name: str, *, shared: Mapping[str, Any] | None = None, **parameters: Any) -> Any:
        """An object of a registered dataclass; of ``shared`` it gets the parameters that it has, such as a prior."""
        made: Callable[..., Any] = self.find(name)  # type: ignore[assignment]
        known = self.parameters(name)
        unknown = sorted(set(parameters) - set(known))
        if unknown:
            raise InputError(f"{name}: {unknown[0]!r} is not a parameter of it. Known: {', '.join(known) or 'none'}.")
        return made(**({key: value for key, value in (shared or {}).items() if key in known} | parameters))
