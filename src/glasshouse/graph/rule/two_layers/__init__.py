"""Compiled kernels for two-layer GCN, GraphSAGE-max and GAT on the CPU."""
