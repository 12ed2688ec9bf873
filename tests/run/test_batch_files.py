"""Runs through files of requests: written, answered by a stand-in for `vllm run-batch`, and read back."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from evalstone import BatchOptions, ConfigError, Failed, LexicalJudge, ModelJudge, Run, evaluate
from evalstone.errors import BatchError, WriteError
from evalstone.ledger import batches
from evalstone.ledger.maintenance import info
from evalstone.ledger.store import Ledger
from evalstone.models.batch import batch_api, files
from evalstone.run.batch import runner
from tests.batch_files import run_batch, write_results
from tests.batch_serving import BatchServer, Behaviour, willing
from tests.run.batch_runs import A_QUESTION, SAMPLES, Call
from tests.serving import Response, serving

MODEL = "vllm/Qwen/Qwen3-8B"
NOWHERE = {"base_url": "http://127.0.0.1:9/v1"}
"""No server: whoever connects fails."""
Lines = list[dict[str, Any]]
Change = Callable[[Lines], Lines]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "batches"


@pytest.fixture
def call(run: Call, folder: Path) -> Call:
    def call(*scorers: Any, model: str = MODEL, settings: dict[str, Any] | None = None, **more: Any) -> Run:
        options = {"batch": BatchOptions(files=folder), **more}
        return run(*scorers, model=model, settings={**NOWHERE, **(settings or {})}, **options)

    return call


def requests_in(folder: Path) -> list[Path]:
    """The files of requests, oldest first."""
    return sorted(folder.glob("*.requests.jsonl"), key=lambda path: path.stat().st_mtime_ns)


def results_of(path: Path, part: str = "") -> Path:
    return path.with_name(path.name.replace(".requests.jsonl", f".results{part}.jsonl"))


def answer(folder: Path, behaviour: Behaviour = willing, change: Change = list) -> None:
    """Answer the files without results, in the reverse order, which is as good as any."""
    for path in requests_in(folder):
        if not list(folder.glob(f"{path.name.partition('.')[0]}.results*")):
            write_results(results_of(path), change(run_batch(path, "Qwen/Qwen3-8B", behaviour)[::-1]))


def bodies(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line)["body"] for line in path.read_text().splitlines()]


def written(folder: Path) -> list[int]:
    """The number of requests in each file."""
    return [len(bodies(path)) for path in requests_in(folder)]


def completed(folder: Path, call: Call, behaviour: Behaviour = willing, **more: Any) -> Run:
    done = call(**more)
    for _ in range(6):
        if done.complete:
            break
        answer(folder, behaviour)
        done = call(**more)
    assert done.complete, done.stop_reason
    return done


def test_each_round_is_a_file_and_the_scores_are_those_of_direct_calls(call: Call, folder: Path) -> None:
    first = call()
    (path,) = requests_in(folder)
    assert re.fullmatch(r"evalstone-[0-9a-f]{16}\.requests\.jsonl", path.name)
    assert first.batches == (str(path),)
    assert first.stop_reason == f"waiting for batch {path} (4 written just now)"
    assert call().stop_reason == f"waiting for batch {path} (0 of 4 done)"
    assert written(folder) == [4]
    answer(folder)
    assert not call().complete
    answer(folder)
    done = call()
    assert (done.complete, done.batches, written(folder)) == (True, (), [4, 4])
    assert (sum(line.asked for line in done.summary), done.cost) == (8, None)
    with serving() as direct:
        same = evaluate(SAMPLES, "faithfulness", judge=ModelJudge(MODEL, base_url=direct.url), ledger=None)
        assert done.summary[0].interval == same.summary[0].interval
        asked = [json.dumps(request, sort_keys=True) for request in direct.requests]
    in_files = [json.dumps(body, sort_keys=True) for path in requests_in(folder) for body in bodies(path)]
    assert sorted(in_files) == sorted(asked)
    assert call().complete
    assert written(folder) == [4, 4]


@pytest.mark.parametrize(
    ("model", "settings", "cost"),
    [
        (MODEL, {"prices": (1.0, 2.0)}, 8 * (100 * 1.0 + 20 * 2.0) / 1e6),
        ("openai/gpt-4o", {"base_url": None}, 8 * A_QUESTION),
    ],
)
def test_answers_cost_what_the_user_says_or_half_the_listed_price_and_need_no_key(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch, model: str, settings: dict[str, Any], cost: float
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for _ in range(2):
        call(model=model, settings=settings)
        for path in requests_in(folder):
            write_results(results_of(path), run_batch(path))
    done = call(model=model, settings=settings, budget=1.0)
    assert done.complete
    assert done.cost == pytest.approx(cost)


def test_files_have_at_most_the_requests_and_bytes_that_providers_accept(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(files.BatchFiles, "most_requests", 3)
        assert len(call().batches) == 2
    assert sorted(written(folder)) == [1, 3]
    size = max(path.stat().st_size // len(bodies(path)) for path in requests_in(folder))
    others = tmp_path / "others"
    with monkeypatch.context() as patched:
        patched.setattr(files.BatchFiles, "most_bytes", 2 * size + 1010)
        call(batch=BatchOptions(files=others), ledger=tmp_path / "others.db")
    assert written(others) == [2, 2]
    answer(folder)
    assert not call().complete
    answer(folder)
    assert call().complete


def test_two_runs_write_no_question_twice_and_each_reads_what_the_other_asked(call: Call, folder: Path) -> None:
    call("faithfulness")
    other = call("hallucination")
    assert (written(folder), other.batches) == ([4], (str(requests_in(folder)[0]),))
    answer(folder)
    assert not call("hallucination").complete
    answer(folder)
    assert call("faithfulness").complete
    assert call("hallucination").complete
    assert written(folder) == [4, 4]


def test_waiting_goes_on_as_soon_as_results_are_there(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "FIRST_POLL", 0.0)
    states: list[str] = []

    def on_state(state: str) -> None:
        states.append(state)
        threading.Timer(0.05, answer, (folder,)).start()

    assert call(batch=BatchOptions(files=folder, wait=True, on_state=on_state)).complete
    assert [state for state in states if "just now" in state] == [
        f"waiting for batch {path} (4 written just now)" for path in requests_in(folder)
    ]


def lost(tmp_path: Path) -> None:
    """What a process leaves that was killed while it wrote a file: the entry without its name."""
    with Ledger(tmp_path / "l.db") as ledger, ledger.transaction(writing=True) as connection:
        connection.execute("UPDATE batches SET remote = NULL")


def test_a_process_killed_after_writing_a_file_writes_no_other(call: Call, folder: Path, tmp_path: Path) -> None:
    first = call()
    lost(tmp_path)
    assert call().batches == first.batches
    lost(tmp_path)
    answer(folder)
    requests_in(folder)[0].unlink()
    call()
    assert written(folder) == [4]
    answer(folder)
    assert call().complete


def test_a_process_killed_before_its_file_was_there_writes_it_the_next_time(
    call: Call, folder: Path, tmp_path: Path
) -> None:
    call()
    requests_in(folder)[0].unlink()
    lost(tmp_path)
    assert call().batches == (str(requests_in(folder)[0]),)
    assert written(folder) == [4]


def test_a_disk_that_is_full_leaves_the_questions_open(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: Any) -> None:
        raise WriteError("cannot write: No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(files.Location, "write", full)
        with pytest.raises(WriteError, match="No space"):
            call()
    with Ledger(tmp_path / "l.db") as ledger:
        assert info(ledger).open_batches == 0
    assert not call().complete
    assert written(folder) == [4]


def foreign(lines: Lines) -> Lines:
    return [{**line, "custom_id": f"{'0' * 16}-{line['custom_id'][17:]}"} for line in lines]


def without_a_line(lines: Lines) -> Lines:
    return lines[:3]


def unknown(lines: Lines) -> Lines:
    return [{**lines[0], "custom_id": "request-1"}, {"custom_id": 7}, {"error": "no"}, *lines[1:]]


@pytest.mark.parametrize(
    ("change", "state"),
    [
        (without_a_line, "3 of 4 done"),
        (foreign, "0 of 4 done; 4 lines of its results can't be used"),
        (unknown, "3 of 4 done; 3 lines of its results can't be used"),
    ],
)
def test_a_file_is_waited_for_until_each_request_has_a_result(
    call: Call, folder: Path, change: Change, state: str
) -> None:
    call()
    answer(folder, change=change)
    assert call().stop_reason.endswith(f" ({state})")
    assert written(folder) == [4]
    requests_in(folder)[0].unlink()
    call()
    (path,) = requests_in(folder)
    assert len(bodies(path)) == 4
    assert sum("Passage" not in json.dumps(body) for body in bodies(path)) == 4 - int(state[0])


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b'{"custom_id": "', id="cut"),
        pytest.param(b"\xff\xfe\x00\x01", id="binary"),
        pytest.param(b'{"custom_id":"x","response":' + b"[" * 100_000, id="nested"),
        pytest.param(b'{"x": [' + b"[]," * 500_000 + b"0]}", id="many values"),
        pytest.param(b'{"custom_id": "' + b"x" * 200_000, id="long"),
        pytest.param(b"[1]", id="a list"),
    ],
)
def test_a_line_that_is_no_result_is_passed_over_and_counted(call: Call, folder: Path, line: bytes) -> None:
    call(settings={"max_reply_bytes": 1000})
    answer(folder)
    path = results_of(requests_in(folder)[0])
    path.write_bytes(b"\n" + b"".join(path.read_bytes().splitlines(keepends=True)[:3]) + line)
    ended = call(settings={"max_reply_bytes": 1000})
    assert ended.stop_reason.endswith(" (3 of 4 done; 1 line of its results can't be used)")


def test_a_line_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a" * 25 + b"\n\nbc\n" + b"d" * 10)
    with path.open("rb") as stream:
        assert list(files.bounded_lines(stream, 10)) == [b"a" * 10, b"bc\n", b"d" * 10]


def own_ids(lines: Lines) -> Lines:
    made = [{**lines[0], "custom_id": f"{lines[0]['custom_id'][:17]}{number:032x}"} for number in range(5)]
    return [*made, *lines]


def test_results_of_more_requests_than_there_are_or_more_than_is_read_end_the_run_and_change_nothing(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call()
    answer(folder, change=own_ids)
    path = results_of(requests_in(folder)[0])
    with pytest.raises(BatchError, match=rf"batch .*: {re.escape(str(path))} has results of more than its 4 requests"):
        call()
    path.unlink()
    answer(folder)
    with monkeypatch.context() as patched:
        patched.setattr(files, "RESULT_BYTES", 100)
        with pytest.raises(BatchError, match=r"its results have [0-9,]+ bytes; max_reply_bytes allows more than 100"):
            call(settings={"max_reply_bytes": 100})
    call()
    assert written(folder) == [4, 4]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
def test_what_is_no_file_is_no_results(call: Call, folder: Path) -> None:
    call()
    path = results_of(requests_in(folder)[0])
    os.mkfifo(path)
    results_of(requests_in(folder)[0], "-2").mkdir()
    assert call().stop_reason.endswith(" (0 of 4 done)")


def test_results_may_be_in_several_files_and_the_first_answer_to_a_request_counts(call: Call, folder: Path) -> None:
    call()
    (path,) = requests_in(folder)
    lines = run_batch(path)
    errors = run_batch(path, behaviour=saying(Response(500, "out of memory")))
    others = run_batch(path, behaviour=saying("no claims at all"))
    write_results(results_of(path, "-0"), errors[:2] + lines[2:3])
    write_results(results_of(path, "-1"), lines)
    write_results(results_of(path, "-2"), others + errors)
    call()
    assert written(folder) == [4, 4]
    assert all("claims" in json.dumps(body) for body in bodies(requests_in(folder)[1]))


def test_a_reply_that_is_no_answer_is_corrected_in_the_next_file(call: Call, folder: Path) -> None:
    def corrected(request: dict[str, Any]) -> str:
        turns = [turn for turn in request["messages"] if turn["role"] == "user"]
        return willing(request) if len(turns) > 1 else "I cannot say"

    done = completed(folder, call, corrected)
    assert done.summary[0].mean == 1.0
    assert written(folder) == [4] * 4
    assert [turn["content"] for turn in bodies(requests_in(folder)[1])[0]["messages"]][-2] == "I cannot say"
    assert done.warnings["malformed replies"] == 8


def test_a_setting_that_the_server_refuses_is_left_out_of_the_next_file(call: Call, folder: Path) -> None:
    def cool(request: dict[str, Any]) -> Any:
        return Response(400, "temperature is not supported") if "temperature" in request else willing(request)

    assert completed(folder, call, cool, settings={"retries": 0}).summary[0].n_score == 4
    assert [["temperature" in body for body in bodies(path)] for path in requests_in(folder)] == [
        [True] * 4,
        [False] * 4,
        [False] * 4,
    ]


def saying(said: Any) -> Behaviour:
    return lambda _: said


def raising(message: str) -> Behaviour:
    def behaviour(_: dict[str, Any]) -> str:
        raise ValueError(message)

    return behaviour


@pytest.mark.parametrize(
    ("behaviour", "error", "tried"),
    [
        (saying(Response(500, "CUDA out of memory")), "Qwen3-8B .* 500: CUDA out of memory", 2),
        (saying(Response(400, "no such role")), "Qwen3-8B .* 400: no such role", 1),
        (raising("the engine is dead"), "Qwen3-8B .* 400: the engine is dead", 1),
        (
            raising("This model's maximum context length is 4096 tokens. However, your prompt has 9000."),
            "context_window=4096",
            1,
        ),
        (saying("no"), "complete JSON", 2),
    ],
)
def test_a_request_without_a_usable_answer_fails_its_sample_with_what_the_server_said(
    call: Call, folder: Path, behaviour: Behaviour, error: str, tried: int
) -> None:
    done = completed(folder, call, behaviour, settings={"retries": 1})
    outcome = done.records[0].outcome
    assert isinstance(outcome, Failed)
    assert re.search(error, outcome.error)
    assert written(folder) == [4] * tried


def test_another_model_than_that_of_the_requests_is_named_by_the_failures(call: Call, folder: Path) -> None:
    call()
    for path in requests_in(folder):
        write_results(results_of(path), run_batch(path, "Qwen/Qwen3-0.6B"))
    outcome = call().records[0].outcome
    assert isinstance(outcome, Failed)
    assert "404" in outcome.error


def test_requests_that_were_moved_to_another_machine_are_waited_for(call: Call, folder: Path) -> None:
    call()
    (path,) = requests_in(folder)
    away = path.rename(folder.parent / "away.jsonl")
    assert call().stop_reason.endswith(" (0 of 4 done; neither its requests nor its results are there)")
    write_results(results_of(path), run_batch(away))
    call()
    assert written(folder) == [4]


def test_a_batch_of_the_other_kind_is_left_to_it(
    server: BatchServer, call: Call, folder: Path, run: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.holding = True
    settings = {"base_url": f"{server.url}/v1"}
    run(model="openai/gpt-4o", settings=settings)
    waits = call(model="openai/gpt-4o", settings=settings)
    assert waits.stop_reason == "waiting for batch batch_0 (a batch of openai, which is not collected here)"
    assert not folder.exists()
    server.finish()
    server.holding = False
    run(model="openai/gpt-4o", settings=settings)
    assert run(model="openai/gpt-4o", settings=settings).complete
    server.batches.clear()
    samples = SAMPLES[:1]
    call("hallucination(scale=2)", model="openai/gpt-4o", settings={**settings, "seed": 1}, samples=samples)
    same = run("hallucination(scale=2)", model="openai/gpt-4o", settings={**settings, "seed": 1}, samples=samples)
    assert same.batches == (requests_in(folder)[0].name,)
    assert same.stop_reason.endswith("(a batch of files, which is not collected here)")
    assert not server.batches


@pytest.mark.parametrize(
    ("judge", "told"),
    [
        (LexicalJudge(), "lexical@.* can't be asked in batches; use .* files of requests"),
        (ModelJudge("anthropic/claude-sonnet-4-5"), "in OpenAI's format, which anthropic/.* doesn't take"),
        (ModelJudge("openai/text-embedding-3-small"), "doesn't chat"),
    ],
)
def test_a_judge_that_takes_no_files_is_refused_before_a_folder_is_made(
    judge: Any, told: str, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=told):
        evaluate(SAMPLES, "faithfulness", judge=judge, batch=BatchOptions(files=folder), ledger=tmp_path / "l.db")
    assert not folder.exists()


def test_a_folder_that_is_a_file_is_refused(call: Call, folder: Path) -> None:
    folder.write_text("")
    with pytest.raises(ConfigError, match="is a file; name a folder"):
        call()
    with pytest.raises(ConfigError, match="files must be the path of a folder, not ''"):
        BatchOptions(files="")


def test_a_name_in_the_ledger_that_is_not_of_a_file_of_requests_opens_nothing(
    call: Call, folder: Path, tmp_path: Path
) -> None:
    call()
    with Ledger(tmp_path / "l.db") as ledger:
        (row,) = batches.batches_of(ledger, ModelJudge(MODEL, base_url=NOWHERE["base_url"]).identity, only_open=True)
        assert row.api == "files"
        assert datetime.now(UTC) - datetime.fromisoformat(row.created) < timedelta(minutes=1)
        with ledger.transaction(writing=True) as connection:
            connection.execute("UPDATE batches SET remote = '../evalstone-*.requests.jsonl'")
    with pytest.raises(BatchError, match="no name of a file of requests"):
        call()


def test_files_are_for_their_owner_only_and_have_no_key(call: Call, folder: Path) -> None:
    call(settings={"api_key": "sk-secret-0123", "headers": {"X-Key": "sk-other-0123"}})
    (path,) = requests_in(folder)
    assert b"sk-" not in path.read_bytes()
    if os.name != "nt":
        assert path.stat().st_mode & 0o777 == 0o600


def test_the_folder_of_files_is_part_of_no_identity(folder: Path) -> None:
    judge = ModelJudge(MODEL, base_url=NOWHERE["base_url"])
    before = judge.identity
    assert batch_api(judge, folder).model.identity == before
