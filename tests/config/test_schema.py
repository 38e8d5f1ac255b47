"""The schemas that editors use say what Glasshouse says about the same files."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pydantic
import pytest
import yaml

from glasshouse.cli.new import STARTERS, write_starter
from glasshouse.config import AuditFile
from glasshouse.config.policy_file import PolicyFile
from glasshouse.config.schema import audit_schema, policy_schema, schema_files
from tests.manual import ROOT, blocks

kept = importlib.import_module("docs.scripts.schema").FOLDER
POLICY = yaml.safe_load((ROOT / "examples" / "release" / "risk.yaml").read_text())
BLOCKS = [one for one in blocks() if one.language == "yaml" and not one.text.startswith("--8<--")]


def accepts(schema: dict[str, Any], content: Any) -> bool:
    jsonschema: Any = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.Draft202012Validator.check_schema(schema)
    return bool(jsonschema.Draft202012Validator(schema).is_valid(content))


def reads(section: type[pydantic.BaseModel], content: Any) -> bool:
    try:
        section.model_validate(content)
    except pydantic.ValidationError:
        return False
    return True


def test_the_kept_schemas_are_what_is_declared() -> None:
    pinned = re.search(r"^pydantic==(.+)$", (ROOT / "constraints.txt").read_text(), flags=re.MULTILINE)
    assert pinned is not None
    if pinned[1] != pydantic.VERSION:
        pytest.skip("another pydantic writes the same schemas in other words")
    assert {path.name: path.read_text(encoding="utf-8") for path in kept.iterdir()} == schema_files(), (
        "run python -m docs.scripts.schema"
    )


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_every_audit_file_and_policy_of_the_manual_is_accepted(block: Any) -> None:
    content = yaml.safe_load(block.text)
    assert accepts(policy_schema() if "limits" in content else audit_schema(), content)


def test_what_new_writes_points_to_a_schema_beside_it_that_accepts_it(tmp_path: Path) -> None:
    write_starter(STARTERS.find("table"), tmp_path)
    text = (tmp_path / "audit.yaml").read_text()
    named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
    assert named is not None
    assert accepts(yaml.safe_load((tmp_path / named[1]).read_text()), yaml.safe_load(text))


@pytest.mark.parametrize(
    ("content", "good"),
    [
        ({}, True),
        ({"attacks": "best", "prior": 0.1, "claim": {"epsilon": 8.0}}, True),
        ({"attacks": ["base", {"name": "rmia", "gamma": 2.0}]}, True),
        ({"data": {"name": "file", "path": "a.csv", "member": "trained_on", "groups": "sex"}}, True),
        ({"shadow": 8}, False),
        ({"shadows": "8"}, False),
        ({"threshold": "policy"}, False),
        ({"attacks": []}, False),
        ({"data": {"name": "file", "path": "a.csv", "lable": "income"}}, False),
        ({"trainer": {"kind": "forest"}}, False),
        ({"graph": {"name": "cora", "network": {"width": 64}}}, False),
        ({"claim": {"delta": 0.1}}, False),
    ],
)
def test_the_schema_and_the_reader_of_audit_files_agree(content: Any, good: bool) -> None:
    assert reads(AuditFile, content) is good
    assert accepts(audit_schema(), content) is good


@pytest.mark.parametrize(
    ("change", "good"),
    [({}, True), ({"age": 3}, False), ({"end": "top"}, False), ({"limits": [{"figure": "acc", "most": 0.5}]}, False)],
)
def test_the_schema_and_the_reader_of_policies_agree(change: Any, good: bool) -> None:
    assert reads(PolicyFile, POLICY | change) is good
    assert accepts(policy_schema(), POLICY | change) is good


def test_an_editor_can_say_what_each_key_of_a_file_means() -> None:
    audit, policy = audit_schema(), policy_schema()
    parts = [audit, policy, audit["$defs"]["FileData"], policy["$defs"]["LimitSection"]]
    silent = [name for part in parts for name, key in part["properties"].items() if "description" not in key]
    assert silent == ["name"]  # of data: it says which section it is
    assert audit["properties"]["title"]["description"] == "of the report."
