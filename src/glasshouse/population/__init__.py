"""The population: records with stable ids and labels, and the draws of those that train a model."""

from glasshouse.population.draws import complementary_halves, random_subsets, share_size
from glasshouse.population.ids import as_ids, as_members, first_of
from glasshouse.population.population import Population, check_population, select
from glasshouse.population.protocol import AnyPopulation, as_population
from glasshouse.population.targets import check_classes

__all__ = [
    "AnyPopulation",
    "Population",
    "as_ids",
    "as_members",
    "as_population",
    "check_classes",
    "check_population",
    "complementary_halves",
    "first_of",
    "random_subsets",
    "select",
    "share_size",
]
