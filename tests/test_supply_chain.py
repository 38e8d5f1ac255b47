"""Everything that is installed is pinned, with hashes for those who want them."""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
lock = importlib.import_module("docs.lock")  # by name, as docs is no package to mypy
PINS: dict[str, str] = lock.pinned((ROOT / "constraints.txt").read_text(encoding="utf-8"))


def needed(requirement: Requirement, seen: set[tuple[str, str]], extras: dict[str, list[str]]) -> Iterator[str]:
    """The names of a requirement and of all that it needs, as far as it is installed here."""
    name = canonicalize_name(requirement.name)
    if name == "glasshouse":
        for extra in requirement.extras:
            for line in extras[extra]:
                yield from needed(Requirement(line), seen, extras)
        return
    yield name
    for extra in ("", *sorted(requirement.extras)):
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            lines = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        for one in map(Requirement, lines):
            if one.marker is None or one.marker.evaluate({"extra": extra}):
                yield from needed(one, seen, extras)


def test_everything_that_the_project_its_tools_and_its_build_install_is_pinned() -> None:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    wanted_by_us = [*project["project"]["dependencies"], "glasshouse[dev]", *project["build-system"]["requires"]]
    names = {name for line in wanted_by_us for name in needed(Requirement(line), set(), extras)}
    assert names - PINS.keys() - {"pip"} == set()
    assert PINS.keys() >= {"grpcio", "hatchling", "packaging", "pathspec", "pillow", "pluggy", "trove-classifiers"}


def test_the_lock_has_the_same_pins_each_with_its_hashes() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+) \\$", text, flags=re.MULTILINE))
    pins = {name: version for name, version in PINS.items() if name not in lock.LEFT_OUT}
    assert locked == pins, "run python -m docs.lock"
    for part in re.split(r"^[a-z0-9-]+==", text, flags=re.MULTILINE)[1:]:
        assert re.fullmatch(r"\S+( \\\n    --hash=sha256:[0-9a-f]{64})+\n", part)


def test_only_wheels_for_systems_that_we_support_are_locked() -> None:
    kept = [
        "a_b-1.0-py3-none-any.whl",
        "a_b-1.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        "a_b-1.0-cp39-abi3-macosx_11_0_arm64.whl",
        "a_b-1.0-py312-none-any.whl",
    ]
    dropped = [
        "a_b-1.0.tar.gz",
        "a_b-1.1-py3-none-any.whl",
        "a_b-1.0-cp310-cp310-win_amd64.whl",
        "a_b-1.0-cp313-cp313t-win_amd64.whl",
        "a_b-1.0-cp311-cp311-musllinux_1_2_ppc64le.whl",
        "a_b-1.0-pp311-pypy311_pp73-win_amd64.whl",
        "nonsense.whl",
    ]
    assert [file for file in kept + dropped if lock.wanted(file, "1.0")] == kept


def test_hooks_are_tools_of_the_pinned_environment_and_renewals_are_watched() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    for repository in hooks:
        assert repository["repo"] == "local" or re.fullmatch("[0-9a-f]{40}", repository["rev"])
        assert all(hook["entry"].startswith(".venv/bin/") for hook in repository["hooks"] if "entry" in hook)
    watched = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text(encoding="utf-8"))["updates"]
    assert {one["package-ecosystem"] for one in watched} == {"pip", "github-actions"}
