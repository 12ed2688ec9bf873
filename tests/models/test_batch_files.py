"""Files of requests, byte for byte, and what is read from files of results."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evalstone import ModelJudge
from evalstone._core.storage import Location
from evalstone.models.batch import batch_api
from evalstone.models.batch.base import Finding
from evalstone.models.batch.files import RESULTS, unanswered, vllm_command
from evalstone.models.provider import ChatMessage, ReplyForm, RequestSettings

JUDGE = ModelJudge("vllm/acme/judge-1", base_url="http://127.0.0.1:9/v1")
ID = "0123456789abcdef"
NAME = f"evalstone-{ID}.requests.jsonl"
FORM = ReplyForm("verdict", {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]})
GOLDEN = (
    b'{"custom_id":"0123456789abcdef-00000000000000000000000000000000","method":"POST","url":"/v1/chat/completions",'
    b'"body":{"model":"acme/judge-1","messages":[{"role":"system","content":"Decide."},'
    b'{"role":"user","content":"Z\xc3\xbcrich\\n\\"\\u2028\\u0000"}],"temperature":0.0,"seed":7,"max_tokens":50,'
    b'"response_format":{"type":"json_schema","json_schema":{"name":"verdict","strict":true,"schema":'
    b'{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}}}}}\n'
    b'{"custom_id":"0123456789abcdef-00000000000000000000000000000001","method":"POST","url":"/v1/chat/completions",'
    b'"body":{"model":"acme/judge-1","messages":[{"role":"user","content":"Hi."}]}}\n'
)


def test_a_file_of_requests_is_in_the_format_that_openai_and_vllm_publish_to_the_byte(tmp_path: Path) -> None:
    api = batch_api(JUDGE, tmp_path / "new" / "folder")
    messages = (ChatMessage("system", "Decide."), ChatMessage("user", 'Zürich\n"\u2028\x00'))
    settings = RequestSettings(temperature=0.0, seed=7, max_tokens=50)
    first = api.request(f"{ID}-{0:032x}", FORM, messages, settings)
    second = api.request(f"{ID}-{1:032x}", None, [ChatMessage("user", "Hi.")], RequestSettings())
    assert asyncio.run(api.submit(ID, [first, second])) == NAME
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == [NAME]
    assert (tmp_path / "new" / "folder" / NAME).read_bytes() == GOLDEN


PUBLISHED: list[tuple[str, dict[str, Any]]] = [
    (
        '{"id": "batch_req_123", "custom_id": "ID", "response": {"status_code": 200, "request_id": "req_123", "body": '
        '{"id": "chatcmpl-123", "object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", '
        '"content": "Hello."}}]}}, "error": null}',
        {"status": 200},
    ),
    (
        '{"id": "batch_req_123", "custom_id": "ID", "response": null, "error": {"code": "batch_expired", "message": '
        '"This request could not be executed before the completion window expired."}}',
        {
            "status": 0,
            "error": "This request could not be executed before the completion window expired. (batch_expired)",
        },
    ),
    (
        '{"id": "vllm-383d", "custom_id": "ID", "response": {"status_code": 400, "request_id": "vllm-batch-5e6b", '
        '"body": null}, "error": "Request must not be sent in stream mode"}',
        {"status": 400, "error": "Request must not be sent in stream mode"},
    ),
    (
        '{"id": "vllm-383d", "custom_id": "ID", "response": {"status_code": 404, "request_id": "vllm-batch-5e6b", '
        '"body": null}, "error": {"error": {"message": "The model `x` does not exist.", "type": "NotFoundError", '
        '"param": "model", "code": 404}}}',
        {"status": 404, "error": "The model `x` does not exist. (404)"},
    ),
    (
        '{"id": "vllm-383d", "custom_id": "ID", "response": {"status_code": 400, "request_id": "vllm-batch-5e6b", '
        '"body": null}, "error": {"object": "error", "message": "No such role.", "type": "BadRequestError", '
        '"param": null, "code": 400}}',
        {"status": 400, "error": "No such role. (400)"},
    ),
]


@pytest.mark.parametrize(("line", "body"), PUBLISHED)
def test_results_are_read_in_the_formats_of_openai_and_of_versions_of_vllm(
    tmp_path: Path, line: str, body: dict[str, Any]
) -> None:
    name = f"{ID}-{0:032x}"
    (tmp_path / f"evalstone-{ID}{RESULTS}").write_text(line.replace('"ID"', f'"{name}"') + "\n")
    api = batch_api(JUDGE, tmp_path)

    async def read() -> Any:
        state = await api.state(NAME, 1)
        assert (state.ended, state.done, state.total) == ("completed", 1, 1)
        return await api.results(state)

    (result,) = asyncio.run(read())
    assert result.custom_id == name
    assert {key: result.body[key] for key in body} == body
    if body["status"] == 200:
        assert api.reply([], result.body).text == "Hello."


def test_a_file_of_results_is_read_again_only_if_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = batch_api(JUDGE, tmp_path)
    asyncio.run(api.submit(ID, [b"{}", b"{}"]))
    results = tmp_path / f"evalstone-{ID}{RESULTS}"
    line: dict[str, Any] = {"custom_id": f"{ID}-{0:032x}", "response": {"status_code": 200, "body": {"choices": []}}}
    results.write_text(json.dumps(line) + "\n")
    assert asyncio.run(api.state(NAME, 2)).done == 1

    def opened(_: Location) -> None:
        raise AssertionError

    monkeypatch.setattr(Location, "open", opened)
    assert asyncio.run(api.state(NAME, 2)).done == 1


def test_a_batch_is_found_by_its_requests_or_its_results_and_not_while_it_is_written(tmp_path: Path) -> None:
    def found() -> Finding:
        return asyncio.run(batch_api(JUDGE, tmp_path).find(ID, since=datetime.now(UTC), requests=1, known=()))

    (tmp_path / f".{NAME}.0123abcd.evalstone.tmp").write_text("{}")
    assert found() == Finding()
    (tmp_path / f"evalstone-{ID}.results-0.jsonl").write_text("")
    assert found() == Finding(NAME)
    (tmp_path / f"evalstone-{ID}.results-0.jsonl").unlink()
    (tmp_path / NAME).write_text("{}")
    assert found() == Finding(NAME)


def test_the_command_for_vllm_is_safe_to_paste_and_only_for_files_without_results(tmp_path: Path) -> None:
    folder = tmp_path / "it's; here"
    folder.mkdir()
    waiting, answered = (folder / NAME.replace(ID, ID[0] * 15 + end) for end in "12")
    for path in (waiting, answered):
        path.write_text("")
    Path(str(answered).replace(".requests", ".results")).write_text("")
    gone = folder / NAME
    assert unanswered([str(waiting), str(answered), str(gone), "batch_0"]) == [str(waiting)]
    quoted = str(waiting).replace("'", "'\"'\"'")
    results = quoted.replace(".requests", ".results")
    command = f"vllm run-batch -i '{quoted}' -o '{results}' --model acme/judge-1"
    assert vllm_command(str(waiting), JUDGE.model) == command
