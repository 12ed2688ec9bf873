"""Checks of JSON in the answer: whether it is valid, and whether it conforms to a schema."""

from __future__ import annotations

import functools
import itertools
import json
import re
from abc import ABC
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from decimal import Decimal
from typing import Annotated, Any, NoReturn, cast

from evalstone._core.declarations import Rule
from evalstone._core.guards import is_mapping
from evalstone._core.json import strict_jsonable
from evalstone._core.matching import matches
from evalstone.errors import ConfigError, MissingDependency, OutcomeError
from evalstone.scorers.checks.base import Check
from evalstone.scorers.reasons import shortened
from evalstone.scorers.sources import TextSource
from evalstone.types import Score, Skipped

MOST_ERRORS = 10
"""The most schema errors of an answer in the evidence."""
_LONG = 4000


def read_json(text: str) -> Any:
    """The JSON value (RFC 8259) of a text. Raises ValueError, with the position, if the text is not JSON."""
    try:
        return json.loads(text, parse_constant=_refuse, parse_int=_whole)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _whole(digits: str) -> int | Decimal:
    return int(digits) if len(digits) < _LONG else Decimal(digits)  # Python refuses to parse longer integers


def _unfenced(text: str) -> str:
    """The content of a Markdown code fence from the first line to the last, or else the text unchanged."""
    lines = text.strip().split("\n")
    fenced = len(lines) > 1 and lines[0].startswith("```") and "`" not in lines[0][3:] and lines[-1].strip() == "```"
    return "\n".join(lines[1:-1]) if fenced else text


SCHEMA = Rule("a JSON schema as a dictionary", is_mapping)


class JsonCheck(Check, TextSource, ABC):
    """A check of an answer that should be JSON. A blank answer is not JSON.

    Attributes:
        fenced: Accept a single Markdown code fence around all of the answer.
    """

    reads_blank = ("output",)

    fenced: bool = False

    def read(self, output: str) -> Any:
        """The value in an answer. Raises ValueError if it is not JSON."""
        return read_json(_unfenced(output) if self.fenced else output)


class JsonValid(JsonCheck):
    """Whether the answer is JSON.

    1 if the whole answer is one JSON value of any type as defined by RFC 8259, else 0. White space around it is
    allowed. Text around it, NaN, Infinity, comments, trailing commas, single quotes and a byte order mark are not, nor
    is nesting too deep for Python, beyond several hundred levels. No judge call.
    """

    name = "json_valid"

    def score(self, *, output: str) -> Score:
        try:
            self.read(output)
        except ValueError as error:
            return self.passed(False, f"The answer is not JSON: {error}.")
        return self.passed(True, "The answer is JSON.")


@dataclass(frozen=True)
class SchemaError:
    """The place where an answer violates the schema, as a path such as $.items[0].price, and the reason."""

    path: str
    message: str


class JsonSchema(JsonCheck, kw_only=False):
    """Whether the answer is JSON that conforms to a JSON schema.

    1 if the whole answer is JSON, as for `json_valid`, and conforms to the schema, else 0. The draft is the one that
    `$schema` names, by default 2020-12. `format` is an annotation and isn't checked. `$ref` may name a part of the
    schema itself, or a JSON Schema draft; nothing is fetched. Failed for any other reference, and for a `pattern` that
    takes more than 10 seconds. Requires the extra `metrics` (jsonschema). No judge call.

    Attributes:
        schema: The schema, as a dictionary.

    Raises:
        ConfigError: The schema is not a JSON schema.
        MissingDependency: jsonschema is not installed.
    """

    name = "json_schema"

    schema: Annotated[Mapping[str, Any], SCHEMA] = field(hash=False)
    _: KW_ONLY

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            _validator(self._schema_text)
        except MissingDependency:
            raise
        except ConfigError as error:
            raise ConfigError(f"{self.name}: ", error) from None

    @functools.cached_property
    def _schema_text(self) -> str:
        try:
            return json.dumps(strict_jsonable(self.schema))
        except ValueError as error:
            raise ConfigError(f"{self.name}: schema must have JSON values only: ", error) from None

    def score(self, *, output: str) -> Score | Skipped:
        try:
            value = self.read(output)
        except ValueError as error:
            return self.passed(False, f"The answer is not JSON: {error}.")
        try:
            errors = _errors(_validator(self._schema_text), value)
        except OutcomeError as error:
            raise OutcomeError(f"{self.name}: ", error) from None
        if not errors:
            return self.passed(True, "The answer fits the schema.")
        reason = f"The answer does not fit the schema at {errors[0].path}: {errors[0].message}."
        return Score(0.0, reason, evidence=errors)


@functools.lru_cache(maxsize=64)
def _validator(schema_text: str) -> Any:
    """The validator of a schema. Raises ConfigError for an invalid schema, MissingDependency without jsonschema."""
    try:
        from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - optional
        from jsonschema import SchemaError as WrongSchema  # noqa: PLC0415
        from jsonschema_specifications import REGISTRY  # noqa: PLC0415
    except ImportError:
        raise MissingDependency("jsonschema", "metrics") from None
    schema = json.loads(schema_text)
    kind = validators.validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except WrongSchema as error:
        raise ConfigError(f"schema is not a JSON schema, at {error.json_path}: {shortened(error.message)}") from None
    # With an explicit registry, jsonschema fetches nothing.
    extend = cast(Any, validators).extend
    return extend(kind, {"pattern": _check_pattern})(schema, registry=REGISTRY)


def _check_pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Exception]:
    """The keyword `pattern`, with a time limit on matching."""
    if validator.is_type(value, "string") and not matches(re.compile(pattern), value, whole=False):
        from jsonschema import ValidationError  # noqa: PLC0415 - optional

        yield ValidationError(f"{shortened(repr(value), 60)} does not match {pattern!r}")


def _errors(validator: Any, value: Any) -> tuple[SchemaError, ...]:
    """The first violations of the validator's schema. Raises OutcomeError if the value can't be checked."""
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - optional

    try:
        errors: list[Any] = list(itertools.islice(validator.iter_errors(value), MOST_ERRORS))
    except Unresolvable as error:
        raise OutcomeError(f"the schema refers to {error.ref}, which is not part of it; nothing is fetched") from None
    except RecursionError:
        raise OutcomeError("the schema or the answer is nested too deeply") from None
    return tuple(SchemaError(shortened(error.json_path), shortened(error.message)) for error in errors)


json_valid, json_schema = JsonValid, JsonSchema
