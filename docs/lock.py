"""Write requirements.lock: what constraints.txt pins, with the SHA-256 of every file that may be installed for it.

Run it with ``python -m docs.lock`` after a change of constraints.txt; it asks the index (PyPI, or ``--index``) for each
package. Only wheels are listed, since the build of a source archive runs code, and only those for systems and versions
of Python that we support. Left out: torch, whose CPU build comes from PyTorch's own index under another hash.
"""

from __future__ import annotations

import argparse
import re
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
HEAD = """\
# What constraints.txt pins, with the SHA-256 of every wheel that may be installed for it (python -m docs.lock)
# Wheels alone (the build of a source archive runs code), for Python 3.11 to 3.14 on Linux, macOS and Windows, 64 bit.
# Without torch: its CPU build comes from PyTorch's own index. Install torch first, then
#   pip install --no-deps --require-hashes --only-binary :all: -r requirements.lock
#   pip install --no-deps --no-build-isolation .
"""
LEFT_OUT = ("torch",)
_FILE = re.compile(r'href="[^"]*/([^"/#]+)#sha256=([0-9a-f]{64})"')  # in a page of the index (PEP 503)
_INTERPRETERS = re.compile(r"py3|(?:cp|py)3(\d+)")
_PLATFORMS = re.compile(r"any|(many|musl)linux.*_(x86_64|aarch64)|macosx_.*_(arm64|x86_64|universal2)|win_amd64")


def pinned(constraints: str) -> dict[str, str]:
    r"""Version by name, from the text of constraints.txt.

    Example:
        >>> pinned("# a comment\nNumPy==2.4.6\n")
        {'numpy': '2.4.6'}
    """
    lines = (line.split("#")[0].strip() for line in constraints.splitlines())
    pairs = (line.split("==") for line in lines if line)
    return {canonicalize_name(name): version for name, version in pairs}


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


def hashes(name: str, version: str, *, index: str) -> list[str]:
    """SHA-256 of each wheel of a version, in order."""
    address = f"{index.rstrip('/')}/{name}/"
    with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310 (the address is the user's own)
        files = _FILE.findall(answer.read().decode("utf-8"))
    return sorted({found for file, found in files if wanted(urllib.parse.unquote(file), version)})


def lines(pins: dict[str, str], *, index: str) -> Iterator[str]:
    """The lock, package by package; one that has no wheel stops it."""
    for name, version in pins.items():
        if name in LEFT_OUT:
            continue
        found = hashes(name, version, index=index)
        if not found:
            raise SystemExit(f"{name}=={version}: the index has no wheel of it. Pin another version.")
        yield f"{name}=={version} \\"
        yield from (f"    --hash=sha256:{one} \\" for one in found[:-1])
        yield f"    --hash=sha256:{found[-1]}"


def main() -> None:
    """Write the lock."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--index", default="https://pypi.org/simple", help="A package index (PEP 503).")
    options = parser.parse_args()
    pins = pinned((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    LOCK.write_text(HEAD + "\n".join(lines(pins, index=options.index)) + "\n", encoding="utf-8")
    print(f"{LOCK.name}: {len(pins) - len(LEFT_OUT)} packages")


if __name__ == "__main__":
    main()
