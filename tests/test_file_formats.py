"""Every file that evalstone writes and reads again: what a newer version may add to it, and what it may not."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evalstone import (
    ConfigError,
    DataError,
    LexicalJudge,
    LoggingJudge,
    Message,
    Panel,
    ReplayJudge,
    Sample,
    ScriptedJudge,
    ToolCall,
    Usage,
    calibrate,
    evaluate,
    read_run,
    write_run,
)
from evalstone._core.file_format import LABEL_FORMAT
from evalstone._core.files import file_values
from evalstone._core.guards import is_array, is_object
from evalstone._core.installed import update_advice
from evalstone.datasets import write_jsonl
from evalstone.datasets.files import find
from evalstone.datasets.stored import sample_line
from evalstone.ledger.copy import export_rows, import_rows
from evalstone.ledger.store import Ledger
from evalstone.results.calibration import Calibration
from evalstone.results.endings import ending_named
from evalstone.results.gate_criteria import GateCriteria
from evalstone.results.looks import _looks as looks_in  # pyright: ignore[reportPrivateUsage]
from evalstone.results.looks import remember
from evalstone.results.saved_calibrations import list_calibrations
from evalstone.targets import Answer, Tools
from evalstone.targets.tool_recording import _lines as recorded_lines  # pyright: ignore[reportPrivateUsage]
from evalstone.types import Trajectory, TrajectoryStep
from tests.schemas import problems

NEW = "brand_new"
STEPS = [
    {"step_type": "agent_run", "name": "a", "children": [{"step_type": "tool_call", "name": "look", "success": True}]}
]
SAMPLES: list[dict[str, Any]] = [
    {
        "id": "a",
        "input": "Where?",
        "output": "Oslo.",
        "reference": "Oslo",
        "context": ["Oslo is the capital."],
        "group": "g",
        "weight": 2.0,
        "metadata": {"doc": {"page": 1}},
        "expected_trajectory": {"steps": [{"name": "look", "step_type": "tool_call", "data": {"success": True}}]},
        "state": {"cart": {"items": 1}},
    },
    {"id": "b", "input": "Who?", "output": "Ada", "context": ["Ada wrote it."]},
]
CALL = ToolCall(name="look", arguments={"at": {"x": 1}})
TURNS = Sample(
    id="t",
    output="a",
    messages=[
        Message(role="user", content="q", origin="request"),
        Message(role="assistant", content="a", usage=Usage(1, 2), tool_calls=[CALL]),
    ],
    turns=[Sample(id="1", input="q", output="a", metadata={"k": {"v": 1}})],
)


CLAIMS = {"claims": ["Oslo is the capital."]}
VERDICTS = {"verdicts": [{"claim": 1, "passages": [1], "reason": "It says so.", "verdict": "supported"}]}


def look(*, at: str) -> dict[str, Any]:
    if at == "Who?":
        raise KeyError(at)
    return {"seen": {"at": at}}


def written(folder: Path) -> None:
    """Write every kind of file that can be read again."""
    recorded = Tools.record(folder / "calls.jsonl")
    seen = recorded(look)

    def agent(*, input: str) -> Answer:
        found = seen(at=input)
        call = ToolCall(name="look", arguments={"at": input}, result=found)
        message = Message(role="assistant", content="Oslo", tool_calls=[call])
        return Answer(messages=[message], trajectory=Trajectory.read(STEPS), usage=Usage(3, 4))

    ledger = folder / "ledger.db"
    log = LoggingJudge(ScriptedJudge([CLAIMS, VERDICTS]), folder / "log.jsonl")
    judge = Panel(LexicalJudge(), log)
    run = evaluate(SAMPLES[:1], ["contains", "faithfulness", "rouge_l(scale=10)"], judge=judge, ledger=ledger)
    write_run(run, folder / "run")
    write_run(evaluate(SAMPLES, "contains", target=agent, trials=2, ledger=ledger), folder / "with_target")
    write_run(evaluate([TURNS], "regex(pattern=a)", ledger=None), folder / "turns")
    criteria = GateCriteria(min={"contains": 0.5})
    remember(folder / "run", run, criteria, "pass", look=1, alpha=0.05, missing="worst")
    labeled = [{"output": output, "label": label} for output, label in (("Oslo", "yes"), ("Rome", "no"))]
    calibrate(labeled, "contains(expected=Oslo)", ledger=ledger)
    write_jsonl(folder / "labels.jsonl", [{"format": LABEL_FORMAT, "id": "a", "label": "yes"}])
    with Ledger(ledger) as opened:
        write_jsonl(folder / "export.jsonl", export_rows(opened))


def as_imported(path: Path) -> Any:
    file = path.parent / "imported.db"
    file.unlink(missing_ok=True)
    with Ledger(file) as opened:
        import_rows(opened, file_values(path))
        return [*export_rows(opened)]


def read(path: Path) -> Any:
    """What evalstone reads in a file, as data."""
    match path.name:
        case "records.jsonl" | "summary.json" | "samples.jsonl" if path.parent.name != "data":
            run = read_run(path.parent)
            return run.to_dict(), [record.to_dict() for record in run], [*map(sample_line, run.samples or ())]
        case "gates.jsonl":
            return [*looks_in(path)]
        case "calls.jsonl":
            return [line for _, _, line in recorded_lines(path)]
        case "log.jsonl":
            return ReplayJudge.from_records(path).calls
        case "labels.jsonl":
            return [row for _, row in find(path).rows()]
        case "export.jsonl":
            return as_imported(path)
        case _ if path.parent.name == "calibrations":
            return [calibration.to_dict() for calibration in list_calibrations(path.parent)]
        case _:
            raise AssertionError(f"{path.name} has no reader here")


def files_in(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.suffix in (".json", ".jsonl")]


def objects_in(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The places of all objects in a value that have fields."""
    items: Iterable[tuple[str | int, object]] = ()
    if is_object(value):
        items = value.items()
        yield from (path,) if value else ()
    elif is_array(value):
        items = enumerate(value)
    for key, item in items:
        yield from objects_in(item, (*path, key))


