"""Datasets: files, tables and lists, read as samples, with support for the column names of many tools."""

from evalstone.datasets.columns import FIELD_NAMES, ColumnMapping
from evalstone.datasets.loading import Dataset, Samples, load, turns
from evalstone.datasets.rows import sample_from
from evalstone.datasets.writing import json_line, write_jsonl

__all__ = [
    "FIELD_NAMES",
    "ColumnMapping",
    "Dataset",
    "Samples",
    "json_line",
    "load",
    "sample_from",
    "turns",
    "write_jsonl",
]
