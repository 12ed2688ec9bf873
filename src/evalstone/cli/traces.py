"""`evalstone collect` and `evalstone traces`: receive traces, and select samples from them."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import click

import evalstone
from evalstone._core.display import count, excerpt, named, quoted, safe
from evalstone._core.front_ends import COMMAND_LINE
from evalstone._core.times import iso_time
from evalstone.cli import completion, handled, options
from evalstone.cli.options import FILE, Value, Values, argument, option
from evalstone.cli.output import console, table, to_stderr
from evalstone.cli.values import judge_spec, needed_duration, scorer_specs
from evalstone.errors import ConfigError, DataError, MissingDependency, unknown
from evalstone.results.endings import ExitCode
from evalstone.types import Sample, trace_metadata

if TYPE_CHECKING:
    from evalstone.collect.server import Receiver
    from evalstone.collect.spool import Spool
    from evalstone.live import Live

PORT = 4318
WAITING = 500
"""The most samples that wait in memory for their scores; others wait in the spool. At shutdown, this many can be
written to the ledger as pending within a second."""
CLOSING = 30.0
"""Seconds for the remaining scores at shutdown. The next start resumes with what is pending in the ledger."""
SHUTDOWN = 5.0
"""The part of these seconds that is reserved for writing the queue to the ledger as pending, and ending the worker."""
LAST = 3.0
"""The most seconds that these two take."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")
TRACES = "traces.jsonl"


def _source(name: str) -> Callable[[Sample], str]:
    return lambda sample: str(trace_metadata(sample).get(name, ""))


FIELDS: Mapping[str, Callable[[Sample], str]] = {
    "service": _source("service"),
    "entity": _source("entity"),
    "trace": _source("trace_id"),
    "model": lambda sample: str(sample.metadata.get("model", "")),
    "group": lambda sample: sample.group or "",
    "error": lambda sample: "yes" if "error" in sample.metadata else "no",
    "context": lambda sample: "no" if sample.context is None else "yes",
}
"""The fields of --where."""


def traces(
    file: Annotated[
        str,
        argument("FILE", "Traces: OTLP JSON or spans, one per line (.jsonl, .json, optionally .gz).", complete=FILE),
    ],
    where: Annotated[
        Values,
        option(
            "--where FIELD=VALUE",
            "Data",
            f"Only samples with this {', '.join(FIELDS)} (error and context: yes or no). Several values "
            "of one field match any of them; different fields must all match.",
            complete=completion.words(*(f"{field}=" for field in FIELDS)),
        ),
    ] = None,
    since: options.Since = None,
    until: options.Until = None,
    limit: Annotated[int | None, option("--limit N", "Data", "Only the first N samples.", min=1)] = None,
    out: Annotated[
        Value, option("--out -o FILE", "Output", "Write the matching samples as a dataset (.jsonl).")
    ] = None,
) -> int:
    """List the samples in a file of traces, or create a dataset from them."""
    from evalstone._core.atomic_files import check_writable
    from evalstone.collect.export import has_traces
    from evalstone.datasets.stored import write_samples

    choice = Choice.of(where or [], since, until)
    if out is not None:
        check_writable(out)
        if Path(out).is_file() and ((Path(file).exists() and Path(file).samefile(out)) or has_traces(Path(out))):
            raise ConfigError(
                f"{quoted(out)} contains traces, which a dataset would overwrite; use another file for --out"
            )
    try:
        dataset = evalstone.load(file)
    except DataError as error:
        if error.kind != "unrecognized":
            raise
        raise DataError(
            f"{named(file)} contains neither traces (OTLP export requests, with resourceSpans or resourceLogs, or "
            "spans with their IDs) nor evalstone samples (with input, output, context, reference, messages or turns)"
        ) from None
    for note in dataset.notes:
        to_stderr(safe(note, 2000))
    chosen = [sample for sample in dataset if choice.takes(sample)][:limit]
    if out is None:
        _show(chosen)
    elif chosen:
        write_samples(Path(out), chosen)
    click.echo(f"{len(chosen):,} of {count(len(dataset), 'sample')}" + (f" in {safe(out)}" if out and chosen else ""))
    return ExitCode.OK if chosen else ExitCode.INCOMPLETE


