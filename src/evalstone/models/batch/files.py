"""Batches as files in a folder, for `vllm run-batch` or a provider's file upload. evalstone sends nothing.

The requests of a batch are in `evalstone-ID.requests.jsonl`, and its results are expected beside them, in files named
`evalstone-ID.results*.jsonl`. A batch ends when each request has a result. It also ends, without the others, when there
are results and the file of requests was deleted.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import IO

from evalstone._core import sync
from evalstone._core.display import count
from evalstone._core.storage import Location
from evalstone.errors import ConfigError, ProviderError
from evalstone.models.batch.base import RESULT_BYTES, BatchState, Finding, Result
from evalstone.models.batch.chat import ChatBatches, chat_results, merge
from evalstone.models.catalog import CHAT
from evalstone.models.model import LanguageModel

REQUESTS = ".requests.jsonl"
"""The end of the name of a file of requests."""
RESULTS = ".results.jsonl"
_ENVELOPE = 100_000
"""Bytes of a line besides the response, of which `max_reply_bytes` are read."""
_NAME = re.compile(rf"evalstone-([0-9a-f]{{16}}){re.escape(REQUESTS)}")


class BatchFiles(ChatBatches):
    """Files of chat completions in a folder: a local one, or an address that pyarrow reaches.

    The limits of a file are the lowest of common providers.
    """

    kind = "files"
    most_requests = 50_000
    most_bytes = 100_000_000
    lists_at_once = True
    submits = "written"

    def __init__(self, model: LanguageModel, folder: str | Path) -> None:
        super().__init__(model)
        self.folder = Location.of(folder)
        self._partial: dict[str, tuple[list[Location], BatchState]] = {}
        """The states of batches in progress, with the files that were read."""
        self._complete: dict[str, list[Result]] = {}
        """The results of batches that ended, until they are collected."""

    def check(self) -> None:
        if self.model.protocol != CHAT:
            raise ConfigError(
                f"files of requests are in OpenAI's format, which {self.model.model} doesn't take; use a model of an "
                "OpenAI-compatible endpoint, such as vllm/…"
            )
        self.model.check_kind()
        self.model.check_supported()
        if (path := self.folder.local) is not None and path.exists() and not path.is_dir():
            raise ConfigError(f"{self.folder} is a file; name a folder for the files of requests")

    def opened(self) -> AbstractAsyncContextManager[object]:
        return nullcontext()

    def price(self, cost: float | None) -> float | None:
        """The cost of a request: at `prices` if they are set, or else at half the listed price."""
        return cost if self.model.prices is not None else super().price(cost)

    def shown(self, remote: str) -> str:
        return str(self.folder / remote)

    async def submit(self, batch: str, lines: Sequence[bytes]) -> str:
        name = f"evalstone-{batch}{REQUESTS}"

        def write(file: IO[bytes]) -> None:
            file.writelines(line + b"\n" for line in lines)

        await sync.call((self.folder / name).write, write)
        return name

    async def find(self, batch: str, *, since: datetime, requests: int, known: Iterable[str]) -> Finding:
        name = f"evalstone-{batch}{REQUESTS}"
        return Finding(name) if await sync.call(self._has_any, name) else Finding()

    async def state(self, remote: str, requests: int) -> BatchState:
        return await sync.call_in_turn(self._state, remote, requests)

    async def results(self, state: BatchState) -> list[Result]:
        return self._complete.pop(state.remote)

    def _has_any(self, name: str) -> bool:
        return (self.folder / name).found() is not None or bool(_results_of(self.folder / name))

    def _state(self, remote: str, requests: int) -> BatchState:
        files = _results_of(self.folder / remote)
        file = (self.folder / remote).found()
        read = [*files, *((file,) if file is not None else ())]
        if remote in self._partial and self._partial[remote][0] == read:
            return self._partial[remote][1]
        results, others = self._read(remote, requests, files)
        ended = "completed" if len(results) >= requests else "some results are missing" if files and not file else ""
        note = f"{count(others, 'line')} of its results can't be used" if others else ""
        if not files and file is None:
            note = "neither its requests nor its results are there"
        state = BatchState(remote, ended, len(results), requests, note=note)
        if ended:
            self._complete[remote] = results
        else:
            self._partial[remote] = read, state
        return state

    def _read(self, remote: str, requests: int, files: Sequence[Location]) -> tuple[list[Result], int]:
        """The results of a batch, and the number of lines that are no results of its requests."""
        limit = self.model.max_reply_bytes
        most = max(RESULT_BYTES, limit)
        if (size := sum(file.size for file in files)) > most:
            raise ProviderError(f"its results have {size:,} bytes; max_reply_bytes allows more than {most:,}")
        own = re.compile(rf"{_batch(remote)}-[0-9a-f]{{32}}")
        results, lines, used = dict[str, Result](), 0, 0

        def counted(stream: IO[bytes]) -> Iterator[bytes]:
            nonlocal lines
            for line in bounded_lines(stream, limit + _ENVELOPE):
                lines += 1
                yield line

        for file in files:
            with file.open() as stream:
                for result in chat_results(counted(stream), limit):
                    if own.fullmatch(result.custom_id):
                        merge(results, result)
                        used += 1
                    if len(results) > requests:
                        raise ProviderError(f"{file} has results of more than its {count(requests, 'request')}")
        return list(results.values()), lines - used


def unanswered(names: Iterable[str]) -> list[str]:
    """Those of a run's open batches that are files of requests on this machine without results."""
    paths = [Location.of(name) for name in names if name.endswith(REQUESTS)]
    return [str(path) for path in paths if path.local is not None and path.found() and not _results_of(path)]


def vllm_command(requests: str, model: str) -> str:
    """The command that answers a file of requests with vLLM. model: as named to evalstone."""
    results = f"{requests.removesuffix(REQUESTS)}{RESULTS}"
    name = model.partition("/")[2]
    return shlex.join(("vllm", "run-batch", "-i", requests, "-o", results, "--model", name))


def bounded_lines(stream: IO[bytes], most: int) -> Iterator[bytes]:
    """The lines of a file that aren't blank. Of a line of more than `most` bytes, only the first are read."""
    while line := stream.readline(most):
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = stream.readline(most)
        if line.strip():
            yield line


def _results_of(requests: Location) -> list[Location]:
    """The files of results beside a file of requests."""
    return requests.folder.files(f"evalstone-{_batch(requests.name)}.results*.jsonl")


def _batch(remote: str) -> str:
    """The id of a batch. Raises ProviderError for a name that isn't that of a file of requests."""
    if (match := _NAME.fullmatch(remote)) is None:
        raise ProviderError("it has no name of a file of requests")
    return match[1]
