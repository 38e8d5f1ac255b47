"""One file per layer type: how it is toggled and how it is trained in one pass. Each file registers its type."""

from glasshouse.graph.layers import gat, gcn, gin, graph_conv, sage, several_steps, sgc  # noqa: F401 (each registers a layer type)
