"""Checked YAML: unknown keys and wrong types are faults, and all faults are reported at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeVar

import pydantic
import yaml

from glasshouse.errors import InputError
from glasshouse.registry import did_you_mean

__all__ = ["Share", "Strict", "faults_of", "read_yaml"]


Share = Annotated[float, pydantic.Field(gt=0, lt=1)]


class Strict(pydantic.BaseModel):
    """Base of every section: no unknown keys, no silent conversion, nothing changed after reading."""

    model_config = pydantic.ConfigDict(extra="forbid", strict=True, frozen=True)


Section = TypeVar("Section", bound=Strict)


def read_yaml(path: Path, section: type[Section]) -> Section:
    """A YAML file as a checked section; an `InputError` names the file and every fault in it."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: has no keys; write lines such as 'shadows: 8'.")
    try:
        return section.model_validate(content)
    except pydantic.ValidationError as error:
        raise InputError(*[f"{path}: {fault}" for fault in faults_of(error, section)]) from error


def faults_of(error: pydantic.ValidationError, section: type[Strict]) -> list[str]:
    """One line per fault: where it is, what is wrong, what would be right."""
    return [_fault(one, section) for one in error.errors()]


def _fault(one: Any, section: type[Strict]) -> str:
    # the location also holds the tag of a tagged section, which is not a key of the file
    location = [part for part in one["loc"] if not (isinstance(part, str) and part in _tags(section))]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
    match one["type"]:
        case "extra_forbidden":
            return f"{place}: is not a key here.{did_you_mean(str(location[-1]), _keys(section))}"
        case "missing":
            return f"{place}: is missing."
        case "value_error":
            return f"{place}: {one['ctx']['error']}" if place else str(one["ctx"]["error"])
        case "union_tag_invalid":
            return f"{place}: {one['ctx']['tag']!r} is not known. Known: {one['ctx']['expected_tags']}."
        case "union_tag_not_found":
            return f"{place}: needs {one['ctx']['discriminator']}, which decides what the other keys mean."
        case "model_attributes_type" | "model_type":
            return f"{place}: needs keys of its own, such as {place}: {{…: …}}, but is {one['input']!r}."
        case "string_type" if isinstance(one["input"], bool | int | float):
            return f"{place}: YAML reads {one['input']!r} as a number or as yes and no; write it in quotes."
        case _:
            return f"{place}: {one['msg']}, but is {one['input']!r}."


def _tags(section: type[Strict]) -> set[str]:
    """The values that decide which of several sections is meant, such as the kinds of trainers."""
    schema = section.model_json_schema()
    fields = [
        field for part in (schema, *schema.get("$defs", {}).values()) for field in part.get("properties", {}).values()
    ]
    choices = [choice for field in fields for choice in (field, *field.get("anyOf", []))]
    return {tag for choice in choices for tag in choice.get("discriminator", {}).get("mapping", {})}


def _keys(section: type[Strict]) -> set[str]:
    schema = section.model_json_schema()
    nested = [definition.get("properties", {}) for definition in schema.get("$defs", {}).values()]
    return {key for properties in [schema.get("properties", {}), *nested] for key in properties}
