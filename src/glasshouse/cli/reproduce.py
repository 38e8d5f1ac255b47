"""``glasshouse reproduce``: the paper's experiments."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from glasshouse.cli.app import app
from glasshouse.cli.steps import Quiet, Seed
from glasshouse.core.errors import InputError
from glasshouse.io.files import sharing


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help="Name of an experiment, or all; an unknown name lists them.")],
    preset: Annotated[str, typer.Option(help="Size of the experiment: quick or paper.")] = "quick",
    dataset: Annotated[list[str] | None, typer.Option(help="Data set to use; may be repeated.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for CSV, pictures and Markdown.")] = Path("results"),
    pools: Annotated[Path, typer.Option(help="Folder that keeps models and scores.")] = Path("runs/pools"),
    part: Annotated[str | None, typer.Option(help="Run only this part of the experiment, such as gibbs.")] = None,
    seed: Seed = 0,
    workers: Annotated[
        int, typer.Option(min=1, help="Number of processes that attack targets of a graph in parallel.")
    ] = 1,
    lanes: Annotated[int, typer.Option(min=1, help="With all: number of data sets that run in parallel.")] = 1,
    quiet: Quiet = False,
) -> None:
    """Run an experiment of the paper and print our figures next to those of the paper."""
    _find_experiments()
    import glasshouse_experiments as experiments

    options: dict[str, Any] = {"preset": preset, "datasets": dataset or None, "out": out, "pools": pools, "seed": seed}
    options |= {"workers": workers, "progress": False if quiet else None}
    console = Console(width=None if sys.stdout.isatty() else 160)
    every = name == "all"
    if every and part is not None:
        raise InputError("--part: all runs every part; give the name of one experiment.")
    if lanes > 1 and not every:
        raise InputError("--lanes: only all runs data sets in parallel; for one experiment, use --workers.")
    with sharing():  # tables of public data
        if every:
            found = experiments.reproduce_all(lanes=lanes, **options)
        else:
            found = iter([(name, experiments.reproduce(name, part=part, **options))])
        for title, table in found:
            experiments.show(table, title=f"{title}, preset {preset}", console=console)


def _find_experiments() -> None:
    """Make the package of the paper's experiments importable; the one beside ``src`` in a source tree comes first."""
    beside = Path(__file__).resolve().parents[3] / "experiments"
    if (beside / "glasshouse_experiments").is_dir():
        sys.path.insert(0, str(beside))
    elif find_spec("glasshouse_experiments") is None:
        raise InputError(
            "reproduce: the paper's experiments are not part of the installed package. In a source tree of Glasshouse, "
            "run: pip install ./experiments"
        )
