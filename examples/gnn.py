"""Audit a graph neural network on the synthetic citation graph: G-BASE with two samplers beside LiRA."""

from glasshouse.graph import GBASE, GNNTrainer, adam, audit, citation_graph

data = citation_graph(nodes=800)  # or any torch_geometric Data with x, edge_index and y
trainer = GNNTrainer(architecture="gcn", hidden=64, dropout=0.5, epochs=40, optimizer=adam(lr=0.01))
attacks = ("lira", "base", GBASE(sampler="mia"), GBASE(sampler="gibbs"))

result = audit(data, trainer=trainer, attacks=attacks, shadows=8, about="A synthetic graph.")
print(result.table(), end="\n\n")
for name, outcome in result.outcomes.items():
    if outcome.details:
        print(name, {figure: round(value, 3) for figure, value in outcome.details.items()})
