"""Looks at a growing run: the gates on a results folder, stored in its `gates.jsonl`, one line each.

A gate on new data is the next look; a gate on data that was gated before is the same look again. The data are a
scorer's outcomes under one judge, by sample, and the labels that correct them. A sequential gate, which watched the
scores as they arrived, is a different test from a gate on the finished run, so the latter is the next look.
`evalstone run --out FOLDER` doesn't touch the file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalstone._core.file_format import LOOK_FORMAT
from evalstone._core.files import file_values, private
from evalstone._core.front_ends import Setting, WordingPart
from evalstone._core.json import content_hash, to_jsonable
from evalstone._core.redaction import redacted
from evalstone._core.validation import read_data
from evalstone.datasets.writing import json_line
from evalstone.errors import DataError, invalid
from evalstone.results.gate_criteria import BY_SCORER, GateCriteria
from evalstone.results.human_labels import Labels

if TYPE_CHECKING:
    from evalstone.results.run import Run

LOOKS = "gates.jsonl"


@dataclass(frozen=True, kw_only=True)
class Look:
    """A gate on a results folder."""

    look: int
    """The number of the look, from 1."""
    data: Mapping[str, str]
    """By scorer and judge, a hash of the outcomes."""
    criteria: Mapping[str, Any]
    """The criteria, by check and scorer signature."""
    alpha: float
    """The error rate over all looks."""
    missing: str
    """How samples without a score counted."""
    verdict: str
    """The gate's verdict."""
    time: str = field(compare=False)
    """When, in UTC (ISO 8601)."""


def next_look(folder: str | Path, run: Run, criteria: GateCriteria, *labels: Mapping[str, Labels] | None) -> int:
    """The number of the look that a gate on the folder's run would be.

    Args:
        folder: the results folder.
        run: the run.
        criteria: the gate's criteria.
        labels: the labels of the run and of the baseline, as for `gate`.

    Raises:
        DataError: the folder's `gates.jsonl` can't be read (the message names the line), or isn't a regular file.
    """
    try:
        looks, number = list(_looks(Path(folder) / LOOKS)), 1
    except DataError as error:
        raise DataError(error, ". Fix the file, or set the number of this look with ", Setting("look", ...)) from None
    for key, data in _data(run, criteria, labels, watched=False).items():
        earlier = [look for look in looks if key in look.data]
        same = [look.look for look in earlier if look.data[key] == data]
        number = max(number, same[-1] if same else 1 + max((look.look for look in earlier), default=0))
    return number


def remember(
    folder: str | Path,
    run: Run,
    criteria: GateCriteria,
    verdict: str,
    *labels: Mapping[str, Labels] | None,
    look: int,
    alpha: float,
    missing: str,
    watched: bool = False,
) -> tuple[WordingPart, ...]:
    """Append a gate on the folder's run to its `gates.jsonl`, unless it is already there.

    A gate without a test isn't a look, and neither is one of a run that was broken off, which decides nothing.

    watched: whether the gate watched the scores as they arrived.

    Returns:
        A warning that says why the look couldn't be written; empty if it was.
    """
    if not criteria.tested or run.ending.broken_off:
        return ()
    tables: dict[str, Mapping[str, Any]] = {check: getattr(criteria, check) for check in BY_SCORER}
    new = Look(
        look=look,
        data=_data(run, criteria, labels, watched=watched),
        criteria={
            check: {run[name].info.signature: to_jsonable(value) for name, value in table.items()}
            for check, table in tables.items()
            if table
        },
        alpha=alpha,
        missing=missing,
        verdict=verdict,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    file = Path(folder) / LOOKS
    try:
        if new in _looks(file):
            return ()
        before = file.read_bytes() if file.exists() else b""
        start = "\n" if before and not before.endswith(b"\n") else ""  # an editor may have removed the last one
        with open(file, "a", encoding="utf-8", newline="\n", opener=private) as stream:
            stream.write(start + redacted(json_line({"format": LOOK_FORMAT, **to_jsonable(new)})) + "\n")
    except (DataError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        return (
            f"look {look} can't be written to {file}: {why}. After adding samples, gate the run with ",
            Setting("look", look + 1),
            f", or its error rate may be above {100 * alpha:g}%",
        )
    return ()


def _looks(file: Path) -> Iterator[Look]:
    try:
        if not stat.S_ISREG(file.lstat().st_mode):  # a pipe would block, and a link could lead anywhere
            raise DataError(f"{file} is not a regular file")
        for place, value in file_values(file):
            try:
                LOOK_FORMAT.check(value)
                look = read_data(Look, value)
            except DataError as error:
                raise DataError(f"{place}: ", error) from None
            if look.look < 1:
                raise DataError(f"{place}: ", invalid("look", "1 or more", look.look))
            yield look
    except FileNotFoundError:
        return
    except OSError as error:
        raise DataError(f"{file} can't be read: {os.strerror(error.errno or 0)}") from None


def _data(
    run: Run, criteria: GateCriteria, labels: Sequence[Mapping[str, Labels] | None], *, watched: bool
) -> dict[str, str]:
    """By scorer and judge, a hash of the tested data of each scorer with a criterion."""
    infos = {info.signature: info for info in (run[name].info for name in criteria.tested)}
    in_order, data = watched or run.drawn is not None, dict[str, str]()
    for signature in sorted(infos):
        names = signature, infos[signature].name, run.titles[signature]
        human = [sorted(of.items()) for table in labels for name, of in (table or {}).items() if name in names]
        key = f"{signature} by {run.judge_of(signature)}{', corrected by labels' if human else ''}"
        tested = run.columns.outcomes_hash(signature)
        data[redacted(key)] = content_hash([tested, human, in_order]) if human or in_order else tested
    return data
