"""The data of the pages are as docs/view-data.md describes them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from evalstone import Live, Run, calibrate, evaluate
from evalstone.ledger.labels import Label, Mode, ModeLabel, assign_mode, write_label, write_mode
from evalstone.ledger.store import Ledger
from evalstone.run.experiment_cells import in_experiment
from evalstone.types import StoredCell
from evalstone.view.app import PAGES
from tests.view.conftest import Client, client_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "view-data.md"
SECTION = re.compile(r"^## `(?P<route>/[^`]*)`\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
SECTIONS = {found["route"]: found["text"] for found in SECTION.finditer(PAGE.read_text("utf-8"))}
SHOWN = {
    "20261128-175953-0b58": "ID",
    "20261128-175953-204d": "OTHER",
    "d32431f61aa5-93f18f6980f1-34d7e237e156": "CALIBRATION",
    "7-a199%2F1%2F0": "SCORE",
}
"""IDs on the page, and the names of what stands for them here."""
ANSWERS = (("In 1815.", "Ada was born in 1815."), ("In 1915.", "Alan was born in 1912."), ("In 1906.", "Grace: 1906."))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Client, Mapping[str, str]]:
    """The pages of a ledger that has something for each of them, and what stands for the names in their addresses."""
    folder = tmp_path_factory.mktemp("data")
    url, file = str(folder / "ledger.db"), folder / "answers.jsonl"
    rows = [
        {"id": f"s{n}", "input": "When?", "output": output, "context": [passage], "label": "no" if n == 1 else "yes"}
        for n, (output, passage) in enumerate(ANSWERS)
    ]
    scorers = ["faithfulness", "keyword_coverage"]
    runs: list[Run] = []
    for name in ("nightly", "branch"):
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        with in_experiment(StoredCell(experiment="prompts", name=name, factors={"style": name})):
            runs.append(evaluate(file, scorers, ledger=url, name=name))
        rows[1]["output"] = "In 1912."
    calibrate([*rows[:1], {**rows[1], "output": "In 1915."}, *rows[2:]], ledger=url)
    with Live("faithfulness", judge="lexical", stream="shop", sampling=1.0, ledger=url) as live:
        live.submit(input="When?", output="In 1915.", context=["Alan was born in 1912."])
        live.flush()
    at: dict[str, Any] = {"run": runs[0].id, "sample": "s1", "annotator": "ada"}
    signature = runs[0]["faithfulness"].info.signature
    with Ledger(url) as ledger:
        write_label(ledger, Label(**at, signature=signature, value=0.0, note="a wrong year", chosen="random"))
        definition = "A number isn't the one in the passages."
        write_mode(ledger, Mode(id="number", dataset="answers.jsonl", name="wrong number", definition=definition))
        assign_mode(ledger, ModeLabel(**at, mode="number"))
    client = client_of(url)
    names = {
        "ID": runs[0].id,
        "OTHER": runs[1].id,
        "SCORE": client.get("/live/shop").links("^/live/shop/scores/")[0].rpartition("/")[2].partition("?")[0],
        "CALIBRATION": client.get("/judges.json").json[0]["id"],
    }
    return client, names


def data_routes() -> set[str]:
    """The routes that have data, as the page names them."""
    suffixed = {path.replace("{suffix}", ".json") for path, _ in PAGES if "{suffix}" in path}
    own = {f"{path}.json" for path, _ in PAGES if path.endswith("}") and "{suffix}" not in path}
    files = {"/modes/{mode}/{file}.json", "/datasets/{name}/{file}.json", "/datasets/{name}/edit/samples/{id}.json"}
    return suffixed | own - files


def test_every_route_with_data_is_described() -> None:
    assert {re.sub("[A-Z]+", "X", route) for route in SECTIONS} == {
        re.sub(r"\{\w+\}", "X", route) for route in data_routes()
    }


def problems(example: object, actual: object, at: str = "") -> list[str]:
    """Where an example has what the data don't: fields, or values of another kind."""
    if example is None or actual is None:
        return []
    if kind(example) != kind(actual):
        return [f"{at} is {actual!r}"]
    if isinstance(example, dict):
        shown, there = cast("dict[str, object]", example), cast("dict[str, object]", actual)
        missing = [f"{at}.{name}" for name in shown if name not in there]
        both = [name for name in shown if name in there]
        return missing + [each for name in both for each in problems(shown[name], there[name], f"{at}.{name}")]
    if isinstance(example, list):
        ones, first = cast("list[object]", example), next(iter(cast("list[object]", actual)), None)
        return [each for one in ones for each in problems(one, first, f"{at}[]")]
    return []


def kind(value: object) -> str:
    return "number" if isinstance(value, (int, float)) else type(value).__name__


@pytest.mark.parametrize("route", SECTIONS)
def test_the_data_have_the_fields_that_are_described(route: str, pages: tuple[Client, Mapping[str, str]]) -> None:
    client, names = pages
    text = SECTIONS[route]
    (address,) = re.findall(r"^curl 'localhost:7700(/[^']*)'$", text, re.MULTILINE)
    for shown, name in SHOWN.items():
        address = address.replace(shown, names[name])
    reply = client.get(address)
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json"), reply.text[:200]
    example = json.loads(text.partition("```json\n")[2].partition("```")[0])
    assert problems(example, reply.json) == []
    first: dict[str, Any] = next(iter(reply.json)) if isinstance(example, list) else reply.json
    rows = re.findall(r"^\| (`.*?`) \|", text, re.MULTILINE)
    described = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    if "*" in described:
        assert described - {"*"} <= first.keys()
    else:
        assert described == first.keys()


def test_an_error_and_a_parameter_that_makes_no_sense_are_pages(pages: tuple[Client, Mapping[str, str]]) -> None:
    client, names = pages
    for address, status in (("/runs/none.json", 404), (f"/runs/{names['ID']}.json?show=nothing", 400)):
        reply = client.get(address)
        assert (reply.status, reply.headers["content-type"].partition(";")[0]) == (status, "text/html")
