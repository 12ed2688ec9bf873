"""Stored calibrations: files next to the ledger, one for each judge, scorer and set of labels."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from evalstone._core.files import cannot_write, file_text, make_folder
from evalstone._core.json import content_hash
from evalstone.datasets.writing import write_jsonl
from evalstone.errors import DataError
from evalstone.results.calibration import Calibration

if TYPE_CHECKING:
    from evalstone.results.run import Run

FOLDER = "calibrations"
HOME = ".evalstone"


def calibrations_folder(ledger: str | Path) -> Path:
    """The folder of a ledger's calibrations: `calibrations` next to its file.

    For a ledger on a server, it is `.evalstone/calibrations` in the working directory. If `ledger` is an existing
    folder, it is that folder.
    """
    text = str(ledger).removeprefix("sqlite:///")
    if "://" in text:
        return Path(HOME) / FOLDER
    path = Path(text)
    return path if path.is_dir() else path.parent / FOLDER


def _file_name(judge: str, signature: str, labels: str) -> str:
    return "-".join(content_hash(part)[:12] for part in (judge, signature, labels)) + ".json"


def calibration_file(calibration: Calibration, ledger: str | Path) -> Path:
    """The file of a calibration, determined by its judge, scorer and labels."""
    name = _file_name(calibration.judge, calibration.signature, calibration.labels_id)
    return calibrations_folder(ledger) / name


def kept_calibration(calibration: Calibration, ledger: str | Path) -> Calibration | None:
    """The stored calibration of the same judge, scorer and labels, if this one must not replace it; else None.

    A stored calibration without a flaw is never replaced by one with a flaw.
    """
    file = calibration_file(calibration, ledger)
    if calibration.flaw is None or not file.is_file():
        return None
    try:
        stored = read_calibration(file)
    except DataError:  # an unreadable file can be replaced
        return None
    return stored if stored.flaw is None else None


def save_calibration(calibration: Calibration, ledger: str | Path) -> Path | None:
    """Store a calibration next to the ledger, replacing that of the same judge, scorer and labels.

    Returns:
        The file, or None if a better calibration is kept (see `kept_calibration`).

    Raises:
        ConfigError: the file cannot be written.
    """
    if kept_calibration(calibration, ledger) is not None:
        return None
    file = calibration_file(calibration, ledger)
    try:
        make_folder(file.parent)
    except OSError as error:
        raise cannot_write(f"calibrations cannot be written to {file.parent}", error) from None
    write_jsonl(file, [calibration.to_dict()])
    return file


def calibrations_for(
    judge: str, signature: str, ledger: str | Path, keeps_reasoning: bool | None = None
) -> tuple[Calibration, ...]:
    """The stored calibrations of a judge with a scorer, one for each set of labels, the best first.

    Usable ones come before unusable ones, then flawless ones before flawed ones, then later ones before earlier ones.

    Args:
        judge: the judge's identity.
        signature: the scorer's signature.
        ledger: a ledger's path or URL, or a folder of calibrations.
        keeps_reasoning: whether the scores are of outputs with the reasoning in front of them; None if they have none.
            Calibrations of the other kind of scores are left out.

    Raises:
        DataError: a file cannot be read as a calibration.
    """
    return best_first(_stored(ledger, f"{file_prefix(judge, signature)}-*.json"), judge, signature, keeps_reasoning)


def file_prefix(judge: str, signature: str) -> str:
    """How the names of the files of a judge's calibrations with a scorer begin."""
    return _file_name(judge, signature, "").rpartition("-")[0]


def best_first(
    stored: Iterable[Calibration], judge: str, signature: str, keeps_reasoning: bool | None = None
) -> tuple[Calibration, ...]:
    """Those calibrations that `calibrations_for` returns, in its order."""
    found = [one for one in stored if (one.judge, one.signature) == (judge, signature)]
    found = [one for one in found if {one.keeps_reasoning, keeps_reasoning} != {True, False}]
    found.sort(key=lambda one: one.created, reverse=True)
    return tuple(sorted(found, key=lambda one: (one.unusable is not None, one.flaw is not None)))


def calibration_for(
    judge: str, signature: str, ledger: str | Path, keeps_reasoning: bool | None = None
) -> Calibration | None:
    """The best stored calibration of a judge with a scorer, or None. Arguments and errors as for `calibrations_for`."""
    return next(iter(calibrations_for(judge, signature, ledger, keeps_reasoning)), None)


def calibrations_of(run: Run, ledger: str | Path) -> dict[str, tuple[Calibration, ...]]:
    """By signature, the stored calibrations of each scorer of a run that used a judge, the best first.

    Raises:
        DataError: a file cannot be read as a calibration.
    """
    judged = [line.info.signature for line in run.summary if line.judges]
    return {
        signature: calibrations_for(run.judge_of(signature), signature, ledger, run.keeps_reasoning)
        for signature in judged
    }


def list_calibrations(ledger: str | Path) -> tuple[Calibration, ...]:
    """All calibrations stored next to a ledger, or in a folder, sorted by judge, scorer and labels.

    Raises:
        DataError: a file cannot be read as a calibration.
    """
    return tuple(sorted(_stored(ledger), key=lambda one: (one.judge, one.signature, one.labels, one.columns)))


def calibration_files(ledger: str | Path, pattern: str = "*-*.json") -> list[Path]:
    """The files of the calibrations next to a ledger, or in a folder."""
    folder = calibrations_folder(ledger)
    return sorted(folder.glob(pattern)) if folder.is_dir() else []


def _stored(ledger: str | Path, pattern: str = "*-*.json") -> list[Calibration]:
    return [read_calibration(file) for file in calibration_files(ledger, pattern)]


def read_calibration(file: Path) -> Calibration:
    """The calibration in a file.

    Raises:
        DataError: it can't be read as a calibration.
    """
    try:
        data = json.loads(file_text(file))
        if not isinstance(data, dict):
            raise DataError(f"it must contain an object, not {type(data).__name__}")
        return Calibration.from_dict(cast("dict[str, Any]", data))
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError, DataError) as error:
        raise DataError(f"{file} is not a calibration: ", error) from None
