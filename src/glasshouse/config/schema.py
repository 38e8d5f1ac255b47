"""JSON schemas of audit files and policies, by which editors complete and check them while they are written."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from glasshouse.attacks import attack_names
from glasshouse.auditing.options import OPTIONS, Attacker, Evaluation, meanings
from glasshouse.config.audit_file import AuditFile
from glasshouse.config.policy_file import PolicyFile
from glasshouse.config.yaml_model import Strict
from glasshouse.report.policy import Limit, Policy, limited_figures

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXT = {"type": "string"}


def audit_schema() -> dict[str, Any]:
    """The schema of audit files."""
    schema = _schema(AuditFile, OPTIONS | meanings(Attacker) | meanings(Evaluation))
    # the names are offered, but not demanded: a file may name an attack that its user registered
    name = {"anyOf": [{"enum": sorted(attack_names())}, _TEXT]}
    entry = {"type": "object", "properties": {"name": name}, "required": ["name"]}
    several = {"type": "array", "minItems": 1, "items": {"anyOf": [*name["anyOf"], entry]}}
    schema["properties"]["attacks"]["anyOf"] = [several, *name["anyOf"], {"type": "null"}]
    table = schema["$defs"]["FileData"]["properties"]
    table["member"] = table["members"]  # files may use either name
    return schema


def policy_schema() -> dict[str, Any]:
    """The schema of policies."""
    schema = _schema(PolicyFile, meanings(Policy))
    limit = schema["$defs"]["LimitSection"]["properties"]
    _describe(limit, meanings(Limit))
    limit["figure"] |= {"enum": limited_figures()}
    return schema


def schema_files() -> dict[str, str]:
    """The text of each schema by the name of its file."""
    schemas = {"audit": audit_schema(), "policy": policy_schema()}
    return {
        f"{name}.schema.json": json.dumps(one, indent=1, ensure_ascii=False) + "\n" for name, one in schemas.items()
    }


def _schema(section: type[Strict], known: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = _untitled(section.model_json_schema())
    for one in (found, *found["$defs"].values()):
        one["description"] = inspect.cleandoc(one["description"]).partition("\n\nExample:")[0].replace("``", "`")
    _describe(found["properties"], known)
    return {"$schema": _DIALECT, **found}


def _describe(keys: dict[str, Any], known: Mapping[str, str]) -> None:
    """Say what keys mean, in place: as their section says, or else as what the section makes."""
    for name, key in keys.items():
        if text := key.get("description", known.get(name)):
            key["description"] = text.replace("``", "`")


def _untitled(schema: Any) -> Any:
    """Without the titles that pydantic makes from names; a key that is called title stays."""
    if isinstance(schema, dict):
        return {key: _untitled(one) for key, one in schema.items() if key != "title" or not isinstance(one, str)}
    return [_untitled(one) for one in schema] if isinstance(schema, list) else schema
