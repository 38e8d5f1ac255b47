"""One file per layer type: how it is toggled and how it is trained in one pass. Each file registers its type."""

from glasshouse.graph.layers import gat, gcn, gin, sage, sgc  # noqa: F401 (each registers a layer type)
