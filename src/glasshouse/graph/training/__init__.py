"""Trainers of graph neural networks: one at a time, or many in one pass (batched)."""
