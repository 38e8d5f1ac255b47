"""Graphs: loading, checking, drawing parts of them, and one that is made up."""
