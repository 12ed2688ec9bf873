"""Mapping of columns to sample fields: the column names of other tools, and mappings that take precedence."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from evalstone._core.display import excerpt, named, nearest, shortlist
from evalstone._core.front_ends import Hint, Setting
from evalstone._core.guards import is_array, is_list, is_mapping, is_object
from evalstone._core.literals import written_value
from evalstone._core.names import normal
from evalstone.agents.formats.messages import is_conversation
from evalstone.errors import ConfigError, DataError, Problem, invalid, unknown

Ranks: TypeAlias = tuple[tuple[str, ...], ...]
Plan: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
Claim: TypeAlias = tuple[tuple[int, bool], str]
ColumnMapping: TypeAlias = Mapping[str, str | Sequence[str]]
"""Sample field to column. It takes precedence over the known names. `a.b` is entry b of the object in column a, or of
each object in a list there; `a.0` is the first item of a list. An empty column name leaves the field out. `context` may
name several columns, whose passages are joined."""

FIELD_NAMES: Mapping[str, Ranks] = {
    "id": (
        ("id", "_id"),
        ("sample_id", "case_id", "test_case_id", "example_id", "item_id", "record_id"),
        ("uid", "uuid", "guid"),
        ("trace_id",),
    ),
    "input": (
        ("input",),
        ("user_input", "user_text", "user_query", "user_message", "input_messages", "inputs"),
        ("question", "query", "request"),
        ("prompt", "instruction"),
        ("vars",),
    ),
    "output": (
        ("output",),
        ("response", "actual_output", "response_content", "model_output", "model_response", "outputs"),
        ("answer", "completion", "generation", "prediction", "generated_answer"),
    ),
    "context": (
        ("retrieval_context",),
        ("context",),
        ("retrieved_contexts", "retrieved_context", "contexts"),
        (
            *("documents", "passages", "data_list", "chunks", "ctxs", "retrieved_documents", "source_documents"),
            "source_nodes",
        ),
    ),
    "reference": (
        ("reference",),
        (
            "expected_output",
            "expected_response",
            "expected_answer",
            "expected",
            "reference_output",
            "reference_outputs",
        ),
        ("ground_truth", "reference_answer", "gold_answer", "correct_answer"),
        ("ground_truths", "answers", "ideal", "target", "expectations"),
        ("expected_facts",),
    ),
    "messages": (
        ("messages",),
        ("conversation", "conversations"),
        ("tools_called", "tool_calls"),
    ),
    "instructions": (
        ("instructions",),
        ("system_prompt", "system_message", "system_instructions", "system_instruction"),
        ("system",),
    ),
    "metadata": (
        ("metadata",),
        ("additional_metadata",),
    ),
    "group": (("group",),),
    "weight": (("weight",),),
    "trajectory": (
        ("trajectory",),
        ("actual_trajectory", "agent_trajectory"),
    ),
    "expected_trajectory": (
        ("expected_trajectory",),
        ("reference_trajectory",),
        ("reference_tool_calls", "expected_tools"),
    ),
    "state": (("state",),),
    "turns": (("turns",),),
}
"""The column names of each sample field, by rank. Earlier ranks take precedence; names within a rank are equivalent.

