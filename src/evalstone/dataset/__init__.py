"""Data sets: files, tables and lists, under the field names of many tools, read as samples."""

from evalstone.dataset.loading import Dataset, load
from evalstone.dataset.names import FIELD_NAMES
from evalstone.dataset.rows import sample_from
from evalstone.dataset.writing import json_line, write_jsonl

__all__ = [
    "FIELD_NAMES",
    "Dataset",
    "json_line",
    "load",
    "sample_from",
    "write_jsonl",
]
