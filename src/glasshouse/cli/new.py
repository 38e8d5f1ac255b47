"""``glasshouse new``: a script or an audit file to begin with, which runs as it stands; one for each kind of model."""

from __future__ import annotations

import importlib.resources
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from glasshouse.cli.app import app, say
from glasshouse.core.errors import raise_faults
from glasshouse.core.registry import Registry
from glasshouse.io.files import check_name, write_file


class Starter(NamedTuple):
    """Files to begin with."""

    about: str  # what they audit, in a few words
    files: Sequence[str]  # places in ``starters``; each is written under its last name
    run: str  # the command that runs what was written, in its folder
    schema: bool = False  # whether the schema of audit files is written beside them, for editors

    def texts(self) -> dict[str, str]:
        """Text by the name of the file to write."""
        here = importlib.resources.files("glasshouse.cli") / "starters"
        texts = {name.rsplit("/", 1)[-1]: here.joinpath(name).read_text(encoding="utf-8") for name in self.files}
        if self.schema:
            from glasshouse.config.schema import schema_files  # takes a second to import

            texts["audit.schema.json"] = schema_files()["audit.schema.json"]
        return texts


STARTERS: Registry[Starter] = Registry("a kind of model")
for _name, _about in (
    ("torch", "a torch module"),
    ("sklearn", "a scikit-learn estimator, or boosting"),
    ("gnn", "a graph neural network"),
):
    STARTERS.add(_name, Starter(_about, [f"audit_{_name}.py"], f"python audit_{_name}.py"))
_TABLE = ["table/audit.yaml", "table/people.csv"]
STARTERS.add(
    "table", Starter("a table in a file, without a program", _TABLE, "glasshouse audit audit.yaml", schema=True)
)


def write_starter(starter: Starter, folder: Path | str) -> list[Path]:
    """Write a starter's files into a folder, which is made if it is missing; a file that is there is never replaced."""
    folder = Path(folder)
    check_name(folder)
    texts = starter.texts()
    raise_faults(
        [
            f"{path}: already exists and is not overwritten. Give another folder, or move the file."
            for path in (folder / name for name in texts)
            if path.exists() or path.is_symlink()
        ]
    )
    return [write_file(folder / name, text) for name, text in texts.items()]


@app.command()
def new(
    kind: Annotated[
        str, typer.Argument(help=f"What you train: {', '.join(STARTERS.names())}.", autocompletion=STARTERS.names)
    ],
    folder: Annotated[Path, typer.Argument(help="Folder to write to.")] = Path(),
) -> None:
    """Write a commented script or audit file that runs as it is, as a start for your own model and data."""
    starter = STARTERS.find(kind)
    for path in write_starter(starter, folder):
        say(f"Written: {path}")
    there = "" if folder.resolve() == Path.cwd() else f"cd {shlex.quote(str(folder))} && "
    typer.echo(f"It audits {starter.about}. Run it as it is, then change what is marked yours:\n  {there}{starter.run}")
