"""Data sets: files, tables and lists, under the field names of many tools, read as samples."""

from evalstone.datasets.loading import Dataset, load
from evalstone.datasets.names import FIELD_NAMES
from evalstone.datasets.rows import sample_from
from evalstone.datasets.writing import json_line, write_jsonl

__all__ = [
    "FIELD_NAMES",
    "Dataset",
    "json_line",
    "load",
    "sample_from",
    "write_jsonl",
]