@dataclass(frozen=True)
class Choice:
    """The filters for samples."""

    values: Mapping[str, frozenset[str]]
    since: datetime | None
    until: datetime | None

    @classmethod
    def of(cls, where: Iterable[str], since: datetime | None, until: datetime | None) -> Choice:
        """The filters from the options of the command line. Raises ConfigError for a wrong option."""
        values: dict[str, frozenset[str]] = {}
        for text in where:
            field, equals, value = (part.strip() for part in text.partition("="))
            if not equals:
                raise ConfigError(f"--where takes FIELD=VALUE, such as service=shop, not {excerpt(text)}")
            if field not in FIELDS:
                raise ConfigError("--where: ", unknown("field", field, FIELDS))
            if field in ("error", "context") and value not in ("yes", "no"):
                raise ConfigError(f"--where {field} takes yes or no, not {excerpt(value)}")
            values[field] = values.get(field, frozenset()) | {value}
        return cls(values, since, until)

    def takes(self, sample: Sample) -> bool:
        """Whether a sample matches. With a period, a sample without a time doesn't."""
        if any(FIELDS[field](sample) not in values for field, values in self.values.items()):
            return False
        if self.since is None and self.until is None:
            return True
        try:
            time = iso_time(str(sample.metadata.get("started")))
        except ValueError:
            return False
        return (self.since is None or time >= self.since) and (self.until is None or time < self.until)


def _show(samples: Iterable[Sample]) -> None:
    lines: dict[tuple[str, str], Counter[str]] = {}
    for sample in samples:
        line = lines.setdefault((FIELDS["service"](sample), FIELDS["entity"](sample)), Counter())
        line["samples"] += 1
        line["answered"] += sample.output is not None
        line["with context"] += sample.context is not None
        line["errors"] += "error" in sample.metadata
    counts = ("samples", "answered", "with context", "errors")
    rows = table("service", "entity", *counts, numbers=counts)
    for (service, entity), line in sorted(lines.items()):
        rows.add_row(safe(service or "-", 80), safe(entity or "-", 80), *(f"{line[name]:,}" for name in counts))
    if lines:
        console().print(rows)


def collect(
    host: Annotated[
        str, option("--host HOST", "Options", "Address to listen on. There is no authentication.")
    ] = "127.0.0.1",
    port: Annotated[
        int, option("--port PORT", "Options", "Port to listen on; 0 for any free one.", min=0, max=65535)
    ] = PORT,
    out: Annotated[
        str,
        option(
            "--out -o FILE", "Output", "Append received traces to this file. FILE.spool is the queue.", complete=FILE
        ),
    ] = TRACES,
    scorer: Annotated[
        Values,
        option(
            "--scorer -s SCORER",
            "Options",
            "Score complete traces with this scorer as they arrive.",
            complete=completion.scorers,
        ),
    ] = None,
    judge: options.Judge = None,
    base_url: options.BaseUrl = None,
    sampling: Annotated[
        float | None,
        option("--sampling RATE", "Running", "Share of the traces to score.", default="1", min=0, max=1),
    ] = None,
    daily_budget: Annotated[
        float | None, option("--daily-budget USD", "Judge", "Stop scoring for the day (UTC) at this cost.", min=0)
    ] = None,
    stream: Annotated[
        Value, option("--stream NAME", "Options", "The stream of the scores in the ledger.", default="traces")
    ] = None,
    keep_reasoning: options.KeepReasoning = False,
    settle: Annotated[
        Value,
        option("--settle TIME", "Running", "How long without new spans a trace counts as complete.", default="5s"),
    ] = None,
    ledger: options.Ledger = None,
    otel: Annotated[
        bool,
        option("--otel", "Output", "Export the scores over OTLP/HTTP, as set by the OTEL_... environment variables."),
    ] = False,
) -> int:
    """Receive traces over OTLP/HTTP, write them to a file, and score them."""
    from evalstone.collect.scoring import scoring_into
    from evalstone.collect.server import Receiver
    from evalstone.collect.spool import Spool

    of_scoring = {
        "--judge": judge,
        "--base-url": base_url,
        "--sampling": sampling,
        "--daily-budget": daily_budget,
        "--stream": stream,
        "--keep-reasoning": keep_reasoning or None,
        "--settle": settle,
        "--ledger": ledger,
        "--otel": otel or None,
    }
    if not scorer and (refused := next((key for key, value in of_scoring.items() if value is not None), None)):
        raise ConfigError(f"{refused} requires --scorer; without it, traces are only written to the file")
    quiet = needed_duration(settle or "5s", "--settle", "5s or 1m")
    live = None
    if scorer:
        from evalstone.ledger.base import DEFAULT_LEDGER
        from evalstone.live import Live
        from evalstone.otel.otlp import emit_otlp, export_otlp

        if otel:
            export_otlp()  # the worker exports, but wrong settings must fail here
            check_endpoints(host, port)
        live = Live(
            scorer_specs(scorer),
            judge_spec(judge or "lexical", base_url),
            stream=stream or "traces",
            sampling=1.0 if sampling is None else sampling,
            daily_budget=daily_budget,
            ledger=DEFAULT_LEDGER if ledger is None else ledger,
            queue=WAITING,
            keep_reasoning=keep_reasoning,
            front_end=COMMAND_LINE,
            on_record=emit_otlp if otel else None,
        )

    async def serve() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        async with contextlib.AsyncExitStack() as stack:
            spool, scoring = Spool(Path(out), scored=live is not None), None
            if live is not None:
                scoring = await stack.enter_async_context(scoring_into(live, spool, quiet.total_seconds()))
            receiver = Receiver(spool, scoring)
            with handled(lambda number, frame: loop.call_soon_threadsafe(stop.set)):
                try:
                    url = await receiver.start(host, port)
                    if otel:
                        check_endpoints(host, urlsplit(url).port)  # with port 0, the port is only known now
                    if live is not None:
                        live.start()
                    _greet(url, host, out, spool)
                    await stop.wait()
                finally:
                    end = loop.time() + CLOSING
                    try:
                        await receiver.stop(CLOSING - SHUTDOWN)
                    finally:
                        if live is not None:
                            await live.aclose(max(SHUTDOWN, end - loop.time()) - LAST)
                        if receiver.scoring_error:
                            _sum_up(receiver, out, live)
        _sum_up(receiver, out, live)

    asyncio.run(serve())
    return ExitCode.OK


