"""Doors to files that may come from strangers: one per kind, each judges sizes first and gives one clear line."""

from glasshouse.reading.arrays import check_array, check_sparse, read_npz
from glasshouse.reading.doors import file_size, guarded, read_content
from glasshouse.reading.json_files import read_json
from glasshouse.reading.memory import as_bytes, check_memory, current_limit, memory_limit, memory_of, process_limit
from glasshouse.reading.tensors import read_safetensors
from glasshouse.reading.yaml_files import read_settings
from glasshouse.reading.zips import judge_zip

__all__ = [
    "as_bytes",
    "check_array",
    "check_memory",
    "check_sparse",
    "current_limit",
    "file_size",
    "guarded",
    "judge_zip",
    "memory_limit",
    "memory_of",
    "process_limit",
    "read_content",
    "read_json",
    "read_npz",
    "read_safetensors",
    "read_settings",
]
