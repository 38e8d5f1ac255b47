"""The population: records with stable ids and labels, and the draws of those that train a model."""

from glasshouse.data.features import Records, count_records, register_records, row_batches, select, table_of_numbers
from glasshouse.data.labels import as_ids, check_classes, first_of, is_frame
from glasshouse.data.members import as_members, check_members_fit, complementary_halves, random_subsets, share_size
from glasshouse.data.population import AnyPopulation, Population, as_population, check_population
from glasshouse.data.units import Units

__all__ = [
    "AnyPopulation",
    "Population",
    "Records",
    "Units",
    "as_ids",
    "as_members",
    "as_population",
    "check_classes",
    "check_members_fit",
    "check_population",
    "complementary_halves",
    "count_records",
    "first_of",
    "is_frame",
    "random_subsets",
    "register_records",
    "row_batches",
    "select",
    "share_size",
    "table_of_numbers",
]
