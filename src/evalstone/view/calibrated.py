"""What is known of the judges of a run: the notes on their calibrations beside the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalstone._core.display import by_text
from evalstone.errors import DataError
from evalstone.results.calibration import Calibration
from evalstone.results.run_notes import reasoning_kept
from evalstone.results.saved_calibrations import calibrations_folder, calibrations_for
from evalstone.results.views.calibration import calibration_notes
from evalstone.view.indexing.index import Index

Key = tuple[str, str, bool | None]
Known = Sequence[Calibration]


class Calibrations:
    """The calibrations beside a ledger. They are read once, and again if the folder changes.

    Args:
        ledger: The path or URL of the ledger; None if there is none.
    """

    def __init__(self, ledger: str | None) -> None:
        self._ledger = ledger
        self._read: tuple[object, dict[Key, Known]] = None, {}

    def notes(self, index: Index) -> list[tuple[str, bool]]:
        """A note on each calibration of a run's judges, in the words of its report, and whether it makes the scores
        doubtful. Those come first. Nothing without a ledger."""
        if self._ledger is None:
            return []
        run: dict[str, Any] = index.head["run"]
        found: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
        for title, info, line in zip(index.titles, index.scorers, run["scorers"], strict=True):
            if not line["judges"] or not line["n_score"]:
                continue
            try:
                known = self._of((", ".join(line["judges"]), info.signature, reasoning_kept(run["warnings"])))
            except DataError as error:
                return [(f"{error}. Delete it, and calibrate again.", True)]
            for text, doubtful in calibration_notes(known, line["judges"]):
                found[doubtful].append((title, text))
        every = len(index.scorers)
        return [(text, doubtful) for doubtful in found for text in by_text(found[doubtful], every, "all scorers")]

    def _of(self, key: Key) -> Known:
        folder = calibrations_folder(self._ledger or "")
        files = sorted(folder.glob("*.json")) if folder.is_dir() else []
        state = [(file.name, status.st_mtime_ns, status.st_size) for file in files for status in (file.stat(),)]
        if self._read[0] != state:
            self._read = state, {}
        known = self._read[1]
        if key not in known:
            known[key] = calibrations_for(key[0], key[1], self._ledger or "", key[2])
        return known[key]
