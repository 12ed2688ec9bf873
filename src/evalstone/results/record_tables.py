"""Records as tables of plain columns, for Parquet files: one row for each record, and one for each judge call.

    sample_id  trial  scorer  signature  outcome  kind  value  scale  reason  evidence  seconds  cost  group  weight
    error  reply  exception  traceback  exact

`kind` is more exact than `outcome`: whether a skipped sample is unanswered, and whether the target failed. Evidence,
answers, alternatives, members and details are JSON texts. `exact` is almost always null. Parquet's texts are UTF-8 and
its integers have 64 bits; if one of a row doesn't fit, `exact` is a JSON object with it, and its column has the text
with escapes, or null.

What a table keeps of its records:

- `all`: everything that `records.jsonl` has.
- `evidence`: no judge calls.
- `scores`: no evidence and no reason of scores, either. Why a sample was skipped or failed is always kept.
"""

from __future__ import annotations

import importlib
import json
import math
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal, TypeAlias, get_args

from evalstone._core.file_format import FileFormat
from evalstone._core.json import storable, to_jsonable, value_of
from evalstone._core.redaction import redacted
from evalstone._core.sizes import MOST_SCALE
from evalstone._core.validation import read_data
from evalstone.datasets.stored import record_line
from evalstone.datasets.writing import json_line, plain_line
from evalstone.errors import ConfigError, DataError, EvalstoneError, MissingDependency, invalid
from evalstone.results.columns import kind_of
from evalstone.results.judge_stats import JudgeStats
from evalstone.results.stored_records import Facts
from evalstone.results.summary import ScorerCounts, ScorerInfo
from evalstone.stats.exact_sum import ExactSum
from evalstone.types import OUTCOME_NAMES, Failed, JudgeCall, Outcome, Record, Score, Skipped
from evalstone.types.records import scored_record

Keep: TypeAlias = Literal["all", "evidence", "scores"]
"""How much a table keeps of its records."""
KEEPS: tuple[Keep, ...] = get_args(Keep)
RECORDS_FORMAT = FileFormat("records/1")
CALLS_FORMAT = FileFormat("calls/1")
ABOUT = b"evalstone"
"""The key of what the metadata of a table say."""
_RECORD_TYPES: Mapping[str, str] = {
    "sample_id": "text",
    "trial": "int",
    "scorer": "word",
    "signature": "word",
    "outcome": "word",
    "kind": "word",
    "value": "float",
    "scale": "float",
    "reason": "text",
    "evidence": "text",
    "seconds": "float",
    "cost": "float",
    "group": "word",
    "weight": "float",
    "error": "text",
    "reply": "text",
    "exception": "word",
    "traceback": "text",
    "exact": "text",
}
_CALL_TYPES: Mapping[str, str] = {
    "record": "int",
    "sample_id": "text",
    "trial": "int",
    "scorer": "word",
    "question": "word",
    "fingerprint": "text",
    "judge": "word",
    "answer": "text",
    "input_tokens": "int",
    "output_tokens": "int",
    "cached_tokens": "int",
    "requests": "int",
    "cost": "float",
    "seconds": "float",
    "probability": "float",
    "source": "word",
    "reply": "text",
    "alternatives": "text",
    "refused_settings": "text",
    "repeat_index": "int",
    "members": "text",
    "detail": "text",
    "exact": "text",
}
_USAGE = {"input_tokens": "input", "output_tokens": "output", "cached_tokens": "cached", "requests": "requests"}
_AS_JSON = ("answer", "alternatives", "refused_settings", "members", "detail")
_LISTS = ("refused_settings", "members")
"""Lists that are null if they are empty."""
_ERROR = ("reply", "exception", "traceback")
_LARGEST = 2**63


