"""Compiled kernels for two-layer GCN, GraphSAGE-max and GAT on the CPU."""

from glasshouse.graph.rule.toggle.compiled.engine import compiled_toggles
from glasshouse.graph.rule.toggle.compiled.problem import supports

__all__ = ["compiled_toggles", "supports"]