def put(path: Path, lines: list[Any]) -> None:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    written(folder)
    return folder


NAMES = (
    *(f"{run}/{file}" for run in ("run", "turns", "with_target") for file in ("records.jsonl", "samples.jsonl")),
    *("run/summary.json", "turns/summary.json", "with_target/summary.json", "run/gates.jsonl"),
    *("calls.jsonl", "log.jsonl", "labels.jsonl", "export.jsonl", "calibrations/"),
)


def test_every_file_has_a_reader_and_is_as_the_schema_of_its_format(folder: Path) -> None:
    files = files_in(folder)
    assert {next((name for name in NAMES if name in str(path)), str(path)) for path in files} == set(NAMES)
    for path in files:
        for _, line in file_values(path):
            assert problems(line) == [], path
        assert read(path)


@pytest.mark.parametrize("name", NAMES)
def test_a_new_field_at_any_level_changes_nothing_that_is_read(folder: Path, name: str) -> None:
    path = next(path for path in files_in(folder) if name in str(path))
    lines = [line for _, line in file_values(path)]
    before = read(path)
    try:
        for place in [place for number, line in enumerate(lines) for place in objects_in(line, (number,))]:
            changed = copy.deepcopy(lines)
            target: Any = changed
            for key in place:
                target = target[key]
            target[NEW] = copy.deepcopy([*target.values()][-1])  # as a table of one kind may have
            put(path, changed)
            again = read(path)
            assert again == before or NEW in repr(again), place  # data of the user's own is kept
    finally:
        put(path, lines)


def texts_of(value: object, key: str) -> Iterator[dict[str, Any]]:
    """The objects in a value that have a text under this key."""
    for place in objects_in(value):
        target: Any = value
        for step in place:
            target = target[step]
        if isinstance(target.get(key), str):
            yield target


@pytest.mark.parametrize(
    ("name", "key"),
    [
        *[("run/summary.json", key) for key in ("kind", "ending")],
        *[("run/records.jsonl", key) for key in ("outcome", "source", "question")],
        *[("turns/samples.jsonl", key) for key in ("role", "origin", "state")],
        *[("with_target/samples.jsonl", key) for key in ("role", "state", "step_type")],
    ],
)
def test_a_new_kind_is_kept_as_its_text(folder: Path, name: str, key: str) -> None:
    path = folder / name
    lines = [line for _, line in file_values(path)]
    changed = copy.deepcopy(lines)
    named = [*texts_of(changed, key)]
    assert named
    for each in named:
        each[key] = NEW
    try:
        put(path, changed)
        assert NEW in repr(read(path))
        assert str(read_run(path.parent))
    finally:
        put(path, lines)


def test_a_calibration_of_a_new_kind_has_no_probabilities(folder: Path) -> None:
    (stored,) = list_calibrations(folder / "calibrations")
    data = stored.to_dict()
    assert data["recalibration"]["kind"] == "platt"
    assert Calibration.from_dict(data | {"recalibration": {"kind": NEW, "knots": [1]}}).recalibration is None


def test_an_unknown_ending_decides_no_threshold() -> None:
    ending = ending_named(NEW)
    assert (ending.name, ending.broken_off) == (NEW, True)


def test_what_people_write_is_still_refused_with_the_right_name() -> None:
    with pytest.raises(ConfigError, match="assistant"):
        Message(role="asistant")  # type: ignore[arg-type]
    with pytest.raises(ConfigError) as raised:
        TrajectoryStep(step_type="tool_cal", name="x")  # type: ignore[arg-type]
    assert "tool_call" in raised.value.near


@pytest.mark.parametrize("name", NAMES)
def test_a_newer_format_is_refused_with_what_to_do(folder: Path, name: str) -> None:
    path = next(path for path in files_in(folder) if name in str(path))
    lines = [line for _, line in file_values(path)]
    kind = lines[-1]["format"].partition("/")[0]
    try:
        put(path, [*lines[:-1], {**lines[-1], "format": f"{kind}/2"}])
        with pytest.raises(DataError, match=rf"{kind}/2.*it is newer: {re.escape(update_advice())}"):
            read(path)
    finally:
        put(path, lines)
