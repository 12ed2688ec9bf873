"""What is wrong with samples, grouped: the same reason for a missing score, or the same finding of a judge.

A missing score belongs to the group of its scorer, its outcome and its reason, whatever the numbers and the quoted
texts in it are. A score that isn't perfect belongs to a group for each finding in its evidence, such as a claim that no
passage supports: of its scorer, its label and its text, whatever the case, the punctuation and the spaces are. Without
findings, it is grouped by its reason in the same way, unless that only counts, or only lists passages by number: these
mean something else in each sample.
"""

from __future__ import annotations

import functools
import hashlib
import re
import sqlite3
from collections.abc import Mapping
from typing import Any

from evalstone._core.json import to_jsonable
from evalstone.results.summary import ScorerInfo
from evalstone.results.views.evidence import about_passages, findings_in
from evalstone.types import TOLERANCE, Failed, Outcome, Score
from evalstone.view.indexing.tables import FAILED, SCORED, SKIPPED, choice

MOST_GROUPS = 500
"""The number of groups that are kept: the largest ones."""
MOST_FINDINGS = 20
"""The number of findings that are taken from the evidence of a score."""
_VARIES = re.compile(r"""[-+]?\d[\d.,:_]*\d|\d|"[^"]*"|“[^”]*”|‘[^’]*’|`[^`]*`|(?<!\w)'[^']*'(?!\w)""")
"""Numbers and quoted texts."""
_COUNTS = re.compile(r"\b\d+ of \d+\b")
_DIGIT = re.compile(r"\d")
_BESIDES_WORDS = re.compile(r"[\W_]+")


class Groups:
    """Collects the groups of a run while its index is made.

    Args:
        connection: The index.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._found: list[tuple[int, int]] = []
        self._texts: dict[int, list[Any]] = {}
        self._members_of: set[int] = set()
        """The groups whose samples are written."""
        self._written = 0
        """The number of rows of `found` that were looked at."""
        connection.execute("CREATE TEMP TABLE found (key INTEGER, place INTEGER)")
        connection.execute(
            "CREATE TEMP TABLE wordings (key INTEGER PRIMARY KEY, scorer INTEGER, kind INTEGER, text TEXT, "
            "common TEXT, number INTEGER, first INTEGER)"
        )

    def add(self, place: int, number: int, info: ScorerInfo, outcome: Outcome) -> None:
        """Add what is wrong with a result. place: of its case; number: of its scorer."""
        if not isinstance(outcome, Score):
            kind = FAILED if isinstance(outcome, Failed) else SKIPPED
            reason = outcome.reason
            self._add(place, number, kind, {reason: with_gaps(reason)})
            return
        if info.goodness(outcome.value) >= 1 - TOLERANCE:
            return
        evidence = to_jsonable(outcome.evidence)
        findings = set[tuple[str, str]]()
        for finding in findings_in(evidence):
            findings.add(finding)
            if len(findings) == MOST_FINDINGS:
                break
        said = [f"{label}: {text}" for label, text in sorted(findings)]
        if not said and outcome.reason and not _enumerates(outcome.reason, evidence):
            said = [outcome.reason]
        self._add(place, number, SCORED, {text: text for text in said}, words=True)

    def _add(self, place: int, number: int, kind: int, texts: Mapping[str, str], *, words: bool = False) -> None:
        """texts: each with the one that the members of its group are shown with. words: whether members have the same
        words in common, and not this text."""
        keys = set[int]()
        for given, shown in texts.items():
            key, text, common = _group_of(number, kind, given, shown, words)
            row = self._texts.setdefault(key, [key, number, kind, text, common, 0, place])
            if row[3] not in (text, common):
                row[3] = row[4]
            if key not in keys:
                keys.add(key)
                row[5] += 1
                row[6] = min(row[6], place)
                self._found.append((key, place))

    def flush(self) -> None:
        """Write what was added since the last time."""
        many = self._connection.executemany
        many("INSERT INTO temp.found VALUES (?, ?)", self._found)
        many(
            "INSERT INTO temp.wordings VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
            "text = CASE WHEN text = excluded.text THEN text ELSE common END, number = number + excluded.number, "
            "first = min(first, excluded.first)",
            self._texts.values(),
        )
        self._found.clear()
        self._texts.clear()

    def write(self) -> None:
        """Write the groups so far: the largest, and of those of scores only the ones with several samples."""
        self.flush()
        execute = self._connection.execute
        execute("DELETE FROM groups")
        execute(
            "INSERT INTO groups SELECT NULL, key, scorer, kind, text, number FROM temp.wordings "
            "WHERE number > 1 OR kind != ? ORDER BY number DESC, first, scorer, key LIMIT ?",
            (SCORED, MOST_GROUPS),
        )
        keys = {key for (key,) in execute("SELECT key FROM groups")}
        for key in self._members_of - keys:
            execute("DELETE FROM members WHERE key = ?", (key,))
        new = keys - self._members_of
        if self._written and new:
            execute("CREATE INDEX IF NOT EXISTS temp.found_key ON found (key)")
            for key in new:
                execute("INSERT OR IGNORE INTO members SELECT key, place FROM temp.found WHERE key = ?", (key,))
        execute(
            "INSERT OR IGNORE INTO members SELECT key, place FROM temp.found WHERE rowid > ? "
            "AND +key IN (SELECT key FROM groups)",
            (self._written,),
        )
        self._members_of = keys
        self._written = execute("SELECT ifnull(max(rowid), 0) FROM temp.found").fetchone()[0]


@functools.lru_cache(maxsize=256)  # large runs have few reasons for most missing scores
def _group_of(number: int, kind: int, given: str, shown: str, words: bool) -> tuple[int, str, str]:
    """The key of a group, the text of a member, and the one that members are shown with. Arguments as for `_add`."""
    text, common = choice(given), choice(shown)
    alike = _BESIDES_WORDS.sub(" ", given).strip().casefold() if words else ""
    name = f"{number} {kind} {alike or common}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), signed=True), text, common


def _enumerates(reason: str, evidence: Any) -> bool:
    """Whether a reason for a score only counts something, or lists the passages that the evidence is about."""
    return _COUNTS.search(reason) is not None or (bool(about_passages(evidence)) and _DIGIT.search(reason) is not None)


def with_gaps(reason: str) -> str:
    """A reason without what differs from sample to sample: numbers and quoted texts."""
    return _VARIES.sub("…", reason)
