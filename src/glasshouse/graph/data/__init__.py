"""Graphs: loading, checking, drawing parts of them, and a synthetic one."""