Case, `-`, `_` and spaces are ignored, except in `group` and `weight`. `retrieval_context` comes before `context`,
because in a deepeval row with both, `context` is the ideal context.
"""

CONTENT = frozenset(("input", "output", "context", "reference", "messages", "instructions", "trajectory", "turns"))
"""A row must have at least one of these fields."""
_EXAMPLES = ("input", "output", "context", "reference")
"""The fields that an example of a mapping may name."""
EXACT = frozenset(("group", "weight"))
"""The fields that are read only from a column of exactly their name: `Weight` may be in kilograms."""

BY_VALUE: Mapping[str, str] = {"state": "an object or a list", "turns": "a list"}
"""The fields that a column of their name has only in rows with a value of this form. Whoever reads the row records
them."""

GOAL = "goal"
"""The metadata of a sample whose user messages are all simulated."""

_SIMILAR = 0.8
"""How alike the names of columns must be for a hint: `date` is a quarter off `state`."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SHORT = {
    word: name
    for name, words in (
        ("answer", ("a", "ans", "reply", "antwort", "respuesta", "reponse", "risposta", "resposta", "antwoord")),
        ("response", ("resp",)),
        ("prediction", ("pred", "hypothesis")),
        ("question", ("q", "ques", "frage", "pregunta", "domanda", "pergunta", "vraag")),
        (
            "context",
            ("ctx", "doc", "docs", "nodes", "evidence", "snippet", "snippets", "kontext", "contexto", "contesto"),
        ),
        ("reference", ("gt", "ref", "truth", "solution", "referenz", "referencia")),
    )
    for word in words
}
"""Words of names of columns, and the name of a column that they stand for."""
_OF_REFERENCES = frozenset(
    (
        "benchmark",
        "correct",
        "expected",
        "expert",
        "gold",
        "golden",
        "ideal",
        "official",
        "reference",
        "sme",
        "standard",
    )
)
"""Words for an answer that is right."""

_KNOWN: Mapping[str, tuple[str, int]] = {
    normal(name): (field, rank)
    for field, ranks in FIELD_NAMES.items()
    for rank, names in enumerate(ranks)
    for name in names
}


def _known_field(column: str) -> tuple[str, int] | None:
    """The field for a column name, and the rank of the name; None if the name isn't known."""
    known = _KNOWN.get(normal(column))
    return None if known is not None and known[0] in EXACT and column != known[0] else known


def claims(columns: tuple[str, ...]) -> Mapping[str, tuple[Claim, ...]]:
    """The columns for each sample field, with their ranks, best rank first.

    The second part of a rank puts the exact field name before other spellings.
    """
    claimed: dict[str, list[Claim]] = {}
    for column in columns:
        known = _known_field(column)
        if known is not None:
            field, rank = known
            respelled = column != field and normal(column) == normal(field)
            claimed.setdefault(field, []).append(((rank, respelled), column))
    return {field: tuple(sorted(items, key=lambda claim: claim[0])) for field, items in claimed.items()}


def field_of(column: str) -> str | None:
    """The field for a column name; None if the name isn't known."""
    known = _known_field(column)
    return known and known[0]


def similar_field(column: str) -> str | None:
    """The field of a name like that of a column, or of its last word: `my_answer`, `contextText`, `context_1`. A right
    answer is the reference: `Gold Ans`."""
    words = [_SHORT.get(word, word) for word in _words(column) if word != "text"]
    if words and words[-1] != "id" and (known := field_of(words[-1])) is not None:
        return "reference" if known == "output" and not _OF_REFERENCES.isdisjoint(words) else known
    of_ids = _is_id(column)
    names = [
        name for field, ranks in FIELD_NAMES.items() if not of_ids or field == "id" for rank in ranks for name in rank
    ]
    return next((field_of(name) for name in nearest(column, names, _SIMILAR)), None)


def _words(column: str) -> list[str]:
    """The words of a name, without accents: `réponse`, `myAnswer`, `my_answer`."""
    plain = unicodedata.normalize("NFKD", column).encode("ascii", "ignore").decode()
    return [match[0].lower() for match in _WORD.finditer(plain)]


def _is_id(column: str) -> bool:
    return _words(column)[-1:] in (["id"], ["ids"])


def inner_fields(column: str, value: object) -> Iterator[tuple[str, str]]:
    """The dotted paths of what may be a field in the value of a column, each with the field: of texts in an object that
    are named like one (`data.answer`), of an assistant's message, and of conversations."""
    if is_array(value) and is_conversation(value):
        yield column, "messages"
    for key, inner in value.items() if is_object(value) else ():
        if isinstance(inner, str) and (known := similar_field(key)) in _EXAMPLES:
            yield f"{column}.{key}", known
        elif is_object(inner) and inner.get("role") == "assistant":
            yield f"{column}.{key}", "output"
        elif is_array(inner) and is_conversation(inner):
            yield f"{column}.{key}", "messages"