def check_endpoints(host: str, port: int | None) -> None:
    """Raise ConfigError if the scores would be exported to the address that this command listens on."""
    from evalstone.otel.export import endpoints

    for variable, endpoint in endpoints().items():
        try:
            parts = urlsplit(endpoint.strip())
            endpoint_port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        except ValueError:  # not a URL, which the exporter reports
            continue
        name = (parts.hostname or "").casefold()
        if endpoint_port == port and (name == host.casefold() or (_is_local(name) and _is_local(host))):
            raise ConfigError(
                f"the scores would be exported to {safe(name)} port {port}, where this command itself listens; set "
                f"{variable} to another endpoint, or choose another --port"
            )


def _is_local(host: str) -> bool:
    """Whether a host is this machine, by a loopback address or the address of all interfaces."""
    try:
        address = ip_address(host)
    except ValueError:
        return host.casefold() == "localhost"
    return address.is_loopback or address.is_unspecified


def _greet(url: str, host: str, out: str, spool: Spool) -> None:
    from evalstone.collect.protobuf import check_installed

    if spool.waiting:
        to_stderr(f"Resuming with {count(spool.waiting, 'record')} that earlier calls of this command have received.")
    if host not in LOOPBACK:
        to_stderr(
            f"Listening on {host} without authentication: anyone who can reach this address can write to the file."
        )
    try:
        check_installed()
    except MissingDependency as error:
        to_stderr(f"Accepting only JSON: {error}")
    to_stderr(safe(f"Writing to {out}. Export to it with OTEL_EXPORTER_OTLP_ENDPOINT={url}; Ctrl-C to stop.", 2000))


def _sum_up(receiver: Receiver, out: str, live: Live | None) -> None:
    logs = f" and {count(receiver.logs, 'log record')}" if receiver.logs else ""
    refused = f"; {count(receiver.refused, 'request')} refused" if receiver.refused else ""
    rejected = f"; {receiver.rejected:,} more rejected" if receiver.rejected else ""
    to_stderr(safe(f"Received {count(receiver.spans, 'span')}{logs}, in {out}{rejected}{refused}.", 2000))
    if problem := receiver.spool.export_error:
        to_stderr(safe(f"{out} lacks the last of them: {problem}. The next start appends them.", 2000))
    scoring = receiver.scoring
    if live is None or scoring is None:
        return

    for note in scoring.notes.lines():
        to_stderr(safe(note, 2000))
    if late := scoring.late:
        to_stderr(f"{count(late, 'record')} arrived after their trace was scored; increase --settle")
    if dropped := receiver.spool.dropped:
        to_stderr(safe(f"Not scored: {count(dropped, 'record')} in {out}; too many waited.", 2000))
    if waiting := receiver.spool.waiting:
        why = "scoring ended with an error" if receiver.scoring_error else "they arrived too fast"
        to_stderr(f"Not scored yet: {count(waiting, 'record')}; {why}. The next start scores them.")
    try:
        scorers = live.coverage().scorers
    except ConfigError:  # the stream isn't in the ledger, as before its first trace
        if scoring.passed:
            raise
        return
    for line in scorers:
        states = f"{count(line.n_score, 'score')}, {line.n_skipped:,} skipped, {line.n_failed:,} failed"
        states += f", {line.pending:,} pending"
        if dropped := line.dropped_queue + line.dropped_budget:
            states += f", {dropped:,} dropped"
        to_stderr(safe(f"{line.scorer}: {states}, of {line.eligible:,} in the ledger", 2000))