def record_tables(
    records: Iterable[Record], scorers: Sequence[ScorerInfo], keep: Keep = "all", **about: Any
) -> tuple[Any, Any | None]:
    """The pyarrow tables of records and of their judge calls. Secrets are replaced by `***`, as in `records.jsonl`.

    The metadata of the first one have `about` and, for each scorer, what a summary needs besides the values. Those of
    the second one have the questions to composite judges.

    Args:
        records: Records in the order of samples, and of the scorers for each.
        scorers: The scorers of the run.
        keep: How much the tables keep of each record.
        about: What else the metadata say, as JSON data.

    Returns:
        The tables. The second one is None if it would have nothing: no calls are kept, and no judge is a composite one.

    Raises:
        MissingDependency: pyarrow is not installed.
        ConfigError: A number is NaN or infinite, or a record is of none of the scorers.
    """
    counts = {info.signature: ScorerCounts() for info in scorers}
    sums, seconds = defaultdict[str, ExactSum](ExactSum), defaultdict[str, ExactSum](ExactSum)
    scales = {info.signature: info.scale for info in scorers}
    questions: list[Sequence[Any]] = []
    stats = JudgeStats(questions)
    rows, call_rows, number = _Rows(_RECORD_TYPES), _Rows(_CALL_TYPES), 0
    for number, record in enumerate(records):
        if record.signature not in scales:
            raise ConfigError(invalid("signature", "that of a scorer of the run", record.signature))
        row, calls = _row(record), [*map(_call_row, record.calls)] if keep == "all" else []
        if _has_secret(row, calls or [*map(_call_row, record.calls)]):
            record = Record.from_dict(json.loads(record_line(record)))
            row, calls = _row(record), [*map(_call_row, record.calls)] if keep == "all" else []
        counts[record.signature].add(record, scales[record.signature])
        if record.value is not None:
            sums[record.signature].add(record.value)
        seconds[record.signature].add(record.seconds)
        stats.add(record)
        if keep == "scores" and row["outcome"] == "score":
            row["reason"] = row["evidence"] = None
        rows.append(row)
        for call in calls:
            of_record = {name: row[name] for name in ("sample_id", "trial", "scorer")}
            call_rows.append({"record": number, **of_record, **call})
    described = [
        {
            **info.to_stored(),
            "counts": counts[info.signature].to_dict(),
            "sum": sums[info.signature].parts,
            "seconds": seconds[info.signature].parts,
        }
        for info in scorers
    ]
    has_calls = keep == "all" or questions
    return (
        rows.table({"format": RECORDS_FORMAT, "keep": keep, **about, "scorers": described}),
        call_rows.table({"format": CALLS_FORMAT, **about, "questions": questions}) if has_calls else None,
    )


def records_of(records: Any, calls: Any | None = None, first: int = 0) -> list[Record]:
    """The records in the rows of a table.

    Args:
        records: Rows of the table of records.
        calls: The rows of the table of calls that belong to them; None if there is none.
        first: The number of the first row in its table.

    Raises:
        DataError: A value is not what its column should have; the message names row and column.
    """
    calls_of: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for row in _exact_rows(calls, _CALL_TYPES) if calls is not None else ():
        calls_of[row["record"]].append(row)
    found: list[Record] = []
    for number, row in enumerate(_exact_rows(records, _RECORD_TYPES), first):
        try:
            own = calls_of.get(number, ())
            usual = None if own else _usual(row)
            found.append(_record_of(row, [*map(_call_of, own)]) if usual is None else usual)
        except EvalstoneError as error:
            raise DataError(f"row {number}: ", error) from None
    return found


def facts_of(records: Any) -> list[Facts | None]:
    """What the rows of a table of records have besides evidence, made faster than the records. None for some rows, such
    as those of failed records: their records have it."""
    names = (*Facts._fields, "exact")
    found: list[Facts | None] = []
    for row in zip(*(listed(records.column(name)) for name in names), strict=True):
        sample, scorer, outcome, value, scale, reason, group, seconds, cost, signature, weight, trial, exact = row
        if outcome == "score":
            is_valid = type(value) is type(scale) is float and 0 <= value <= scale <= MOST_SCALE
            reason = reason or ""
        else:
            is_valid = outcome == "skipped" and value is scale is None and reason is not None
        if (
            is_valid
            and exact is None
            and _is_finite(seconds)
            and (cost is None or _is_finite(cost))
            and (weight is None or 0 < weight < math.inf)
        ):
            rest = group, seconds, cost, signature, weight, trial
            found.append(Facts(sample, scorer, outcome, value, scale, str(reason), *rest))
        else:
            found.append(None)
    return found


def _is_finite(number: float | None) -> bool:
    return number is not None and -math.inf < number < math.inf


def about(schema: Any, kind: FileFormat, source: str) -> dict[str, Any]:
    """What the metadata of a table say. source: Its name in messages.

    Raises:
        DataError: Nothing of evalstone, or of another format.
    """
    stored: Mapping[bytes, bytes] = schema.metadata or {}
    try:
        data = json.loads(stored[ABOUT])
    except (KeyError, ValueError):
        raise DataError(f"{source} is no table of evalstone: its metadata have no {ABOUT.decode()!r}") from None
    kind.check(data, source)
    return data