def unknown_field(name: str) -> Problem:
    """The error message for a name that isn't a sample field, with the field for a column of this name."""
    known, problem = field_of(name), unknown("sample field", name, FIELD_NAMES)
    if known is None:
        return problem
    return problem.worded(f"unknown sample field {name!r}; did you mean {known}?", known)


def _unmappable(field: str) -> Problem:
    """The error message for a mapping of what isn't a sample field. Entries of the metadata have the names of their
    columns."""
    problem, entry = unknown("sample field", field, FIELD_NAMES), field.removeprefix("metadata.")
    if not entry or entry == field:
        return problem
    return problem.worded(
        f"unknown sample field {field!r}: columns can't be mapped to entries of the metadata; name the column "
        f"{named(entry)}, and it becomes this entry"
    )


def inner_names(field: str) -> tuple[str, ...]:
    """The normalized keys under which an object may have the text of a field: its name, then `text` and `content`."""
    return (*(normal(name) for rank in FIELD_NAMES[field] for name in rank), "text", "content")


class Cell(NamedTuple):
    """The value of a field in a row, with its column or dotted path."""

    column: str
    value: Any


class Columns:
    """Chooses the columns of each row, and records the choices, but for `state` and `turns`.

    Args:
        mapping: As ColumnMapping.

    Raises:
        ConfigError: The mapping has an unknown field, or several columns for a field other than the context.
    """

    def __init__(self, mapping: ColumnMapping | None = None) -> None:
        self.mapping: dict[str, tuple[str, ...]] = {}
        for field, columns in _table(mapping).items():
            if field not in FIELD_NAMES:
                raise ConfigError(_unmappable(field))
            self.mapping[field] = ((columns,) if columns else ()) if isinstance(columns, str) else tuple(columns)
            if len(self.mapping[field]) > 1 and field != "context":
                raise ConfigError(f"only context takes several columns; {field} is mapped to {shortlist(columns)}")
        self.mapped = frozenset(column for columns in self.mapping.values() for column in columns)
        self.became: dict[str, str] = {}  # column to field
        self._shapes: dict[tuple[str, ...], None] = {}
        self._plans: dict[tuple[str, ...], Plan] = {}
        self._reached: set[str] = set()
        self._is_recognized = False
        """Whether a column is a field with content, or the metadata."""
        self._texts: dict[str, bool] = {}
        """While no column is recognized, those with texts, and whether one has several words."""
        self._inner: dict[str, str] = {}
        """While no column is recognized, the first path of a text in an object that is named like each field."""

    def choose(self, cells: Mapping[str, Any]) -> dict[str, Cell]:
        """The cell of each field that has one. Missing values (None) are ignored.

        Raises DataError if two columns of the same rank have different values for a field.
        """
        chosen = self._mapped(cells) if self.mapping else {}
        present = tuple([column for column, value in cells.items() if value is not None])
        plan = self._plans.get(present)
        if plan is None:
            plan = self._plans[present] = self._plan(present)
        self._shapes[tuple(cells)] = None
        if not self._is_recognized:
            self._note_texts(cells)
        for field, columns in plan:
            column = columns[0]
            chosen[field] = Cell(column, cells[column])
            rival = next((other for other in columns[1:] if cells[other] != cells[column]), None)
            if rival is not None:
                raise DataError(
                    f"columns {column!r} and {rival!r} both claim {field}, and differ",
                    Hint.of(
                        "; decide with ",
                        Setting("map", {field: named(column)}),
                        " or ",
                        Setting("map", {field: named(rival)}),
                    ),
                )
        return chosen

    def column(self, field: str, columns: Mapping[str, Any]) -> str | None:
        """The column of a field in a row, even if its cell has no value; None if there is none."""
        if field in self.mapping:
            return next((column for column in self.mapping[field] if _at(columns, column)[0]), None)
        return next((column for _, column in claims(tuple(columns)).get(field, ()) if column not in self.mapped), None)

    def has_rivals(self, cells: Mapping[str, Any]) -> bool:
        """Whether several columns of a row claim one field with the same rank."""
        present = tuple([column for column, value in cells.items() if value is not None])
        return any(len(columns) > 1 for _, columns in self._plan(present))

    def _plan(self, present: tuple[str, ...]) -> Plan:
        if not self.mapping:
            check_samples(present)
        plan: list[tuple[str, tuple[str, ...]]] = []
        for field, claimed in claims(present).items():
            free = [claim for claim in claimed if claim[1] not in self.mapped]
            if free and field not in self.mapping:
                columns = tuple(column for rank, column in free if rank == free[0][0])
                plan.append((field, columns))
                self._record(columns[0], field)
        return tuple(plan)

    def _record(self, column: str, field: str) -> None:
        if field not in BY_VALUE:
            self.became.setdefault(column, field)
            self._is_recognized = self._is_recognized or field in CONTENT or field == "metadata"

    def _mapped(self, cells: Mapping[str, Any]) -> dict[str, Cell]:
        """The mapped cells; the value of several columns is the list of their values."""
        chosen: dict[str, Cell] = {}
        for field, columns in self.mapping.items():
            values: list[Any] = []
            for column in columns:
                exists, value = _at(cells, column)
                if exists:
                    self._reached.add(column)
                if value is not None:
                    values.append(value)
                    self._record(column, field)
            if values:
                chosen[field] = Cell(" + ".join(columns), values if len(columns) > 1 else values[0])
        return chosen

    def _note_texts(self, cells: Mapping[str, Any]) -> None:
        for column, value in cells.items():
            if isinstance(value, str) and any(map(str.isalpha, value)) and field_of(column) is None:
                self._texts[column] = self._texts.get(column, False) or " " in value.strip()
            for path, name in inner_fields(column, value):
                self._inner.setdefault(name, path)

    def _example(self) -> Setting:
        """A mapping of columns that have texts: those whose names are like a field's; without an input or an output
        among them, the first other one with several words is the input, and the one after it the output."""
        of_field: dict[str, str] = {}
        for column in self._texts:
            if (known := similar_field(column)) in _EXAMPLES:
                of_field.setdefault(known, column)
        of_field = {**self._inner, **of_field}
        texts = [column for column in self._texts if column not in of_field.values() and not _is_id(column)]
        if texts and of_field.keys().isdisjoint(("input", "output", "messages")):
            asked = next((place for place, column in enumerate(texts) if self._texts[column]), None)
            if asked is None or asked + 1 == len(texts):
                of_field["output"] = texts[0 if asked is None else asked]
            else:
                of_field |= {"input": texts[asked], "output": texts[asked + 1]}
        return Setting("map", {name: named(of_field[name]) for name in (*_EXAMPLES, "messages") if name in of_field})

    def forget(self) -> None:
        """Drop what only makes reading faster."""
        self._plans.clear()

    def merge(self, later: Columns) -> None:
        """Add what was learned from later rows."""
        for column, of in later.became.items():
            self.became.setdefault(column, of)
        self._shapes |= later._shapes
        self._reached |= later._reached
        for column, has_words in later._texts.items():
            self._texts[column] = self._texts.get(column, False) or has_words
        self._inner = {**later._inner, **self._inner}

    def without_values(self, ignored: Collection[str]) -> dict[str, str]:
        """The columns that have no value in any row, and the field of each; "" for those that are no field.

        ignored: The columns with values that are no field.
        """
        mapped = {column: field for field, columns in self.mapping.items() for column in columns}
        columns = dict.fromkeys(column for shape in self._shapes for column in shape)
        return {
            column: mapped.get(column) or field_of(column) or ""
            for column in columns
            if column not in self.became and column not in ignored
        }

    def check(self) -> None:
        """Raise DataError if no row had a mapped column, or no column of any row was recognized."""
        columns = list(dict.fromkeys(column for shape in self._shapes for column in shape))
        for field, column in [(field, column) for field, mapped in self.mapping.items() for column in mapped]:
            if column not in self._reached:
                near = nearest(column, columns)
                hint = f"did you mean {' or '.join(map(named, near))}?" if near else f"columns: {shortlist(columns)}"
                raise DataError(f"no row has the column {column!r}, mapped to {field}; {hint}")
        if columns and (CONTENT | {"metadata"}).isdisjoint(self.became.values()) and GOAL not in columns:
            parts = (
                f"no column is recognized (columns: {shortlist(columns)}); input, output, context, reference, messages "
                "or turns is needed; map a column to a field",
                *((", for example ", self._example()) if self._texts or self._inner else (" with ", Setting("map"))),
            )
            raise DataError(Problem(parts, "unrecognized", known=tuple(columns)))


