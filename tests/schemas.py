"""The schemas of evalstone's own formats, for tests that have real output."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

SCHEMAS = Path(__file__).parents[1] / "schemas"


@cache
def validator(format: str) -> Any:
    """The validator of a format, such as record/1."""
    schema = json.loads((SCHEMAS / f"{format.replace('/', '-')}.schema.json").read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=FormatChecker())


def problems(value: Any) -> list[str]:
    """What of a value isn't as the schema of its format says."""
    errors: Iterable[Any] = validator(value["format"]).iter_errors(value)
    return [f"{error.json_path}: {error.message:.200}" for error in errors]
