"""Where calibrations are kept: one file for each judge and scorer, in the folder `calibrations` beside the ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from evalstone._core.json import content_hash
from evalstone.datasets.writing import write_jsonl
from evalstone.errors import ConfigError, DataError
from evalstone.ledger.location import file_of
from evalstone.results.calibration.values import Calibration

FOLDER = "calibrations"
HOME = ".evalstone"


def calibrations_folder(place: str | Path) -> Path:
    """The folder of the calibrations that belong to a place: a ledger's path or URL, or the folder itself.

    Beside a ledger on a server it is `.evalstone/calibrations` in the current folder.
    """
    path = Path(str(place))
    if "://" not in str(place) and path.is_dir():
        return path
    file = file_of(place)
    return (Path(HOME) if file is None else file.parent) / FOLDER


def keep(calibration: Calibration, place: str | Path) -> Path:
    """Write a calibration, whole or not at all, in the place of an earlier one of the same judge and scorer.

    Returns the file. Raises ConfigError when it cannot be written.
    """
    folder = calibrations_folder(place)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"calibrations cannot be written to {folder}: {error.strerror or error}") from None
    file = file_for(calibration.judge, calibration.scorer, folder)
    write_jsonl(file, [stored(calibration)])
    return file


def stored(calibration: Calibration) -> dict[str, Any]:
    """A calibration as it is kept: its plain data, and its measures for those who read the file."""
    from evalstone.results.calibration.measures import measured, measures_as_data  # noqa: PLC0415 - import evalstone is to be quick

    return {**calibration.to_dict(), "measures": measures_as_data(measured(calibration))}


def file_for(judge: str, scorer: str, folder: Path) -> Path:
    """The file of a judge's identity and a scorer's signature in a folder of calibrations."""
    return folder / f"{content_hash(judge)[:12]}-{content_hash(scorer)[:12]}.json"


def calibration_for(judge: str, scorer: str, place: str | Path) -> Calibration | None:
    """The calibration of a judge (its identity) with a scorer (its signature); None when there is none.

    place: a ledger's path or URL, or a folder of calibrations. Raises DataError for a file that cannot be read.
    """
    file = file_for(judge, scorer, calibrations_folder(place))
    if not file.is_file():
        return None
    found = _read(file)
    return found if (found.judge, found.scorer) == (judge, scorer) else None


def list_calibrations(place: str | Path) -> tuple[Calibration, ...]:
    """All calibrations that are kept in a place, by judge and scorer. Raises DataError as `calibration_for` does."""
    folder = calibrations_folder(place)
    found = [_read(file) for file in folder.glob("*-*.json")] if folder.is_dir() else []
    return tuple(sorted(found, key=lambda one: (one.judge, one.scorer)))


def _read(file: Path) -> Calibration:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise DataError(f"{file} is no calibration: {error}") from None
    if not isinstance(data, dict):
        raise DataError(f"{file} must hold an object, not {type(data).__name__}")
    try:
        return Calibration.from_dict(cast("dict[str, Any]", data))
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
