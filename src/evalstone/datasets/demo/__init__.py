"""Answers of real models to real questions, with the passages they were given, to try evalstone on.

The data are from RAGTruth; NOTICE.md beside this file has its authors and licence.
"""

from __future__ import annotations

from pathlib import Path

DEMO_DATA: Path = Path(__file__).with_name("ragtruth_qa.jsonl")
