"""What the slices of a comparison are computed from, stored with it, so that no run is read for them.

These are the scores that are compared, as `compare` has paired them, and the slice key of each sample by the entries of
the metadata that pages offer. Numbers keep all of their bits.
"""

from __future__ import annotations

import json
import math
import sqlite3
import zlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from evalstone.results.paired_scores import PairedScores
from evalstone.results.pairing import Pairing
from evalstone.results.scores import Scores
from evalstone.results.slices import ABSENT, key_of_sample
from evalstone.results.summary import ScorerInfo
from evalstone.stats.packed_scores import LARGE, PackedScores
from evalstone.types import Sample
from evalstone.view.indexing.column_store import Array

TABLES = (
    "CREATE TABLE scored (names BLOB NOT NULL)",
    "CREATE TABLE pairs (place INTEGER PRIMARY KEY, run TEXT, signature TEXT, about BLOB, rows BLOB, a BLOB, b BLOB)",
    "CREATE TABLE keys (field TEXT PRIMARY KEY, keys TEXT NOT NULL, numbers BLOB NOT NULL)",
)
"""The IDs of the samples in the first run; the scores of each scorer in each other run, in the rows of some of these
samples; and by field the slice key of each sample, as its number among all keys."""
MOST_FIELDS, MOST_KEYS = 30, 1000
"""The numbers of fields whose slice keys are stored, and of the keys of a field. Other fields are read from the run."""
Pairs = Mapping[tuple[str, str], PairedScores]
"""By the letter of a run and the signature of a scorer in the first run."""


class ScoreWriter:
    """Stores what slices are computed from.

    Args:
        connection: A file with `TABLES`.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection, self._rows = connection, dict[str, int]()

    def add(self, place: int, letter: str, pair: PairedScores) -> None:
        """Add the scores of a scorer. place: That of these among all; letter: that of the run."""
        rows = array("q", [self._rows.setdefault(name, len(self._rows)) for name in pair.samples])
        a, b = (floats(values).tobytes() for values in (pair.a, pair.b))
        packed = map(_packed, (json.dumps(_about(pair)).encode(), rows, a, b))
        self._connection.execute(
            "INSERT INTO pairs VALUES (?, ?, ?, ?, ?, ?, ?)", (place, letter, pair.info.signature, *packed)
        )

    def write_keys(self, samples: Iterable[Sample], fields: Iterable[str]) -> None:
        """Store the slice keys, after all scores.

        Args:
            samples: Those of the first run.
            fields: The entries of the metadata by which slices are offered.
        """
        self._connection.execute("INSERT INTO scored VALUES (?)", (_packed(json.dumps([*self._rows]).encode()),))
        for field, (keys, numbers) in _keys(self._rows, samples, [*fields][:MOST_FIELDS]).items():
            stored = field, json.dumps(keys), _packed(numbers)
            self._connection.execute("INSERT INTO keys VALUES (?, ?, ?)", stored)


def stored_pairs(connection: sqlite3.Connection) -> Pairs:
    """The scores that are compared; none if slices can't be computed, as the samples of the first run aren't there."""
    names = _names(connection)
    query = "SELECT run, signature, about, rows, a, b FROM pairs ORDER BY place"
    return {
        (run, signature): _pair(json.loads(zlib.decompress(about)), _at(names, rows), _values(a), _values(b))
        for run, signature, about, rows, a, b in connection.execute(query)
    }


def stored_keys(connection: sqlite3.Connection, field: str) -> Mapping[str, str] | None:
    """The slice key of each sample by its ID in the first run; None if they aren't stored."""
    row = connection.execute("SELECT keys, numbers FROM keys WHERE field = ?", (field,)).fetchone()
    if row is None:
        return None
    keys: list[str] = json.loads(row[0])
    numbers = array("H", zlib.decompress(row[1]))
    return {name: keys[number] for name, number in zip(_names(connection), numbers, strict=True)}


def _names(connection: sqlite3.Connection) -> Sequence[str]:
    row = connection.execute("SELECT names FROM scored").fetchone()
    return [] if row is None else json.loads(zlib.decompress(row[0]))


def _keys(
    rows_of: Mapping[str, int], samples: Iterable[Sample], fields: Sequence[str]
) -> Mapping[str, tuple[list[str], array[int]]]:
    """By field, the different slice keys, and the number of the key of each row."""
    numbered: dict[str, dict[str, int]] = {field: {ABSENT: 0} for field in fields}
    numbers = {field: array("H", bytes(2 * len(rows_of))) for field in fields}
    seen = bytearray(len(rows_of))
    for sample in samples if fields else ():
        row = rows_of.get(sample.id)
        if row is None or seen[row]:  # of several trials, the first one says it
            continue
        seen[row] = True
        for field, known in [*numbered.items()]:
            numbers[field][row] = known.setdefault(key_of_sample(sample, field), len(known))
            if len(known) > MOST_KEYS:
                del numbered[field]
    # A field that no sample has is an error, which is that of the run.
    return {field: ([*known], numbers[field]) for field, known in numbered.items() if len(known) > 1}


def _about(pair: PairedScores) -> dict[str, Any]:
    return {
        "title": pair.title,
        "info": pair.info.to_stored(),
        "info_b": pair.info_b.to_stored(),
        "first": _about_scores(pair.first),
        "second": _about_scores(pair.second),
        "groups": pair.groups and [*pair.groups],
        "weights": pair.weights and [*pair.weights],
        "unpaired": pair.unpaired,
        "unscored": pair.unscored,
        "of_both": pair.of_both,
        "partners": pair.pairing.partners,
        "stopped": pair.stopped,
    }


def _about_scores(scores: Scores) -> dict[str, Any]:
    """What isn't in the pair: its samples are those of the pair, and its groups and weights are there too."""
    return {"ends": [[row, *ends] for row, ends in scores.ends.items()], "undefined": [*scores.undefined]}


def _pair(
    about: Mapping[str, Any], samples: Sequence[str], a: Sequence[float | None], b: Sequence[float | None]
) -> PairedScores:
    first, second = (
        Scores(
            names=samples,
            samples=samples,
            values=values,
            ends={row: (low, high) for row, low, high in of["ends"]},
            undefined=frozenset(of["undefined"]),
        )
        for values, of in ((a, about["first"]), (b, about["second"]))
    )
    return PairedScores(
        title=about["title"],
        info=ScorerInfo(**about["info"]),
        info_b=ScorerInfo(**about["info_b"]),
        first=first,
        second=second,
        groups=about["groups"],
        weights=about["weights"],
        unpaired=about["unpaired"],
        unscored=about["unscored"],
        of_both=about["of_both"],
        pairing=Pairing(about["partners"]),
        stopped=about["stopped"],
    )


def floats(values: Sequence[float | None]) -> Array:
    """Scores as numbers, NaN without one."""
    if isinstance(values, PackedScores):
        return values.array
    return np.array([math.nan if value is None else value for value in values])


def _values(packed: bytes) -> Sequence[float | None]:
    """Scores as columns have them."""
    values = array("d", zlib.decompress(packed))
    if len(values) >= LARGE:
        return PackedScores(values)
    return [None if math.isnan(value) else value for value in values]


def _at(names: Sequence[str], rows: bytes) -> Sequence[str]:
    return [names[row] for row in array("q", zlib.decompress(rows))]


def _packed(data: bytes | array[Any]) -> bytes:
    return zlib.compress(data, 1)
