"""The schemas of audit files and policies: ``python -m docs.scripts.schema`` writes ``docs/schema``."""

from __future__ import annotations

from pathlib import Path

from glasshouse.config.schema import schema_files

FOLDER = Path(__file__).parents[1] / "schema"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in schema_files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(FOLDER / name)
