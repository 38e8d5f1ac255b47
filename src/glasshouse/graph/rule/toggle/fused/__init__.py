"""Kernels for a GPU that do in one pass what takes torch many; the torch code beside each is its twin."""
