"""The population: records with stable ids and labels, and the draws of those that train a model."""

from glasshouse.data.features import Records as Records
from glasshouse.data.features import count_records as count_records
from glasshouse.data.features import register_records as register_records
from glasshouse.data.features import row_batches as row_batches
from glasshouse.data.features import select as select
from glasshouse.data.features import table_of_numbers as table_of_numbers
from glasshouse.data.labels import as_ids as as_ids
from glasshouse.data.labels import check_classes as check_classes
from glasshouse.data.labels import first_of as first_of
from glasshouse.data.labels import is_frame as is_frame
from glasshouse.data.members import as_members as as_members
from glasshouse.data.members import check_members_fit as check_members_fit
from glasshouse.data.members import complementary_halves as complementary_halves
from glasshouse.data.members import random_subsets as random_subsets
from glasshouse.data.members import share_size as share_size
from glasshouse.data.population import AnyPopulation as AnyPopulation
from glasshouse.data.population import Population as Population
from glasshouse.data.population import as_population as as_population
from glasshouse.data.population import check_population as check_population
from glasshouse.data.units import Units as Units