def as_kept(table: Any, keep: Keep, plan: str) -> Any:
    """A table of records or of calls, as one of another plan that keeps at most as much.

    Call it for tables without calls.
    """
    arrow, said = _arrow(), json.loads(table.schema.metadata[ABOUT])
    if "keep" in said:
        said["keep"] = keep
        if keep == "scores":
            compute: Any = importlib.import_module("pyarrow.compute")
            scored = compute.equal(table.column("outcome"), "score")
            for name in ("reason", "evidence"):
                cleared = compute.if_else(scored, arrow.scalar(None, arrow.string()), table.column(name))
                table = table.set_column(table.schema.get_field_index(name), name, cleared)
    return table.replace_schema_metadata({ABOUT: json_line({**said, "plan": plan})})


def with_plain_texts(table: Any) -> Any:
    """A table whose texts aren't encoded as dictionaries, which some engines don't read."""
    types = _types()
    fields = [each.with_type(each.type.value_type) if types.is_dictionary(each.type) else each for each in table.schema]
    return table.cast(_arrow().schema(fields))


def check_columns(schema: Any, kind: FileFormat, source: str) -> None:
    """Raise DataError if a table lacks a column, or one has another type; the message names both. Columns that it
    doesn't know are ignored: a newer version may have written them."""
    types = _types()
    for name, expected in (_RECORD_TYPES if kind == RECORDS_FORMAT else _CALL_TYPES).items():
        place = schema.get_field_index(name)
        if place < 0:
            raise DataError(f"{source} has no column {name}")
        found = schema.field(place).type
        plain = found.value_type if types.is_dictionary(found) else found
        checks: Mapping[str, Callable[[Any], bool]] = {
            "int": types.is_integer,
            "float": types.is_floating,
            "text": lambda one: types.is_string(one) or types.is_large_string(one),
        }
        if not checks["text" if expected == "word" else expected](plain):
            raise DataError(f"{source}: column {name} must be {_WORDS[expected]}, not {found}")


_WORDS = {"int": "integers", "float": "numbers", "text": "texts", "word": "texts"}


# ---- Rows ----


def _row(record: Record) -> dict[str, Any]:
    outcome = record.outcome
    row: dict[str, Any] = {
        "sample_id": record.sample_id,
        "trial": record.trial,
        "scorer": record.scorer,
        "signature": record.signature,
        "outcome": OUTCOME_NAMES[type(outcome)],
        "kind": kind_of(record),
        "reason": outcome.reason,
        "seconds": record.seconds,
        "cost": record.cost,
        "group": record.group,
        "weight": record.weight,
    }
    if isinstance(outcome, Score):
        row |= {"value": outcome.value, "scale": outcome.scale, "evidence": json_line(outcome.evidence)}
    elif isinstance(outcome, Failed):
        row |= {"error": outcome.error, **{name: getattr(outcome, name) for name in _ERROR}}
    return row


def _record_of(row: Mapping[str, Any], calls: list[dict[str, Any]]) -> Record:
    outcome: Outcome
    match row["outcome"]:
        case "score":
            evidence = () if row["evidence"] is None else _json(row, "evidence")
            outcome = read_data(Score, {**row, "reason": row["reason"] or "", "evidence": evidence})
        case "skipped":
            outcome = read_data(Skipped, row)
        case "failed":
            outcome = read_data(_StoredFailure, row).outcome
        case other:  # of a newer version
            outcome = Skipped(f"{other}: {read_data(Skipped, row).reason}")
    return read_data(
        Record, {**row, "outcome": outcome, "calls": calls, "left_out_cost": 0.0 if calls else row["cost"]}
    )


_SCORED = itemgetter("sample_id", "scorer", "signature", "value", "scale", "seconds", "cost")


def _usual(row: Mapping[str, Any]) -> Record | None:
    """The record of a score without judge calls, like most of a large run, made faster; None for any other row."""
    if row["outcome"] != "score" or not row["trial"] is row["group"] is row["weight"] is None:
        return None
    evidence = () if row["evidence"] is None else _json(row, "evidence")
    sample, scorer, signature, value, scale, seconds, cost = _SCORED(row)
    return scored_record(sample, scorer, signature, value, scale, row["reason"] or "", evidence, seconds, cost)


def _json(row: Mapping[str, Any], name: str) -> Any:
    try:
        return value_of(row[name])
    except (ValueError, TypeError, RecursionError):
        raise DataError(invalid(name, "JSON", row[name])) from None


@dataclass(frozen=True)
class _StoredFailure:
    """The columns of a failed record."""

    error: str
    reply: str | None
    exception: str | None
    traceback: str | None

    @property
    def outcome(self) -> Failed:
        return Failed(self.error, self.reply, self.exception, self.traceback)


def _call_row(call: JudgeCall) -> dict[str, Any]:
    data: dict[str, Any] = to_jsonable(call)
    usage = data.pop("usage")
    row = {**data, **{name: usage[own] for name, own in _USAGE.items()}}
    for name in _AS_JSON:
        value = row[name]
        row[name] = None if value is None or (name in _LISTS and not value) else plain_line(value)
    return row


