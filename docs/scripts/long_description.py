"""The long description of a package index: the README, with links and the picture by their full address.

Hatchling runs this when it builds (``[tool.hatch.metadata.hooks.custom]`` in ``pyproject.toml``).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def absolute(readme: str, *, source: str, version: str) -> str:
    """A README whose relative links lead to the files of a version, and its pictures to their bytes.

    >>> absolute("[how](docs/a.md) ![what](b.png) [there](https://c.org)", source="https://x.org", version="1.0")
    '[how](https://x.org/blob/v1.0/docs/a.md) ![what](https://x.org/raw/v1.0/b.png) [there](https://c.org)'
    """

    def full(found: re.Match[str]) -> str:
        kind = "raw" if found["picture"] else "blob"
        return f"{found['picture']}[{found['text']}]({source}/{kind}/v{version}/{found['path']})"

    return re.sub(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?!https?:|#)(?P<path>[^)\s]+)\)", full, readme)


class LongDescription(MetadataHookInterface):
    """What the metadata of a build say as its description."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description from the README."""
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = absolute(readme, source=metadata["urls"]["Source"], version=metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
