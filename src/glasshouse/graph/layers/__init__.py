"""One file per layer type: how it is toggled and how it is trained in one pass. Each file registers its type."""

from glasshouse.graph.layers import (  # noqa: F401 (each registers a layer type)
    appnp,
    cheb,
    gat,
    gatv2,
    gcn,
    gin,
    gine,
    graph_conv,
    lg,
    sage,
    sgc,
    ssg,
    tag,
    transformer,
)