_MESSAGES = (
    "each row is a message, and a sample is a conversation; save the messages of each conversation as a list in one "
    "column, messages"
)
RESULTS_OF_PROMPTFOO = "these are results of promptfoo, whose rows are in results.results"
_OTHER_ROWS: Mapping[tuple[str, ...], str] = {
    **dict.fromkeys(
        (("role", "content"), ("role", "parts"), ("role", "text"), ("from", "value"), ("type", "content")), _MESSAGES
    ),
    ("title", "paragraphs"): (
        "each row is an article of SQuAD, and a sample is a question; save a row for each question, with its context "
        "and its answers"
    ),
    ("evalId", "results"): RESULTS_OF_PROMPTFOO,
}
"""Columns of rows that are no samples, and what the rows are."""


def check_samples(columns: tuple[str, ...]) -> None:
    """Raise DataError for a row that is known to be something else than a sample."""
    if {"sample_id", "scorer", "outcome"} <= set(columns):
        raise DataError(
            "these are scores, as report --csv writes them; the samples are in the data of the run, and in the "
            "samples.jsonl of its results folder"
        )
    known = (what for keys, what in _OTHER_ROWS.items() if set(keys) <= set(columns))
    if CONTENT.isdisjoint(claims(columns)) and (what := next(known, "")):
        raise DataError(what)


