"""Write what Glasshouse is made of: docs/licences.md, and a bill of materials (CycloneDX) for a release.

``python -m docs.scripts.sbom`` writes both, in an environment with the pinned versions (``make sbom``); the bill is
``dist/glasshouse-VERSION.cdx.json``. Licences are what each package says of itself; hashes are those of the lock.
The same pins give the same bytes.
"""

from __future__ import annotations

import importlib
import json
import re
import tomllib
import uuid
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

lock = importlib.import_module("docs.scripts.lock")  # by name, as docs is no package to mypy
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "licences.md"
HEAD = """\
# Licences of what is installed

Glasshouse itself has the Apache License 2.0. Beside it are installed: what the *core* needs always, and what the extras
need that you name. This page has every package that `constraints.txt` pins, and the licence that the package states in
its own metadata; written by `make sbom`. Wheels may hold further libraries under licences of their own (NumPy
and SciPy hold OpenBLAS, torch holds many): their files are in the folder `*.dist-info` of the installed package.
`dev` and `docs` are for those who work on Glasshouse itself.

| package | version | licence | needed by |
| --- | --- | --- | --- |
"""
_WORDS = {  # what packages write, where it is no SPDX expression -> what it is
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",  # the classifier, which all use for version 2.0
    "BSD License": "BSD",  # which of the BSD licences is not said
    "ISC License": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
_SPDX = re.compile(  # a name of SPDX, or what stands between such names
    r"[A-Za-z0-9]+-[0-9][A-Za-z0-9.-]*|0BSD|CNRI-Python|ISC|LLVM-exception|MIT|MIT-CMU|Zlib|[()]|AND|OR|WITH"
)


@dataclass(frozen=True, kw_only=True)
class Package:
    """One pinned package: what it is, who may use it how, and who needs it."""

    name: str
    version: str
    licence: str
    parts: tuple[str, ...]
    hashes: tuple[str, ...]


def licence(package: metadata.PackageMetadata, texts: list[str]) -> str:
    """The licence that a package states: an SPDX expression if possible, else its own words; never a guess.

    Args:
        package: metadata of an installed package.
        texts: its licence files, asked where the metadata say nothing.
    """
    stated, own = ((package.get_all(name) or [""])[0].strip() for name in ("License-Expression", "License"))
    classes = [line.split(" :: ")[-1] for line in package.get_all("Classifier", []) if line.startswith("License")]
    short = own if own and "\n" not in own and len(own) <= 40 and own not in ("UNKNOWN", "BSD") else ""
    heads = [text.strip().splitlines()[0].strip() for text in texts if text.strip()]
    words = stated or short or " AND ".join(classes) or (heads[0] if heads else "") or "not stated"
    return _WORDS.get(words, words)


def packages() -> list[Package]:
    """Every pinned package, by name, as installed here."""
    pins = lock.pinned((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    parts = lock.parts()
    blocks: dict[str, str] = {}
    for path in lock.PARTS.glob("*.lock"):
        blocks |= {name: text for name, (_, text) in lock.locked(path.read_text(encoding="utf-8")).items()}
    found = []
    for name, version in sorted(pins.items()):
        try:
            there = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            raise SystemExit(f"{name}=={version} is not installed here. Run make .venv/.installed-dev first.") from None
        if there.version.split("+")[0] != version:  # +cpu is a build of the same version
            raise SystemExit(f"{name}: {version} is pinned, {there.version} is installed. Install the pins first.")
        files = [file for file in there.files or [] if re.search(r"dist-info/.*LICEN[CS]E", str(file), re.IGNORECASE)]
        texts = [file.read_text(encoding="utf-8") for file in sorted(files)[:1]]
        needs = tuple(part for part, names in parts.items() if name in names) or ("core",)  # torch is in no part
        hashes = tuple(re.findall("sha256:([0-9a-f]{64})", blocks.get(name, "")))
        found.append(
            Package(name=name, version=version, licence=licence(there.metadata, texts), parts=needs, hashes=hashes)
        )
    return found


def page(found: list[Package]) -> str:
    """The page of the manual."""
    return HEAD + "".join(f"| {p.name} | {p.version} | {p.licence} | {', '.join(p.parts)} |\n" for p in found)


def bill(found: list[Package], version: str) -> dict[str, Any]:
    """The bill of materials of a version of Glasshouse, as CycloneDX 1.6 has it."""
    components = [_component(one) for one in found]
    root = f"pkg:pypi/glasshouse@{version}"
    pinned = {one.name: f"pkg:pypi/{one.name}@{one.version}" for one in found}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([root, components])).urn,  # by what it says
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": "glasshouse",
                "version": version,
                "purl": root,
                "licenses": [{"expression": "Apache-2.0"}],
            }
        },
        "components": components,
        "dependencies": [{"ref": root, "dependsOn": sorted(pinned.values())}],
    }


def _component(package: Package) -> dict[str, Any]:
    purl = f"pkg:pypi/{package.name}@{package.version}"
    spdx = all(_SPDX.fullmatch(word) for word in re.findall(r"[()]|[^\s()]+", package.licence))
    entry: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": package.name,
        "version": package.version,
        "purl": purl,
        "scope": "required" if "core" in package.parts else "optional",
        "properties": [{"name": "glasshouse:part", "value": part} for part in package.parts],
    }
    if package.licence != "not stated":
        entry["licenses"] = [{"expression": package.licence} if spdx else {"license": {"name": package.licence}}]
    if package.hashes:  # several wheels, one for each system: each is a file of its own, not the package
        entry["externalReferences"] = [
            {
                "type": "distribution",
                "url": f"https://pypi.org/project/{package.name}/{package.version}/#files",
                "hashes": [{"alg": "SHA-256", "content": one} for one in package.hashes],
            }
        ]
    return entry


def main() -> None:
    """Write the page and the bill."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    found = packages()
    PAGE.write_text(page(found), encoding="utf-8")
    out = ROOT / "dist" / f"glasshouse-{version}.cdx.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(bill(found, version), indent=1) + "\n", encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}, {out.relative_to(ROOT)}: {len(found)} packages")


if __name__ == "__main__":
    main()
