"""What answers a file of requests as `vllm run-batch` does, with a model of the tests: `python -m tests.batch_files -i
REQUESTS -o RESULTS --model NAME`."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import Any

from tests.batch_serving import Behaviour, willing
from tests.serving import Response, completion


def run_batch(requests: Path, model: str = "", behaviour: Behaviour = willing) -> list[dict[str, Any]]:
    """The lines of results for a file of requests, in the order of the requests.

    A `Response` of the behaviour is an error of the server, and an exception is one of vLLM: its text, with HTTP 400.
    A request with another model is refused with HTTP 404.
    """
    lines = [json.loads(line) for line in requests.read_text(encoding="utf-8").splitlines()]
    return [_result(number, checked(line), model, behaviour) for number, line in enumerate(lines)]


def checked(line: dict[str, Any]) -> dict[str, Any]:
    """A request, checked against the format that OpenAI and vLLM publish."""
    assert list(line) == ["custom_id", "method", "url", "body"]
    assert isinstance(line["custom_id"], str)
    assert 0 < len(line["custom_id"]) <= 64
    assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
    body = line["body"]
    assert isinstance(body["model"], str)
    assert not body.get("stream")
    assert all({"role", "content"} <= message.keys() for message in body["messages"])
    return line


def _result(number: int, line: dict[str, Any], model: str, behaviour: Behaviour) -> dict[str, Any]:
    response: dict[str, Any] = {"status_code": 200, "request_id": f"vllm-batch-{number:032x}", "body": None}
    result: dict[str, Any] = {
        "id": f"vllm-{number:032x}",
        "custom_id": line["custom_id"],
        "response": response,
        "error": None,
    }
    if model not in ("", line["body"]["model"]):
        said: Any = Response(404, "The model does not exist.")
    else:
        try:
            said = behaviour(line["body"])
        except ValueError as error:
            response["status_code"], result["error"] = 400, str(error)
            return result
    if isinstance(said, Response):
        response["status_code"] = said.status
        error = {"message": said.body, "type": "BadRequestError", "param": None, "code": said.status}
        result["error"] = {"error": error}
    else:
        response["body"] = {"id": f"chatcmpl-{number}", "object": "chat.completion", **completion(said)}
    return result


def write_results(path: Path, lines: list[dict[str, Any]]) -> None:
    """Write lines of results."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def run_command(command: str, behaviour: Behaviour = willing) -> None:
    """Carry out a printed command, `vllm run-batch -i REQUESTS -o RESULTS --model NAME`."""
    program, subcommand, *arguments = shlex.split(command)
    assert (program, subcommand) == ("vllm", "run-batch")
    _main(arguments, behaviour)


def _main(arguments: list[str] | None = None, behaviour: Behaviour = willing) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-i", type=Path, required=True)
    parser.add_argument("-o", type=Path, required=True)
    parser.add_argument("--model", required=True)
    given = parser.parse_args(arguments)
    write_results(given.o, run_batch(given.i, given.model, behaviour))


if __name__ == "__main__":
    _main()
