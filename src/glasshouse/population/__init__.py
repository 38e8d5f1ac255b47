"""The population: records with stable ids and labels, and the draws of those that train a model."""

from glasshouse.population.checking import check_population
from glasshouse.population.draws import complementary_halves, random_subsets, share_size
from glasshouse.population.features import count_records, select, table_of_numbers
from glasshouse.population.ids import as_ids, first_of
from glasshouse.population.kinds import is_frame
from glasshouse.population.members import as_members, check_members_fit
from glasshouse.population.population import Parts, Population
from glasshouse.population.protocol import AnyPopulation, as_population
from glasshouse.population.records import Records, recognised, register_records, row_batches
from glasshouse.population.targets import check_classes

__all__ = [
    "AnyPopulation",
    "Parts",
    "Population",
    "Records",
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
    "recognised",
    "register_records",
    "row_batches",
    "select",
    "share_size",
    "table_of_numbers",
]
