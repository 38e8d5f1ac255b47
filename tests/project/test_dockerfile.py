"""The Dockerfile by its text alone: what it names is there, and is what the project says elsewhere."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = DECLARED["project"]


def instructions() -> list[tuple[str, str]]:
    """Each instruction with its arguments, without comments, with continued lines joined."""
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(word.upper(), rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def arguments(word: str) -> list[str]:
    return [rest for found, rest in instructions() if found == word]


def installs() -> list[list[str]]:
    return [shlex.split(rest) for rest in arguments("RUN") if rest.startswith("pip install")]


def test_every_line_is_an_instruction_that_docker_knows() -> None:
    known = {"FROM", "RUN", "COPY", "WORKDIR", "USER", "ENTRYPOINT", "CMD"}
    assert {word for word, _ in instructions()} == known
    assert instructions()[0][0] == "FROM"


def test_its_python_is_one_that_the_project_supports() -> None:
    found = re.fullmatch(r"python:3\.(\d+)-slim@sha256:[0-9a-f]{64}", arguments("FROM")[0])
    least = re.fullmatch(r">=3\.(\d+)", PROJECT["requires-python"])
    assert found
    assert least
    assert int(found[1]) >= int(least[1])


def test_what_it_copies_is_there_and_is_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split("\n")
    for rest in arguments("COPY"):
        *sources, _ = rest.split()
        for source in sources:
            assert (ROOT / source).exists(), source
            assert f"!{source}" in ignored, f"{source} is left out by .dockerignore"
    assert any(DECLARED["tool"]["hatch"]["metadata"]["hooks"]["custom"]["path"] in rest for rest in arguments("COPY"))


def test_it_installs_the_lock_the_pinned_torch_and_then_the_package_without_a_download() -> None:
    locked, torch, package = installs()
    pinned = re.search(r"^torch==.*$", (ROOT / "constraints.txt").read_text(), flags=re.MULTILINE)
    assert pinned
    assert pinned[0] in torch
    assert "--require-hashes" in locked
    parts = {Path(word).stem for word in locked if word.startswith("requirements/")}
    assert "core" in parts
    assert parts - {"core"} <= set(PROJECT["optional-dependencies"])
    assert package[-1] == "."
    assert {"--no-deps", "--no-build-isolation"} <= set(package)


def test_it_runs_our_command_as_a_user_without_rights() -> None:
    assert json.loads(arguments("ENTRYPOINT")[0])[0] in PROJECT["scripts"]
    words = [word for word, _ in instructions()]
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert arguments("USER") == ["auditor"]
    assert "useradd --create-home auditor" in " ".join(arguments("RUN"))
