"""The ``graph`` section: which graph, which network, and what the attacker knows about both."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from glasshouse.auditing.options import Attacker
from glasshouse.config.yaml_model import MOST_EPOCHS, Share, Strict, check_network
from glasshouse.core.errors import MissingExtraError, shortened
from glasshouse.data import random_subsets
from glasshouse.io.guarded import guarded

if TYPE_CHECKING:  # the section can be read and checked where the extra is not installed
    from glasshouse.graph import GNNTrainer


Positive = Annotated[int, Field(ge=1)]
Nodes = Positive | Annotated[list[str], Field(min_length=1)] | Annotated[list[int], Field(min_length=1)]


def _network(name: str) -> str:
    """A registered network; pydantic adds the place in the file to an error."""
    try:
        from glasshouse.graph.models.networks import NETWORKS
    except MissingExtraError:  # a file can be read without the extra; the run then reports what to install
        return name
    NETWORKS.find(name)
    return name


class NetworkSection(Strict):
    """A graph neural network and how it is trained."""

    architecture: Annotated[str, AfterValidator(_network)] = "gcn"
    hidden: Positive = 64
    layers: Annotated[int, Field(ge=1, le=1000)] = 2
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    epochs: Annotated[int, Field(ge=1, le=MOST_EPOCHS)] = 50
    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: Annotated[float, Field(gt=0)] | None = None  # the optimizer's own
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    weight_decay: Annotated[float, Field(ge=0)] = 1e-5

    def build(self, setting: Literal["inductive", "transductive"] = "inductive") -> GNNTrainer:
        """A trainer with these settings."""
        from glasshouse.graph.training.trainer import GNNTrainer, adam, sgd

        given = self.model_dump(exclude={"optimizer", "learning_rate", "momentum", "weight_decay"})
        rate = {} if self.learning_rate is None else {"lr": self.learning_rate}
        common = {"weight_decay": self.weight_decay, **rate}
        optimizer = adam(**common) if self.optimizer == "adam" else sgd(momentum=self.momentum, **common)
        return GNNTrainer(**given, optimizer=optimizer, setting=setting)


class AttackerSection(Strict):
    """What the attacker does not know: its own network, and edges that it misses or wrongly adds."""

    network: NetworkSection | None = None
    missing_edges: Annotated[float, Field(ge=0, lt=1)] = 0.0
    imagined_edges: Annotated[float, Field(ge=0)] = 0.0


class PairsSection(Strict):
    """How many edges are audited, and what the other pairs are that are not edges of the target."""

    count: Positive = 500
    others: Literal["distance", "random", "held out"] = "distance"


class GraphSection(Strict):
    """A graph by name or file, its network, how the target's members are drawn, and which nodes are audited.

    A graph in two tables (csv or parquet) has its nodes as ``name`` and its edges as ``edges``; see `load_graph` for
    what else it may say. ``nodes`` is a number of nodes to draw at random, or a list of nodes: their ids as text, or
    their positions. With ``pairs``, edges are audited instead; all nodes are members unless ``fraction`` is given.
    """

    name: str = "synthetic"
    edges: str | None = None
    label: str | None = None
    id: str | None = None
    directed: bool = False
    leave_out: tuple[str, ...] = ()
    network: NetworkSection = NetworkSection()
    setting: Literal["inductive", "transductive"] = "inductive"
    drawn: Literal["random", "snowball"] = "random"
    fraction: Share = 0.5
    attacker: AttackerSection = AttackerSection()
    nodes: Nodes | None = None
    pairs: PairsSection | None = None

    @model_validator(mode="before")
    @classmethod
    def _no_path(cls, given: Any) -> Any:
        """Say where a graph's file belongs to one who writes it as that of a table is written."""
        if isinstance(given, dict) and isinstance(given.get("nodes"), str):
            raise ValueError(
                f"give the table of the nodes as the graph's name: write name: "
                f"{shortened(given['nodes'], quoted=False)}, with edges: and label:. nodes is for those to audit."
            )
        if isinstance(given, dict) and isinstance(given.get("path"), str):
            raise ValueError(
                f"give the file of a graph as its name: write name: {shortened(given['path'], quoted=False)}."
            )
        return given

    def arguments(self, *, folder: Path, seed: int, attacker: Attacker = Attacker()) -> dict[str, Any]:
        """The arguments of `glasshouse.graph.audit`, or of `audit_edges`, that this section decides."""
        from glasshouse.graph import load_graph, noisy_edges, snowball_subset
        from glasshouse.graph.data.load import GRAPH_FILES
        from glasshouse.graph.data.tables import TABLES

        beside = folder / self.name
        with guarded(beside, what="a graph"):
            file = beside.suffix in (*GRAPH_FILES, *TABLES) and beside.exists()
            data = load_graph(
                str(beside) if file else self.name,
                edges=None if self.edges is None else str(folder / self.edges),
                label=self.label,
                ids=self.id,
                directed=self.directed,
                leave_out=self.leave_out,
            )
        if self.drawn == "snowball":
            members = snowball_subset(data, fraction=self.fraction, seed=seed)
        else:
            members = random_subsets(int(data.num_nodes), models=1, fraction=self.fraction, seed=seed)[0]
        members = members | (data.y < 0).numpy()  # nodes without a label are context, which all models see
        for network in (self.network, self.attacker.network or self.network):
            classes = int(data.y.max()) + 1
            inside = [network.hidden] * min(network.layers, 1000)
            check_network([int(data.x.shape[1]), *inside, classes], place="graph.network.hidden")
        if self.pairs is not None:
            some = members if self.model_fields_set & {"drawn", "fraction"} else None
            wanted = {"edges": self.pairs.count, "others": self.pairs.others, "attacker": attacker}
            return {"data": data, "members": some, "trainer": self.network.build(), **wanted}
        theirs = self.attacker.network.build(self.setting) if self.attacker.network else None
        known = None
        if self.attacker.missing_edges or self.attacker.imagined_edges:
            known = noisy_edges(data, drop=self.attacker.missing_edges, add=self.attacker.imagined_edges, seed=seed)
        return {
            "data": data,
            "members": members,
            "trainer": self.network.build(self.setting),
            "attacker": dataclasses.replace(attacker, trainer=theirs, graph=known),
            "setting": self.setting,
            "nodes": self.nodes,
        }
