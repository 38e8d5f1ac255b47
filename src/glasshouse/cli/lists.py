"""``glasshouse attacks`` and ``glasshouse datasets``: the names to use in files and options."""

from __future__ import annotations

from importlib.util import find_spec

import typer

from glasshouse.attacks import attack_names
from glasshouse.cli.app import app
from glasshouse.config import data_names

__all__ = ["attacks", "datasets"]

_NO_GRAPH = "  none here: the extra `graph` is not installed. Run: pip install 'glasshouse[graph]'"


@app.command()
def attacks() -> None:
    """List the attacks, by the names to use in files and options; those that need a graph come last."""
    on_records = attack_names(graph=False)
    typer.echo("\n".join(on_records))
    typer.echo("\nOn graphs also:")
    typer.echo("\n".join(name for name in attack_names() if name not in on_records))
    if not _graph_installed():
        typer.echo(_NO_GRAPH)


@app.command()
def datasets() -> None:
    """List the data sets, by the names to use in files."""
    typer.echo("data: {name: …}")
    for name, about in data_names().items():
        typer.echo(f"  {name:<10}{about}")
    typer.echo("\ngraph: {name: …}")
    if not _graph_installed():
        typer.echo(_NO_GRAPH)
        return
    from glasshouse.graph.data.load import graph_names

    typer.echo("\n".join(f"  {name}" for name in graph_names()))
    typer.echo("  torch_geometric:CLASS or torch_geometric:CLASS:NAME, or your own my_graph.npz")


def _graph_installed() -> bool:
    return find_spec("torch_geometric") is not None
