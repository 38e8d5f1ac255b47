"""The paper's data sets, architectures and hyper-parameters (App. A), and how much of them a run takes."""

from __future__ import annotations

from dataclasses import dataclass

from glasshouse.graph.trainer import GNNTrainer, adam
from glasshouse.registry import Registry

__all__ = ["PRESETS", "SETTINGS", "Preset", "Setting"]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One column of the paper's Table 1.

    Args:
        data: the graph's name for `load_graph`.
        paper_name: what the paper's tables call it.
        model: what they call the architecture.
        trainer: with the paper's hyper-parameters.
        note: what is not the paper's, said beside the figures.
    """

    data: str
    paper_name: str
    model: str
    trainer: GNNTrainer
    note: str = ""


def _gnn(architecture: str, hidden: int, rate: float, decay: float, dropout: float, epochs: int) -> GNNTrainer:
    return GNNTrainer(
        architecture=architecture, hidden=hidden, dropout=dropout, epochs=epochs, optimizer=adam(rate, decay)
    )


# The paper's hidden width of a GAT is that of one of its four heads: with 64 in all, train accuracy is 88.1 % on
# CiteSeer and 98.6 % on Amazon-Photo; with 64 a head it is 92.4 % and 99.7 %, where the paper prints 92.4 % and 99.8 %.
SETTINGS: Registry[Setting] = Registry("a setting")
for _setting in (
    Setting(data="cora", paper_name="Cora", model="GCN", trainer=_gnn("gcn", 64, 1e-3, 1e-5, 0.5, 200)),
    Setting(data="citeseer", paper_name="Citeseer", model="GAT", trainer=_gnn("gat", 4 * 64, 1e-3, 1e-4, 0.5, 50)),
    Setting(data="pubmed", paper_name="Pubmed", model="GraphSAGE", trainer=_gnn("sage", 128, 1e-2, 1e-4, 0.5, 100)),
    Setting(data="flickr", paper_name="Flickr", model="GCN", trainer=_gnn("gcn", 128, 1e-3, 1e-4, 0.0, 800)),
    Setting(
        data="amazon-photo", paper_name="Amazon-Photo", model="GAT", trainer=_gnn("gat", 4 * 64, 1e-3, 1e-4, 0.25, 400)
    ),
    Setting(
        data="github",
        paper_name="Github",
        model="GraphSAGE",
        trainer=_gnn("sage", 64, 1e-3, 1e-5, 0.0, 300),
        note="The features of this file are not the paper's, so its figures are not comparable digit for digit.",
    ),
):
    SETTINGS.add(_setting.data, _setting)


@dataclass(frozen=True, kw_only=True)
class Preset:
    """How much of the paper's work a run takes: ``paper`` all of it, ``quick`` a taste in minutes.

    Args:
        targets: how many target models the figures are averaged over.
        datasets: which columns, where none is asked for by name.
        epochs: share of the paper's epochs.
    """

    targets: int
    datasets: tuple[str, ...]
    epochs: float = 1.0


PRESETS: Registry[Preset] = Registry("a preset")
PRESETS.add("quick", Preset(targets=2, datasets=("cora", "citeseer")))
PRESETS.add("paper", Preset(targets=10, datasets=("cora", "citeseer", "pubmed", "amazon-photo", "github")))
