# ruff: noqa: S608 - statements are put together from our own names
"""What people say of samples: labels, failure modes with the samples that have them, and pinned baselines.

Each write is one transaction, and durable when the function returns. An annotator has one label for a sample and a
scorer; another one replaces it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from evalstone._core.json import content_hash, storable
from evalstone._core.redaction import redacted
from evalstone.errors import DataError, invalid
from evalstone.ledger import schema
from evalstone.ledger.database import Database
from evalstone.ledger.schema import Table
from evalstone.ledger.store import Ledger
from evalstone.types.samples import case_key

Chosen: TypeAlias = Literal["stratified", "uncertain", "random", "shared", "hand"]
"""How a sample was chosen: at random within a stratum of the judge's scores where a label narrows the corrected mean
most, or where the judge is least certain; at random among all; because it is labeled in another run; or by a person."""


@dataclass(frozen=True, kw_only=True)
class _OfSample:
    """What is said of a sample of a run, or of a trial of it."""

    run: str
    sample: str
    trial: int | None = None

    @property
    def key(self) -> str:
        """The key of the sample, or of its trial."""
        return case_key(self.sample, self.trial)


@dataclass(frozen=True, kw_only=True)
class Label(_OfSample):
    """What an annotator says of a sample, for a scorer."""

    signature: str
    """The scorer's signature."""
    annotator: str
    value: float | None
    """The score on the scorer's scale; None if the annotator could not tell, and skipped the sample."""
    note: str = ""
    blind: bool = True
    """Whether neither the judge's score nor labels of others were shown."""
    chosen: Chosen = "hand"
    stratum: int | None = None
    """The stratum of the judge's score, from 0 (lowest), in which the sample was chosen at random."""
    probability: float | None = None
    """The probability of this sample among those that could be chosen; None if chance had no part in it."""
    written: float = field(default_factory=time.time)
    """When it was given, in seconds since 1970."""

    @property
    def row(self) -> dict[str, Any]:
        """The label as a row."""
        return _row(schema.labels, vars(self))


@dataclass(frozen=True, kw_only=True)
class Mode:
    """A failure mode: a kind of failure that people have named."""

    id: str
    dataset: str
    """The name of the dataset whose runs it is for."""
    name: str
    definition: str = ""
    """What a sample has that has it, in words that a judge could be asked with."""
    written: float = field(default_factory=time.time)


@dataclass(frozen=True, kw_only=True)
class ModeLabel(_OfSample):
    """A sample that has a failure mode."""

    mode: str
    """The ID of the mode."""
    annotator: str
    written: float = field(default_factory=time.time)

    @property
    def row(self) -> dict[str, Any]:
        """The assignment as a row."""
        return _row(schema.mode_labels, vars(self))


Kind = TypeVar("Kind", Label, Mode, ModeLabel)
_IDENTIFYING: Mapping[str, Sequence[str]] = {
    schema.labels.name: ("run", "sample", "trial", "signature", "annotator"),
    schema.mode_labels.name: ("mode", "run", "sample", "trial"),
}


