"""Write the hashed lock: what constraints.txt pins, with the SHA-256 of every file that may be installed for it.

Run it with ``python -m docs.scripts.lock`` after a change of constraints.txt, in an environment with those versions.
It asks the index (PyPI, or ``--index``) for each package whose version changed. The lock has a part for the core and
for each extra in ``requirements/``, so that nobody installs more than is asked for; ``requirements.lock`` names them
all. Only wheels are listed, since the build of a source archive runs code, and only those for systems and versions of
Python that we support. Left out: torch, whose CPU build comes from PyTorch's own index under another hash.
"""

from __future__ import annotations

import argparse
import re
import tomllib
import urllib.parse
import urllib.request
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements.lock"
PARTS = ROOT / "requirements"
HEAD = """\
# What constraints.txt pins, with the SHA-256 of every wheel that may be installed for it (python -m docs.scripts.lock)
# Wheels alone (the build of a source archive runs code), for Python 3.11 to 3.14 on Linux, macOS (arm64), Windows.
# Everything, tools of the developers too; for less, name parts. core has what builds Glasshouse, and is always needed:
#   pip install --no-deps --require-hashes --only-binary :all: -r requirements/core.lock -r requirements/graph.lock
#   pip install --only-binary :all: -c constraints.txt torch==2.13.0
#   pip install --no-deps --no-build-isolation .
# Without torch: its CPU build comes from PyTorch's own index, under another hash. What torch needs is in torch, and in
# every part that brings it (dp, graph, lightning, skorch, text); the line that installs it is for these alone.
"""
LEFT_OUT = ("torch",)
SAME_MODULE = {"xgboost": "xgboost-cpu"}  # the plain one brings 300 MB for GPUs
BUILD = ("editables",)  # hatchling asks for it when it installs a source tree in place, and says so nowhere else
_BLOCK = re.compile(r"^([a-z0-9-]+)==(\S+)(?: ; [^\\\n]+)?(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n", re.MULTILINE)
_FILE = re.compile(r'href="[^"]*/([^"/#]+)#sha256=([0-9a-f]{64})"')  # in a page of the index (PEP 503)
_INTERPRETERS = re.compile(r"py3|(?:cp|py)3(\d+)")
_PLATFORMS = re.compile(r"any|(many|musl)linux.*_(x86_64|aarch64)|macosx_.*_(arm64|x86_64|universal2)|win_amd64")
_SYSTEMS = {"linux": r"manylinux.*_x86_64", "darwin": r"macosx_.*_(arm64|universal2)", "win32": "win_amd64"}
_ENVIRONMENTS = [  # for which markers of requirements are judged, whatever machine this is
    {"sys_platform": system, "platform_system": name, "os_name": kind, "python_version": f"3.{minor}"}
    | {"python_full_version": f"3.{minor}.0", "platform_machine": machine}
    for system, name, kind, machine in (
        ("linux", "Linux", "posix", "x86_64"),
        ("darwin", "Darwin", "posix", "arm64"),
        ("win32", "Windows", "nt", "AMD64"),
    )
    for minor in range(11, 15)
]


def pinned(constraints: str) -> dict[str, str]:
    r"""Version by name, from the text of constraints.txt.

    Example:
        >>> pinned("# a comment\nNumPy==2.4.6\n")
        {'numpy': '2.4.6'}
    """
    lines = (line.split("#")[0].strip() for line in constraints.splitlines())
    pairs = (line.split("==") for line in lines if line)
    return {canonicalize_name(name): version for name, version in pairs}


def needed(requirement: Requirement, seen: set[tuple[str, str]], extras: dict[str, list[str]]) -> Iterator[str]:
    """The names of a requirement and of all that it needs on any system, as far as it is installed here."""
    name = canonicalize_name(requirement.name)
    if name == "glasshouse":
        for extra in requirement.extras:
            for line in extras[extra]:
                yield from needed(Requirement(line), seen, extras)
        return
    name = canonicalize_name(SAME_MODULE.get(name, name))
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
            marker = one.marker
            if marker is None or any(marker.evaluate({"extra": extra, **where}) for where in _ENVIRONMENTS):
                yield from needed(one, seen, extras)


