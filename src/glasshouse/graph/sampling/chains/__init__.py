"""Markov chains over membership configurations (paper, App. B): Gibbs and Metropolis-Hastings."""

from glasshouse.graph.sampling.chains.gibbs import gibbs_masks
from glasshouse.graph.sampling.chains.metropolis import metropolis_masks
from glasshouse.graph.sampling.chains.record import ChainInfo

__all__ = ["ChainInfo", "gibbs_masks", "metropolis_masks"]