def derived(table: Table, values: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a row of labels or modes that follow from its others.

    Raises:
        DataError: A label was chosen in a way that is unknown.
    """
    if table is schema.labels and values["chosen"] not in get_args(Chosen):
        raise DataError(invalid("chosen", f"one of {', '.join(get_args(Chosen))}", values["chosen"]))
    names = _IDENTIFYING[table.name]
    return {"id": content_hash([storable(v) if isinstance(v := values[name], str) else v for name in names])}


def _row(table: Table, values: Mapping[str, Any]) -> dict[str, Any]:
    texts = {name: storable(redacted(value)) for name, value in values.items() if isinstance(value, str)}
    row = {**values, **texts}
    return row | derived(table, row)


# ---- Labels ----


def labels(ledger: Ledger, run: str, signature: str | None = None) -> list[Label]:
    """The labels of a run, oldest first. signature: only those for this scorer."""
    return [
        label
        for label in _found(ledger, Label, schema.labels, "run = :run", {"run": storable(run)})
        if signature is None or label.signature == storable(signature)
    ]


def write_label(ledger: Ledger, label: Label) -> None:
    """Write a label in place of the one that the annotator gave before."""
    with ledger.transaction(writing=True) as database:
        database.execute(schema.labels.upsert, label.row)


def delete_label(ledger: Ledger, label: Label) -> bool:
    """Delete a label. Returns whether it was there."""
    with ledger.transaction(writing=True) as database:
        return database.execute("DELETE FROM labels WHERE id = :id", {"id": label.row["id"]}).rowcount > 0


# ---- Failure modes ----


def modes(ledger: Ledger, dataset: str) -> list[Mode]:
    """The failure modes of a dataset, oldest first."""
    return _found(ledger, Mode, schema.modes, "dataset = :dataset", {"dataset": storable(redacted(dataset))})


class ModeGone(DataError):
    """A failure mode that was deleted, or merged into another, by somebody else."""

    def __init__(self) -> None:
        super().__init__("this failure mode was deleted or merged in the meantime")


def write_mode(ledger: Ledger, mode: Mode, *, new: bool = True) -> Mode:
    """Write a mode, or its new name and definition, unless another mode of its dataset has this name. Returns the mode
    that has it.

    Args:
        ledger: The ledger.
        mode: The mode.
        new: False for a mode that has to be there.

    Raises:
        ModeGone: It has to be there, and isn't.
    """
    row = {name: storable(redacted(value)) if isinstance(value, str) else value for name, value in vars(mode).items()}
    with ledger.transaction(writing=True) as database:
        _hold(database, *([] if new else [mode.id]))
        query = f"SELECT {schema.modes.names} FROM modes WHERE dataset = :dataset"
        for found in database.execute(query, {"dataset": row["dataset"]}).fetchall():
            other = _value(Mode, schema.modes, found)
            if other.id != mode.id and other.name.casefold() == row["name"].casefold():
                return other
        database.execute(schema.modes.upsert, row)
    return mode


def delete_mode(ledger: Ledger, mode: str, *, into: str | None = None) -> None:
    """Delete a mode, if it is there.

    Args:
        ledger: The ledger.
        mode: The ID of the mode.
        into: The ID of the mode that its samples have then; None if they have none.

    Raises:
        ModeGone: The mode that its samples are to have isn't there.
    """
    with ledger.transaction(writing=True) as database:
        _hold(database, *([] if into is None else [into]))
        if into is not None:
            moved = [dataclasses.replace(each, mode=into) for each in _of_mode(database, mode)]
            database.insert_missing(schema.mode_labels, [each.row for each in moved])
        database.execute("DELETE FROM mode_labels WHERE mode = :mode", {"mode": mode})
        database.execute("DELETE FROM modes WHERE id = :mode", {"mode": mode})


def mode_labels(ledger: Ledger, run: str) -> list[ModeLabel]:
    """The samples of a run that have a mode, in the order in which it was assigned."""
    return _found(ledger, ModeLabel, schema.mode_labels, "run = :run", {"run": storable(run)})


def assign_mode(ledger: Ledger, label: ModeLabel) -> None:
    """Give a mode to a sample. Raises ModeGone if the mode isn't there."""
    with ledger.transaction(writing=True) as database:
        _hold(database, label.mode)
        database.insert_missing(schema.mode_labels, [label.row])


def unassign_mode(ledger: Ledger, label: ModeLabel) -> None:
    """Take a mode from a sample."""
    with ledger.transaction(writing=True) as database:
        database.execute("DELETE FROM mode_labels WHERE id = :id", {"id": label.row["id"]})


def _hold(database: Database, *needed: str) -> None:
    """Keep others from changing modes until the transaction ends. Raises ModeGone if a needed one isn't there."""
    if database.lock_modes:
        database.execute(database.lock_modes)
    for mode in needed:
        if database.execute("SELECT 1 FROM modes WHERE id = :mode", {"mode": mode}).fetchone() is None:
            raise ModeGone


def _of_mode(database: Database, mode: str) -> list[ModeLabel]:
    rows = database.execute(f"SELECT {schema.mode_labels.names} FROM mode_labels WHERE mode = :mode", {"mode": mode})
    return [_value(ModeLabel, schema.mode_labels, row) for row in rows.fetchall()]


# ---- Pins ----


def pins(ledger: Ledger) -> dict[str, str]:
    """The ID of the run that is the baseline of each dataset, by the dataset's name."""
    with ledger.transaction() as database:
        return dict(database.execute("SELECT dataset, run FROM pins"))


def pin(ledger: Ledger, dataset: str, run: str | None) -> None:
    """Make a run the baseline of a dataset. run: None if it has none from now on."""
    row = {"dataset": storable(redacted(dataset)), "run": storable(run or ""), "written": time.time()}
    with ledger.transaction(writing=True) as database:
        if run is None:
            database.execute("DELETE FROM pins WHERE dataset = :dataset", {"dataset": row["dataset"]})
        else:
            database.execute(schema.pins.upsert, row)


def _found(ledger: Ledger, kind: type[Kind], table: Table, where: str, values: Mapping[str, Any]) -> list[Kind]:
    with ledger.transaction() as database:
        query = f"SELECT {table.names} FROM {table.name} WHERE {where} ORDER BY written, id"
        rows: Iterable[Any] = database.execute(query, values).fetchall()
    with ledger.reading(f"a row of {table.name}"):
        return [_value(kind, table, row) for row in rows]


def _value(kind: type[Kind], table: Table, row: Any) -> Kind:
    values = table.row(row)
    return kind(**{name: values[name] for name in kind.__dataclass_fields__})
