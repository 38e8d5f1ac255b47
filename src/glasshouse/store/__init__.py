"""Files and folders that are complete or absent, and that only their owner reads unless asked otherwise."""

from glasshouse.store.caches import import_numba, keep_code_private, private_folder
from glasshouse.store.folders import new_folder
from glasshouse.store.leftovers import clean_leftovers
from glasshouse.store.listing import strange_file
from glasshouse.store.modes import file_mode, make_folders, sharing
from glasshouse.store.names import check_name, resolved
from glasshouse.store.places import MADE_AGAIN, PAGE_MARK, check_free, check_page, digest, found_run
from glasshouse.store.writing import write_file

__all__ = [
    "MADE_AGAIN",
    "PAGE_MARK",
    "check_free",
    "check_name",
    "check_page",
    "clean_leftovers",
    "digest",
    "file_mode",
    "found_run",
    "import_numba",
    "keep_code_private",
    "make_folders",
    "new_folder",
    "private_folder",
    "resolved",
    "sharing",
    "strange_file",
    "write_file",
]