def _table(mapping: object) -> ColumnMapping:
    """Validate a mapping. Raises ConfigError unless it maps fields to a column or columns."""
    if mapping is None:
        return {}
    expected = 'a table from sample field to column, such as {"input": "question"}'
    if not is_mapping(mapping):
        raise ConfigError(invalid(Setting("map"), expected, mapping))
    for field, columns in mapping.items():
        listed: Sequence[object] = [columns]
        if is_list(columns):
            listed = columns
        if not all(isinstance(name, str) for name in (field, *listed)):
            raise ConfigError(Setting("map"), f" must be {expected}; it has {excerpt(field)}: {excerpt(columns)}")
    return cast("ColumnMapping", mapping)


def alpaca(chosen: Mapping[str, Cell], cells: Mapping[str, Any], columns: Columns) -> Cell | None:
    """The `instruction` of an Alpaca row, whose `input` is the material for it; None for other rows."""
    cell = chosen.get("input")
    if cell is None or "input" in columns.mapping or normal(cell.column) != "input" or not isinstance(cell.value, str):
        return None
    name = next((name for name in cells if normal(name) == "instruction" and name not in columns.mapped), None)
    return Cell(name, cells[name]) if name is not None and isinstance(cells[name], str) else None


def _at(cells: Mapping[str, Any], path: str) -> tuple[bool, Any]:
    """Whether a row has a column or dotted path, and its value. A path also leads into a list or object that the text
    of its column writes out, as in CSV."""
    if path in cells:
        return True, cells[path]
    column, _, inner = path.partition(".")
    if not inner or not isinstance(cells.get(column), str):
        return value_at(cells, path)
    try:
        return value_at(written_value(cells[column]), inner)
    except DataError as error:
        raise DataError(f"column {column!r} ", error) from None


def value_at(data: Any, path: str) -> tuple[bool, Any]:
    """Whether data has a dotted path, and its value. A number is the index in a list, from 0; any other name is looked
    up in each item of a list."""
    value = data
    steps = path.split(".")
    for number, step in enumerate(steps):
        if is_list(value):
            items = value
            if not step.isdecimal():
                values = [value_at(item, ".".join(steps[number:])) for item in items]
                return all(exists for exists, _ in values), [inner for _, inner in values]
            if int(step) >= len(items):
                return False, None
            value = items[int(step)]
        elif is_mapping(value) and step in value:
            value = value[step]
        else:
            return False, None
    return True, value
