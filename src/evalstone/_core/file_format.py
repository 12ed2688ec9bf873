"""The formats of evalstone's own files and of its JSON output.

Every line or object of its own has `"format": "record/1"`: what it is, and the number of its format. Readers ignore
fields that they don't know, and take a kind that they don't know as its text (`read_data`), so that new fields and
kinds don't change the number.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

from evalstone._core.guards import is_mapping
from evalstone._core.installed import update_advice
from evalstone.errors import DataError, invalid

_NAMED = re.compile(r"([a-z_]+)/(\d{1,9})")


class FileFormat(str):
    """A format, as its text: `record/1`."""

    __slots__ = ()

    def check(self, data: object, source: str = "it") -> None:
        """Raise DataError for an object of another format. The message says what to do. Anything but an object is left
        to its reader.

        source: the name of the data in the message. `evalstone` in the data is the version that wrote it.
        """
        if not is_mapping(data) or (stored := data.get("format")) == self:
            return
        writer = data.get("evalstone")
        by = f", written by evalstone {writer:.40}" if isinstance(writer, str) else ""
        shown = "no format" if stored is None else f"the format {stored!s:.40}"
        text = f"{source} has {shown}{by}; evalstone {installed_version()} reads {self}"
        error = DataError(invalid("format", self, stored).worded(text))
        (name, _, number), named = self.partition("/"), _NAMED.fullmatch(str(stored))
        if named is not None and named[1] == name and int(named[2]) > int(number):
            raise error.advised(f"it is newer: {update_advice()}")
        raise error.advised("write it again with this version")

    def is_of(self, data: object) -> bool:
        """Whether an object says that it has this format, whatever its number."""
        stored = data.get("format") if is_mapping(data) else None
        named = _NAMED.fullmatch(stored) if isinstance(stored, str) else None
        return named is not None and named[1] == self.partition("/")[0]


RECORD_FORMAT = FileFormat("record/1")
RUN_FORMAT = FileFormat("run/1")
SAMPLE_FORMAT = FileFormat("sample/1")
LABEL_FORMAT = FileFormat("label/1")
PLAN_FORMAT = FileFormat("plan/1")
IMPORT_FORMAT = FileFormat("import/1")
LOOK_FORMAT = FileFormat("look/1")
DATASET_EDITS_FORMAT = FileFormat("dataset_edits/1")
CALIBRATION_FORMAT = FileFormat("calibration/1")
ALIGNMENT_FORMAT = FileFormat("alignment/1")
JUDGES_FORMAT = FileFormat("judges/1")
TOOL_CALLS_FORMAT = FileFormat("tool_calls/1")
JUDGE_CALL_FORMAT = FileFormat("judge_call/1")
LEDGER_ROW_FORMAT = FileFormat("ledger_row/1")
TEST_SCORE_FORMAT = FileFormat("test_score/1")
AUDIT_FORMAT = FileFormat("audit/1")
DATA_CHECK_FORMAT = FileFormat("data_check/1")
COMPARISON_FORMAT = FileFormat("comparison/1")
COUNTERPARTS_FORMAT = FileFormat("counterparts/1")
AUDIT_ESTIMATE_FORMAT = FileFormat("audit_estimate/1")
ESTIMATE_FORMAT = FileFormat("estimate/1")
ALIGNMENT_ESTIMATE_FORMAT = FileFormat("alignment_estimate/1")
EXPERIMENT_ESTIMATE_FORMAT = FileFormat("experiment_estimate/1")
EXPERIMENT_FORMAT = FileFormat("experiment/1")
GATE_FORMAT = FileFormat("gate/1")
DRIFT_FORMAT = FileFormat("drift/1")
LEDGER_FORMAT = FileFormat("ledger/1")
LIVE_COVERAGE_FORMAT = FileFormat("live_coverage/1")
LIVE_DRIFT_FORMAT = FileFormat("live_drift/1")
POWER_FORMAT = FileFormat("power/1")
SCORE_LIST_FORMAT = FileFormat("score_list/1")
SCORED_SAMPLE_FORMAT = FileFormat("scored_sample/1")
SCORER_FORMAT = FileFormat("scorer/1")
ROW_FORMATS = (SAMPLE_FORMAT, LABEL_FORMAT)
"""The formats of files that can be read as data, too."""


class SampleRow(dict[str, Any]):
    """A row that evalstone has written as a sample, without its format."""


def own_row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row of data that has a format, without it if evalstone has written it. Raises DataError for a newer format."""
    for known in ROW_FORMATS:
        if row["format"] == known or known.is_of(row):
            known.check(row)
            kind = SampleRow if known is SAMPLE_FORMAT else dict[str, Any]
            return kind((name, value) for name, value in row.items() if name != "format")
    return row


@functools.cache
def installed_version() -> str:
    """The installed version of evalstone."""
    from importlib.metadata import version  # noqa: PLC0415 - reading the metadata takes time

    return version("evalstone")
