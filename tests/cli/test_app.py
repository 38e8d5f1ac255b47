from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from glasshouse.cli import app, main
from glasshouse.cli.app import COMMANDS, EXIT_CODES, EXITS, Terminated, described, stopped_code
from glasshouse.report.policy import Finding, Status, Verdict

ROOT = Path(__file__).parents[2]


def test_the_version_is_that_of_the_installed_package() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert done.exit_code == 0
    assert done.output == f"glasshouse {importlib.metadata.version('glasshouse')}\n"


@pytest.mark.parametrize(("given", "used"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_leave_their_core_to_others_unless_the_user_says_otherwise(
    given: str | None, used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", given or "")
    if given is None:
        monkeypatch.delenv("OMP_WAIT_POLICY")
    monkeypatch.setattr("sys.argv", ["glasshouse", "--version"])
    with pytest.raises(SystemExit):
        main()
    assert os.environ["OMP_WAIT_POLICY"] == used


@pytest.mark.parametrize("words", ["glasshouse ", "glasshouse new t"])
def test_a_shell_completes_commands_and_kinds(words: str) -> None:
    """As bash asks: by environment variables, with the words so far."""
    asked = {"_GLASSHOUSE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = CliRunner().invoke(app, [], env=asked, prog_name="glasshouse")
    offered = done.output.split()
    assert {"audit", "new", "doctor"} <= set(offered) if words.endswith(" ") else offered == ["torch", "table"]


def test_the_table_has_every_command_with_its_module_and_the_first_paragraph_of_its_help() -> None:
    for module in COMMANDS.values():
        importlib.import_module(f"glasshouse.cli.{module}")
    commands = {one.callback.__name__: one.callback for one in app.registered_commands if one.callback}
    assert commands.keys() == COMMANDS.keys()
    for name, command in commands.items():
        first = " ".join((inspect.getdoc(command) or "").split("\n\n")[0].split())
        assert (f"glasshouse.cli.{COMMANDS[name]}", described(name)) == (command.__module__, first)


def test_the_commands_own_help_is_complete() -> None:
    for name in COMMANDS:
        done = CliRunner().invoke(app, [name, "--help"], prog_name="glasshouse", terminal_width=200)
        assert done.exit_code == 0, name
        assert f"glasshouse {name}" in done.output
    assert CliRunner().invoke(app, ["report", "--help"]).output.count("--redact") > 1, "its second paragraph too"


def test_exit_codes_are_those_of_one_table() -> None:
    known = {code for codes in EXIT_CODES.values() for code in codes}
    statuses: list[Status] = ["passed", "failed", "unknown"]
    check = [Verdict(findings=[Finding(rule="", status=one, reason="")]).exit_code for one in statuses]
    assert (check, stopped_code(KeyboardInterrupt()), stopped_code(Terminated())) == ([0, 3, 4], 130, 143)
    written = [path.read_text(encoding="utf-8") for path in (ROOT / "src" / "glasshouse" / "cli").glob("*.py")]
    assert {int(code) for text in written for code in re.findall(r"(?:SystemExit|Exit)\((\d+)\)", text)} <= known
    assert not [text for text in written if re.search(r"[Ee]xit codes? \d", text)]


def test_the_manual_says_what_the_table_of_exit_codes_says() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").replace("`", "")
    assert EXITS in " ".join(index.split())
    gate = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", gate, flags=re.MULTILINE)} == {0, 2, 3, 4}
