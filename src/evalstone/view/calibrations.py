"""The calibrations beside the ledger, and what the runs on the shelf say of their judges."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evalstone._core.display import by_text
from evalstone.errors import EvalstoneError
from evalstone.results.calibration import Calibration
from evalstone.results.members import compare_with_members
from evalstone.results.run_notes import reasoning_kept
from evalstone.results.saved_calibrations import best_first, calibration_files, file_prefix, read_calibration
from evalstone.results.views.calibration import calibration_notes, calibration_view
from evalstone.types import StoredScorer
from evalstone.view.responses import NotThere
from evalstone.view.shelf import Card, Shelf

if TYPE_CHECKING:
    from evalstone.report.view import View
    from evalstone.view.indexing.index import Index


@dataclass(frozen=True)
class Filed:
    """A calibration in its file. Its ID is the name of the file."""

    id: str
    stamp: str
    calibration: Calibration | None = None
    problem: str = ""
    """Why it can't be read."""


class Calibrations:
    """The calibrations beside a ledger. What was read and computed of a file is kept until the file changes."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._filed: Mapping[str, Filed] = {}
        self._views: dict[str, tuple[Sequence[str], View]] = {}
        self._lock = threading.Lock()

    def all(self) -> list[Filed]:
        """The calibrations, sorted by scorer, judge and labels; those that can't be read last."""
        if self._shelf.ledger is None:
            return []
        with self._lock:
            found: dict[str, Filed] = {}
            for file in calibration_files(self._shelf.ledger):
                try:
                    status = file.stat()
                except OSError:  # it is gone
                    continue
                stamp = f"{status.st_mtime_ns}:{status.st_size}"
                known = self._filed.get(file.stem)
                if known is None or known.stamp != stamp:
                    try:
                        known = Filed(file.stem, stamp, read_calibration(file))
                    except EvalstoneError as error:
                        known = Filed(file.stem, stamp, problem=str(error))
                found[file.stem] = known
            self._filed = found
            return sorted(found.values(), key=_order)

    def one(self, name: str) -> tuple[Filed, Calibration]:
        """A calibration by its ID, with those of its members.

        Raises:
            NotThere: There is none.
            EvalstoneError: It can't be read.
        """
        every = self.all()
        filed = next((each for each in every if each.id == name), None)
        if filed is None:
            raise NotThere(f"There is no calibration {name} beside {', '.join(self._shelf.places) or 'the ledger'}.")
        if filed.calibration is None:
            raise EvalstoneError(filed.problem)
        members = members_of(filed.calibration, [each.calibration for each in every if each.calibration is not None])
        return filed, replace(filed.calibration, per_judge=members)

    def view(self, filed: Filed, calibration: Calibration) -> View:
        """The report of a calibration."""
        made_of = [filed.stamp, *(each.created + each.judge for each in calibration.per_judge)]
        known = self._views.get(filed.id)
        if known is None or known[0] != made_of:
            known = self._views[filed.id] = made_of, calibration_view(calibration)
        return known[1]

    def notes(self, index: Index) -> list[tuple[str, bool, str]]:
        """A note on each calibration of a run's judges, in the words of its report, whether it makes the scores
        doubtful, and its ID; "" if there is none. Doubts come first. Nothing without a ledger."""
        if self._shelf.ledger is None:
            return []
        run: dict[str, Any] = index.head["run"]
        every = self.all()
        known = [each.calibration for each in every if each.calibration is not None]
        ids = {id(each.calibration): each.id for each in every}
        found: dict[tuple[bool, str], list[tuple[str, str]]] = {}
        for title, info, line in zip(index.titles, index.scorers, run["scorers"], strict=True):
            if not line["judges"] or not line["n_score"]:
                continue
            judge = ", ".join(line["judges"])
            prefix = file_prefix(judge, info.signature)
            if problem := next((each.problem for each in every if each.problem and each.id.startswith(prefix)), ""):
                return [(f"{problem}. Delete it, and calibrate again.", True, "")]
            of_judge = best_first(known, judge, info.signature, reasoning_kept(run["warnings"]))
            noted = calibration_notes(of_judge, line["judges"], imported=bool(info.tool))
            for (text, doubtful), calibration in zip(noted, of_judge or (None,), strict=True):
                name = "" if calibration is None else ids[id(calibration)]
                found.setdefault((doubtful, name), []).append((title, text))
        scorers = len(index.scorers)
        return [
            (text, doubtful, name)
            for (doubtful, name), titled in sorted(found.items(), key=lambda each: not each[0][0])
            for text in by_text(titled, scorers, "all scorers")
        ]


def _order(filed: Filed) -> tuple[bool, str, str, str]:
    found = filed.calibration
    return (True, "", "", filed.id) if found is None else (False, found.scorer, found.judge, found.labels)


def names_judge(identity: str, judge: str) -> bool:
    """Whether a judge is one of those in an identity, such as a panel's or that of a run with several judges."""
    return re.search(rf"(?<![\w/.@-]){re.escape(judge)}(?![\w/.@-])", identity) is not None


def members_of(composite: Calibration, others: Iterable[Calibration]) -> tuple[Calibration, ...]:
    """The calibrations of a composite judge's members on the same labels."""
    same = (
        each
        for each in others
        if (each.signature, each.labels_id, each.dataset_version)
        == (composite.signature, composite.labels_id, composite.dataset_version)
    )
    found = [each for each in same if each.judge != composite.judge and names_judge(composite.judge, each.judge)]
    # A member of a member is no member.
    own = [one for one in found if not any(one is not each and names_judge(each.judge, one.judge) for each in found)]
    return tuple(own) if own and compare_with_members(composite, own) is not None else ()


def runs_by(cards: Iterable[Card], calibration: Calibration) -> list[tuple[Card, StoredScorer]]:
    """The runs that asked the judge for the same scorer, latest first."""
    return [
        (card, scorer)
        for card in cards
        if card.metadata is not None and names_judge(card.metadata.judge.identity, calibration.judge)
        for scorer in card.metadata.scorers
        if scorer.signature == calibration.signature
    ]


def anchors(runs: Iterable[tuple[Card, StoredScorer]]) -> list[list[tuple[Card, StoredScorer]]]:
    """Complete runs on the same samples with the same outputs, oldest first, if there are several."""
    groups: dict[str, list[tuple[Card, StoredScorer]]] = {}
    for card, scorer in runs:
        if card.metadata is not None and card.metadata.target is None and card.state == "complete":
            groups.setdefault(card.metadata.dataset.version, []).append((card, scorer))
    return [group[::-1] for group in groups.values() if len(group) > 1]
