"""What is known about convolutions: one short description per layer type, read by toggling and by training."""

from glasshouse.graph.layers import attention, sums  # noqa: F401 (they register the layer types)
