"""Samplers of plausible training sets, over which G-BASE averages."""
