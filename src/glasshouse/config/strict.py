"""Checked YAML: unknown keys and wrong types are faults, and all faults are reported at once."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Any, TypeVar

import pydantic

from glasshouse.errors import InputError, shortened
from glasshouse.reading import guarded, read_settings
from glasshouse.registry import did_you_mean

__all__ = ["Share", "Strict", "faults_of", "read_yaml"]


_SHOWN = 50  # faults of one file

Share = Annotated[float, pydantic.Field(gt=0, lt=1)]


class Strict(pydantic.BaseModel):
    """Base of every section: no unknown keys, no silent conversion, nothing changed after reading, no ``.inf``."""

    model_config = pydantic.ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


Section = TypeVar("Section", bound=Strict)


def read_yaml(path: Path, section: type[Section]) -> Section:
    """A YAML file as a checked section; an `InputError` names the file and every fault in it."""
    content = read_settings(path)
    with guarded(path, what="a file of settings"):
        try:
            return section.model_validate(content)
        except pydantic.ValidationError as error:
            raise InputError(*[f"{path}: {fault}" for fault in faults_of(error, section)]) from error


def faults_of(error: pydantic.ValidationError, section: type[Strict]) -> list[str]:
    """One line per fault: where it is, what is wrong, what would be right."""
    found = error.errors()
    more = len(found) - _SHOWN
    return [*(_fault(one, section) for one in found[:_SHOWN]), *([f"and {more} more faults."] if more > 0 else [])]


def _fault(one: Any, section: type[Strict]) -> str:
    # the location also holds the tag of a tagged section, which is not a key of the file
    location = [part for part in one["loc"] if not (isinstance(part, str) and part in _tags(section))]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{_cut(part)}" for part in location).lstrip(".")
    match one["type"]:
        case "extra_forbidden":
            elsewhere = str(location[-1]) in _keys(section)
            hint = " Another section has it." if elsewhere else did_you_mean(str(location[-1]), _keys(section))
            return f"{place}: is not a key here.{hint}"
        case "missing":
            return f"{place}: is missing."
        case "value_error":
            return f"{place}: {one['ctx']['error']}" if place else str(one["ctx"]["error"])
        case "union_tag_invalid":
            return f"{place}: {shortened(one['ctx']['tag'])} is not known. Known: {one['ctx']['expected_tags']}."
        case "union_tag_not_found":
            return f"{place}: needs {one['ctx']['discriminator']}, which decides what the other keys mean."
        case "model_attributes_type" | "model_type":
            return f"{place}: needs keys of its own, such as {place}: {{…: …}}, but is {shortened(one['input'])}."
        case "string_type" if isinstance(one["input"], bool | int | float):
            return f"{place}: YAML reads {shortened(one['input'])} as a number or as yes and no; write it in quotes."
        case _:
            return f"{place}: {one['msg']}, but is {shortened(one['input'])}."


def _cut(part: object) -> str:
    return shortened(str(part), quoted=False)


@functools.cache
def _tags(section: type[Strict]) -> set[str]:
    """The values that decide which of several sections is meant, such as the kinds of trainers."""
    schema = section.model_json_schema()
    fields = [
        field for part in (schema, *schema.get("$defs", {}).values()) for field in part.get("properties", {}).values()
    ]
    choices = [choice for field in fields for choice in (field, *field.get("anyOf", []))]
    return {tag for choice in choices for tag in choice.get("discriminator", {}).get("mapping", {})}


@functools.cache
def _keys(section: type[Strict]) -> set[str]:
    schema = section.model_json_schema()
    nested = [definition.get("properties", {}) for definition in schema.get("$defs", {}).values()]
    return {key for properties in [schema.get("properties", {}), *nested] for key in properties}
