"""Samplers of plausible training sets, over which G-BASE averages; chains are those that walk."""
