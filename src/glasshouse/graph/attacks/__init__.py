"""Attacks that ask models about parts of a graph, one file each."""