def parts() -> dict[str, set[str]]:
    """The names in each part: what the core needs, and what each extra needs beyond it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]

    def names(lines: list[str]) -> set[str]:
        seen: set[tuple[str, str]] = set()
        return {name for line in lines for name in needed(Requirement(line), seen, extras)} - set(LEFT_OUT)

    core = names([*project["project"]["dependencies"], *project["build-system"]["requires"], *BUILD])
    found = {"core": core} | {extra: names([f"glasshouse[{extra}]"]) - core for extra in extras}
    included = {extra for line in extras["dev"] for extra in Requirement(line).extras if "glasshouse[" in line}
    found["dev"] -= set().union(*(found[extra] for extra in included))
    return found


def wanted(file: str, version: str) -> bool:
    """Whether a file of the index is a wheel of this version that we may install.

    Example:
        >>> wanted("numpy-2.4.6-cp311-cp311-win_amd64.whl", "2.4.6"), wanted("numpy-2.4.6.tar.gz", "2.4.6")
        (True, False)
    """
    if not file.endswith(".whl"):
        return False
    try:
        _, found, _, tags = parse_wheel_filename(file)
    except InvalidWheelFilename:
        return False
    return found == Version(version) and any(_runs(t.interpreter, t.abi, t.platform) for t in tags)


def _runs(interpreter: str, abi: str, platform: str) -> bool:
    match = _INTERPRETERS.fullmatch(interpreter)
    if match is None or _PLATFORMS.fullmatch(platform) is None or abi.endswith("t"):  # t: without the global lock
        return False
    number = match[1]
    return number is None or abi == "abi3" or 11 <= int(number) <= 14


def where(files: list[str]) -> str:
    """A marker that leaves out each system for which there is no wheel: the package is then missing there, and said so.

    Example:
        >>> where(["a-1.0-py3-none-win_amd64.whl", "a-1.0-py3-none-manylinux_2_28_x86_64.whl"])
        ' ; sys_platform != "darwin"'
        >>> where(["a-1.0-py3-none-any.whl"])
        ''
    """
    platforms = {tag.platform for file in files for tag in parse_wheel_filename(file)[3]}
    lacking = [
        system
        for system, pattern in _SYSTEMS.items()
        if not any(one == "any" or re.fullmatch(pattern, one) for one in platforms)
    ]
    return " ; " + " and ".join(f'sys_platform != "{one}"' for one in lacking) if lacking else ""


def block(name: str, version: str, *, index: str) -> str:
    """The lines of one package, with the hashes of its wheels in order; one that has no wheel stops the lock."""
    address = f"{index.rstrip('/')}/{name}/"
    with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310 (the address is the user's own)
        found = [(urllib.parse.unquote(file), sha) for file, sha in _FILE.findall(answer.read().decode("utf-8"))]
    wheels = {file: sha for file, sha in found if wanted(file, version)}
    if not wheels:
        raise SystemExit(f"{name}=={version}: the index has no wheel of it. Pin another version.")
    hashes = [f"    --hash=sha256:{one}" for one in sorted(set(wheels.values()))]
    return " \\\n".join([f"{name}=={version}{where(list(wheels))}", *hashes]) + "\n"


def locked(text: str) -> dict[str, tuple[str, str]]:
    """Version and lines of each package in the text of a lock."""
    return {match[1]: (match[2], match[0]) for match in _BLOCK.finditer(text)}


def main() -> None:
    """Write the lock and its parts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--index", default="https://pypi.org/simple", help="A package index (PEP 503).")
    parser.add_argument(
        "--anew", action="store_true", help="Ask for every package, also where the version is the same."
    )
    options = parser.parse_args()
    pins = pinned((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    old: dict[str, tuple[str, str]] = {}
    for path in () if options.anew else (LOCK, *PARTS.glob("*.lock")):
        old |= locked(path.read_text(encoding="utf-8"))
    blocks: dict[str, str] = {}
    for name, version in pins.items():
        if name not in LEFT_OUT:
            same = old.get(name, ("", ""))
            blocks[name] = same[1] if same[0] == version else block(name, version, index=options.index)
    PARTS.mkdir(exist_ok=True)
    found = parts()
    for part, names in found.items():
        text = f"# A part of requirements.lock, which says how to install it: {part}\n"
        (PARTS / f"{part}.lock").write_text(text + "".join(blocks[name] for name in sorted(names)), encoding="utf-8")
    LOCK.write_text(HEAD + "".join(f"-r requirements/{part}.lock\n" for part in found), encoding="utf-8")
    unused = blocks.keys() - set().union(*found.values())
    print(f"{LOCK.name}: {len(blocks)} packages", *(f"nothing needs {name}" for name in sorted(unused)), sep="\n")


if __name__ == "__main__":
    main()