def _call_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """A call as `records.jsonl` has it."""
    data = {**row, "usage": {own: row[name] for name, own in _USAGE.items()}}
    for name in _AS_JSON:
        data[name] = None if row[name] is None else _json(row, name)
    for name in _LISTS:
        data[name] = data[name] or []
    return data


def _has_secret(row: Mapping[str, Any], calls: Iterable[Mapping[str, Any]]) -> bool:
    texts = "\0".join(value for each in (row, *calls) for value in each.values() if type(value) is str)
    return redacted(texts) != texts


# ---- Columns ----


class _Rows:
    """Rows of a table that is being built, by column."""

    def __init__(self, types: Mapping[str, str]) -> None:
        self._types = types
        self._columns: dict[str, list[Any]] = {name: [] for name in types}

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row. Columns that it doesn't have are null."""
        for name, column in self._columns.items():
            column.append(row.get(name))

    def table(self, about: Mapping[str, Any]) -> Any:
        """The table, with these metadata."""
        arrow, schema = _arrow(), _schema(self._types)
        exact: dict[int, dict[str, Any]] = defaultdict(dict)
        arrays = [self._array(name, self._columns[name], exact) for name in self._types if name != "exact"]
        others = [json.dumps(exact[row]) if row in exact else None for row in range(len(arrays[0]))]
        arrays.append(arrow.array(others, arrow.string()))
        metadata = {ABOUT: redacted(json_line(about))}
        return arrow.Table.from_arrays(arrays, schema=schema.with_metadata(metadata))

    def _array(self, name: str, values: list[Any], exact: dict[int, dict[str, Any]]) -> Any:
        arrow, kind = _arrow(), self._types[name]
        if kind == "float":
            for value in values:
                if value is not None and not math.isfinite(value):
                    raise ConfigError(invalid(name, "finite", value))
            return arrow.array(values, arrow.float64())
        if kind == "int":
            for row, value in enumerate(values):
                if value is not None and not -_LARGEST <= value < _LARGEST:
                    exact[row][name], values[row] = value, None
            return arrow.array(values, arrow.int64())
        try:
            array = arrow.array(values, arrow.string())
        except UnicodeEncodeError:
            for row, text in enumerate(values):
                if text is not None and not _is_utf8(text):
                    exact[row][name], values[row] = text, storable(text)
            array = arrow.array(values, arrow.string())
        return array if kind == "text" else array.dictionary_encode()


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def exact_values(table: Any, name: str) -> list[Any]:
    """The values of a column, with those of `exact`."""
    values, exact = listed(table.column(name)), table.column("exact")
    if exact.null_count < len(values):
        for row, other in enumerate(exact.to_pylist()):
            values[row] = values[row] if other is None else json.loads(other).get(name, values[row])
    return values


def _exact_rows(table: Any, types: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The rows of a table, with the values of `exact` in their columns."""
    columns = {name: listed(table.column(name)) for name in types}
    exact = columns.pop("exact")
    for values, other in zip(zip(*columns.values(), strict=True), exact, strict=True):
        row = dict(zip(columns, values, strict=True))
        yield row if other is None else {**row, **json.loads(other)}


def listed(column: Any) -> list[Any]:
    """The values of a column, with one object for equal texts of a dictionary. `to_pylist` takes up to ten times as
    long for all but plain texts."""
    if hasattr(column, "chunks"):
        return [value for chunk in column.chunks for value in listed(chunk)]
    if column.null_count == len(column):
        return [None] * len(column)
    if hasattr(column, "indices"):
        words: list[Any] = column.dictionary.to_pylist()
        return [None if index is None else words[index] for index in listed(column.indices)]
    code = {"double": "d", "int64": "q", "int32": "i"}.get(str(column.type))
    if code is None or column.null_count:
        return column.to_pylist()
    numbers = array(code, bytes(column.buffers()[1]))
    return [*numbers[column.offset : column.offset + len(column)]]


def _schema(types: Mapping[str, str]) -> Any:
    arrow = _arrow()
    kinds = {
        "text": arrow.string(),
        "word": arrow.dictionary(arrow.int32(), arrow.string()),
        "int": arrow.int64(),
        "float": arrow.float64(),
    }
    return arrow.schema([(name, kinds[kind]) for name, kind in types.items()])


def _arrow() -> Any:
    try:
        return importlib.import_module("pyarrow")
    except ImportError:
        raise MissingDependency("pyarrow", "parquet") from None


def check_installed() -> None:
    """Raise MissingDependency unless pyarrow is installed."""
    _arrow()


def _types() -> Any:
    return _arrow().types
