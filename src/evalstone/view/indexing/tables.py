"""The tables of an index, and the form in which they have texts to filter by."""

from __future__ import annotations

from typing import get_args

from evalstone._core.display import visible
from evalstone._core.json import storable
from evalstone.results.losses import Loss

FORMAT = "view-index/8"
LONGEST_CHOICE = 500
"""The most characters of a reason to filter by. Those that begin alike are one."""
SCORED, SKIPPED, FAILED = range(3)
"""Outcomes in a column."""
LOSSES: tuple[Loss, ...] = get_args(Loss)
"""Where low answers are lost; in a column, the number of one and one."""
CASES = """
    CREATE TABLE cases (
        place INTEGER PRIMARY KEY, key TEXT NOT NULL, sample TEXT NOT NULL, trial INTEGER, goodness REAL, cost REAL,
        tokens INTEGER, seconds REAL, latency REAL, loss TEXT, score INTEGER, skipped INTEGER, failed INTEGER{columns}
    )
"""
TOKENIZE = 'tokenize="unicode61 remove_diacritics 2"'
TABLES = f"""
    CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE excerpts (
        place INTEGER PRIMARY KEY, pack INTEGER NOT NULL, line INTEGER NOT NULL, input TEXT, answer TEXT, reference TEXT
    );
    CREATE TABLE groups (
        id INTEGER PRIMARY KEY, key INTEGER NOT NULL, scorer INTEGER, kind INTEGER, text TEXT NOT NULL, number INTEGER
    );
    CREATE TABLE members (key INTEGER, place INTEGER, PRIMARY KEY (key, place)) WITHOUT ROWID;
    CREATE TABLE fields (name INTEGER, value TEXT, place INTEGER, PRIMARY KEY (name, value, place)) WITHOUT ROWID;
    CREATE TABLE packs (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
    CREATE VIRTUAL TABLE texts USING fts5(
        id, input, answer, other, reason, content='', {TOKENIZE}
    );
"""


def choice(text: str) -> str:
    """A text as what a form offers and an address has: a browser would change line breaks, and a page shows invisible
    characters as escapes."""
    line = visible(storable(" ".join(text.split())))
    return line if len(line) <= LONGEST_CHOICE else line[: LONGEST_CHOICE - 1] + "…"
