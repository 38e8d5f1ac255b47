"""Everything that is installed is pinned and comes by its hash; what it is and under which licence is written down."""

from __future__ import annotations

import email
import functools
import importlib
import json
import re
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
lock = importlib.import_module("docs.scripts.lock")  # by name, as docs is no package to mypy
PINS: dict[str, str] = lock.pinned((ROOT / "constraints.txt").read_text(encoding="utf-8"))
sbom = importlib.import_module("docs.scripts.sbom")


@pytest.fixture(scope="module", autouse=True)
def _parts_once() -> Iterator[None]:
    """What each part needs is found once: it takes half a second, and nothing is installed meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lock, "parts", functools.cache(lock.parts))
        yield


BRING_TORCH = {"dp", "graph", "lightning", "skorch", "text", "torch"}


def part(name: str) -> dict[str, tuple[str, str]]:
    """Version and lines of each package in a part of the lock."""
    found: dict[str, tuple[str, str]] = lock.locked((ROOT / "requirements" / f"{name}.lock").read_text("utf-8"))
    return found


def test_everything_that_the_project_its_tools_and_its_build_install_is_pinned() -> None:
    names = set().union(*lock.parts().values())
    assert names - PINS.keys() - {"pip"} == set()
    assert PINS.keys() >= {"grpcio", "hatchling", "packaging", "pathspec", "pillow", "pluggy", "trove-classifiers"}
    assert PINS.keys() - names == set(lock.LEFT_OUT), "nothing needs these any more"


def test_the_lock_has_the_same_pins_each_with_its_hashes() -> None:
    named = re.findall(r"^-r requirements/(\w+)\.lock$", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert {f"{name}.lock" for name in named} == {path.name for path in (ROOT / "requirements").iterdir()}
    locked = {package: version for name in named for package, (version, _) in part(name).items()}
    pins = {name: version for name, version in PINS.items() if name not in lock.LEFT_OUT}
    assert locked == pins, "run python -m docs.scripts.lock"
    for name in named:
        first, *rest = (ROOT / "requirements" / f"{name}.lock").read_text().splitlines(keepends=True)
        assert first.startswith("#")
        assert "".join(rest) == "".join(block for _, block in part(name).values()), "a line without a hash"


def test_each_part_of_the_lock_has_what_its_extra_needs_on_any_system_and_no_more() -> None:
    for name, names in lock.parts().items():
        assert part(name).keys() == names, "run python -m docs.scripts.lock"
    assert not part("graph").keys() & part("core").keys()
    assert "colorama" in part("core"), "of Windows alone"
    assert "xgboost-cpu" in part("boosting")
    assert part("core").keys() >= {"hatchling", "editables"}, "the build"
    assert not part("core").keys() & part("torch").keys()
    assert all(part(name).keys() >= part("torch").keys() >= {"sympy"} for name in BRING_TORCH), "what torch needs"


def test_make_the_image_and_the_action_install_nothing_that_has_no_hash_but_torch() -> None:
    """Each call of pip takes the lock, or the pinned torch, or this source tree without a download."""
    hashed = "--no-deps --require-hashes --only-binary :all:"
    this_tree = "--no-deps --no-build-isolation"
    torch = f"torch=={PINS['torch']}"
    for file in ("Makefile", "Dockerfile", "action.yml"):
        text = (ROOT / file).read_text().replace("\\\n", " ")
        variables = dict(re.findall(r"^(\w+) := (.*)$", text, flags=re.MULTILINE))
        for name, value in reversed(variables.items()):
            text = text.replace(f"$({name})", value)
        calls = re.findall(r"^(?:\t|RUN | +).*?pip install (.*)$", text, flags=re.MULTILINE)
        assert len(calls) >= 3, file
        for call in calls:
            locked = hashed in call and re.search(r"-r requirements|parts\[@\]", call)
            assert locked or this_tree in call or ("-c constraints.txt" in call and call.endswith(torch)), call


def test_torch_is_an_extra_that_others_bring_and_the_action_installs_it_for_these_alone() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: lines for name, lines in project["optional-dependencies"].items() if name != "dev"}
    bring = {
        name
        for name, lines in extras.items()
        if any(line.startswith(("torch>", "glasshouse[torch]")) for line in lines)
    }
    assert bring == BRING_TORCH
    assert not [line for line in project["dependencies"] if line.startswith("torch")]
    named = re.search(r",\(([a-z|]+)\),", (ROOT / "action.yml").read_text())
    assert named
    assert set(named[1].split("|")) == BRING_TORCH


def test_a_wheel_for_no_system_of_a_kind_is_left_out_there_and_nowhere_else() -> None:
    block = part("boosting")["xgboost-cpu"][1]
    assert block.startswith('xgboost-cpu==3.2.0 ; sys_platform != "darwin" \\\n')
    assert lock.where(["a-1.0-cp311-cp311-manylinux_2_28_x86_64.whl", "a-1.0-py3-none-any.whl"]) == ""
    assert lock.where(["a-1.0-py3-none-macosx_11_0_arm64.whl"]).count("sys_platform") == 2
    markers = re.findall(r";.*", "".join(text for name in lock.parts() for _, text in part(name).values()))
    assert len(set(markers)) == 1


def test_actions_are_named_by_commit_and_the_base_image_by_digest() -> None:
    action = (ROOT / "action.yml").read_text()
    used = re.findall(r"uses: (\S+)(.*)", action)
    assert len(used) == 2
    for name, comment in used:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name)
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), "which version it is"
    image = re.findall(r"^FROM (\S+)$", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    assert all(re.fullmatch(r"python:3\.\d+-slim@sha256:[0-9a-f]{64}", one) for one in image)
    assert len(image) == 1


def test_the_page_of_licences_and_the_bill_of_materials_are_those_of_the_pins() -> None:
    page = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    assert {name: version for name, version, *_ in rows[2:]} == PINS, "run python -m docs.scripts.sbom"
    assert all(licence not in ("", "not stated") for _, _, licence, _ in rows[2:])
    missing = [name for name in PINS if find_distribution(name) != PINS[name]]
    if missing:
        pytest.skip(f"not installed here as pinned: {', '.join(missing)}; make .venv/.installed-dev installs the lock")
    packages = sbom.packages()
    assert sbom.page(packages) == page, "run python -m docs.scripts.sbom"
    bill = sbom.bill(packages, "0.1.0")
    assert json.dumps(bill) == json.dumps(sbom.bill(sbom.packages(), "0.1.0")), "the same pins, the same bytes"
    assert len({one["bom-ref"] for one in bill["components"]}) == len(PINS)
    numba = next(one for one in bill["components"] if one["name"] == "numba")
    assert numba["purl"] == f"pkg:pypi/numba@{PINS['numba']}"
    hashes = {one["content"] for one in numba["externalReferences"][0]["hashes"]}
    assert hashes == set(re.findall("sha256:([0-9a-f]{64})", part("graph")["numba"][1]))
    assert all(one["licenses"] for one in bill["components"])
    for one in bill["components"]:  # what a package states as an SPDX expression stays one
        stated = metadata.metadata(one["name"]).get_all("License-Expression")
        assert not stated or one["licenses"] == [{"expression": stated[0]}], one["name"]


def find_distribution(name: str) -> str:
    try:
        return metadata.version(name).split("+")[0]
    except metadata.PackageNotFoundError:
        return ""


@pytest.mark.parametrize(
    ("lines", "texts", "stated"),
    [
        ("License-Expression: BSD-3-Clause AND 0BSD\nLicense: BSD", [], "BSD-3-Clause AND 0BSD"),
        ("License: Apache 2.0", [], "Apache-2.0"),
        ("License: BSD\nClassifier: License :: OSI Approved :: BSD License", [], "BSD"),
        ("License: UNKNOWN\nClassifier: License :: OSI Approved :: MIT License", [], "MIT"),
        ("Name: a", ["\nMIT License\n\nCopyright"], "MIT"),
        ("Name: a", [], "not stated"),
    ],
)
def test_a_licence_is_what_the_package_says_of_itself(lines: str, texts: list[str], stated: str) -> None:
    assert sbom.licence(email.message_from_string(lines), texts) == stated


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
    assert {one["package-ecosystem"] for one in watched} == {"docker", "github-actions", "pip"}
