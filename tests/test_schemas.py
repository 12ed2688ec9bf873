"""The JSON Schemas describe every format, and notice what is missing or of another type.

Real output is checked where tests make it: the commands, the files, and the results of calibrations and comparisons.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalstone._core import file_format
from evalstone._core.file_format import FileFormat
from tests.schemas import SCHEMAS, problems, validator
from tests.test_json_page import RESULTS, RUN

ROOT = Path(__file__).parents[1]
NAMES = sorted(value for value in vars(file_format).values() if isinstance(value, FileFormat))


def test_every_format_has_a_schema_and_is_on_the_page() -> None:
    assert {path.name for path in SCHEMAS.iterdir()} == {f"{name.replace('/', '-')}.schema.json" for name in NAMES}
    page = (ROOT / "docs" / "stability.md").read_text("utf-8").partition("| format | where |")[2].partition("\n\n")[0]
    assert (
        sorted(re.findall(r"`([a-z_]+/\d+)`", "".join(row.split("|")[1] for row in page.splitlines() if row))) == NAMES
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_one_and_has_an_address_of_its_own(name: str) -> None:
    schema = validator(name).schema
    assert schema["$id"].rpartition("/")[2] == f"{name.replace('/', '-')}.schema.json"
    assert schema["properties"]["format"] == {"const": name}
    assert {"format"} <= {*schema["required"]}


OUTPUT = {
    **{name: result.to_dict() for name, result in RESULTS.items()},
    "run": RUN.to_dict(),
    "record": RUN[0].to_dict(),
}


def fields_of(schema: Any, value: Any, root: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The places of the fields in a value, with the schema of each."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema and isinstance(value, dict | list):
        schema = next(each for each in schema["anyOf"] if "$ref" in each or each.get("type") in ("object", "array"))
        yield from fields_of(schema, value, root, place)
    elif isinstance(value, dict):
        for name, inner in schema.get("properties", {}).items():
            if name in value:
                yield (*place, name), {**inner, "is_required": name in schema["required"]}
                yield from fields_of(inner, value[name], root, (*place, name))
    elif isinstance(value, list) and value and "items" in schema:
        yield from fields_of(schema["items"], value[0], root, (*place, 0))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["compare", "gate", "calibrate", "run", "record"])
def test_a_dropped_or_retyped_field_is_noticed_at_any_depth(name: str) -> None:
    data = json.loads(json.dumps(OUTPUT[name]))
    checked = validator(data["format"])
    assert checked.is_valid(data)
    dropped = retyped = 0
    for (*outer, last), field in fields_of(checked.schema, data, checked.schema):
        changed = copy.deepcopy(data)
        target: Any = changed
        for step in outer:
            target = target[step]
        value = target.pop(last)
        assert checked.is_valid(changed) is not field["is_required"], (outer, last)
        dropped += field["is_required"]
        if value is not None and field.keys() & {"type", "$ref", "anyOf", "const"}:
            target[last] = "text" if isinstance(value, dict) else {"brand_new": 1}
            assert not checked.is_valid(changed), (outer, last)
            retyped += 1
    assert min(dropped, retyped) > 5


def test_new_fields_and_new_kinds_are_allowed_as_the_page_promises() -> None:
    data = json.loads(json.dumps(OUTPUT["gate"]))
    data["brand_new"] = data["decisions"][0]["brand_new"] = 1
    data["verdict"] = "brand_new"
    assert problems(data) == []
