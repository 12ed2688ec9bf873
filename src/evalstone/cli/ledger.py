"""`evalstone ledger ...`: inspect, copy, check and shrink the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from evalstone._core.display import count, quoted, safe
from evalstone._core.files import file_values
from evalstone._core.phases import phase
from evalstone.cli import completion, options
from evalstone.cli.options import FILE, Outputs, argument, front_end, option
from evalstone.cli.output import console, formats, present, table, to_stderr
from evalstone.errors import ConfigError, DataError
from evalstone.results.endings import ExitCode

MAX_DAYS = 36_500


def _existing(ledger: str | None) -> str:
    from evalstone.ledger.base import existing

    return existing(ledger)


def info(ledger: options.Ledger = None, *, outputs: Outputs) -> int:
    """Show size, row counts, cost by judge and target, and the latest runs."""
    from evalstone.ledger.maintenance import info as ledger_info
    from evalstone.ledger.store import Ledger

    with Ledger(_existing(ledger)) as opened, phase("reading the ledger"):
        found = ledger_info(opened)
    view = found.view(front_end(info))
    present(view, formats(view, outputs, found.to_dict()))
    return ExitCode.OK


def scores(
    ledger: options.Ledger = None,
    scorer: Annotated[
        options.Value,
        option(
            "--scorer SCORER",
            "Data",
            "Only this scorer: its name, with or without parameters, or its signature.",
            complete=completion.scorers,
        ),
    ] = None,
    source: Annotated[
        Literal["live", "run", "trace"] | None,
        option("--source", "Data", "Only scores of live traffic, of runs, or of stored traces."),
    ] = None,
    stream: Annotated[options.Value, option("--stream NAME", "Data", "Only live scores of this stream.")] = None,
    run: Annotated[
        options.Value,
        option("--run RUN", "Data", "Only scores of this run: its ID, or its name.", complete=completion.runs),
    ] = None,
    entity: Annotated[options.Value, option("--entity NAME", "Data", "Only scores of this agent or target.")] = None,
    since: options.Since = None,
    until: options.Until = None,
    limit: Annotated[int, option("--limit N", "Output", "How many scores to list.", min=1)] = 50,
    before: Annotated[
        options.Value, option("--before CURSOR", "Output", "The cursor at the end of the previous page.")
    ] = None,
    *,
    outputs: Outputs,
) -> int:
    """List scores, newest first.

    The time of a run's scores is the start of the run.
    """
    from evalstone.ledger.scores import list_scores, unknown_names

    listing = list_scores(
        ledger,
        scorer=scorer,
        source=source,
        stream=stream,
        run=run,
        entity=entity,
        since=since,
        until=until,
        limit=limit,
        before=before,
    )
    view = listing.view(front_end(scores))
    if present(view, formats(view, outputs, listing.to_dict(), csv=listing.csv_lines)) and not listing:
        for problem in unknown_names(ledger, scorer=scorer, stream=stream):
            to_stderr(safe(problem, 2000))
    return ExitCode.OK


def export(
    to: Annotated[str, argument("FILE", "A .jsonl or .parquet file; for labels, .jsonl or .csv.", complete=FILE)],
    ledger: options.Ledger = None,
    what: Annotated[
        Literal["all", "answers", "records", "labels"],
        option(
            "--what",
            "Options",
            "Rows to export; .parquet files contain answers or records. Labels are a file for report, gate, compare "
            "and calibrate.",
        ),
    ] = "all",
    run: Annotated[
        str,
        option(
            "--run RUN",
            "Options",
            "The run whose records or labels to export: its ID or name, or last.",
            complete=completion.runs,
        ),
    ] = "last",
    scorer: Annotated[
        str | None,
        option(
            "--scorer -s SCORER",
            "Options",
            "The scorer whose labels to export.",
            default="the run's first",
            complete=completion.scorers,
        ),
    ] = None,
    by_hand: Annotated[
        bool,
        option("--by-hand", "Options", "Labels too whose samples were chosen by hand, which corrections can't use."),
    ] = False,
) -> int:
    """Export rows to a file, as a backup or for another ledger, or labels as a label file."""
    from evalstone.datasets.writing import write_jsonl
    from evalstone.ledger.copy import export_records, export_rows, write_parquet
    from evalstone.ledger.store import Ledger
    from evalstone.run.saved import find_row

    suffix = Path(to).suffix.lower()
    if what == "labels":
        return _export_labels(to, suffix, _existing(ledger), run, scorer, by_hand=by_hand)
    if suffix not in (".jsonl", ".parquet"):
        raise ConfigError(f"the file's name must end in .jsonl or .parquet, not {quoted(to)}")
    if suffix == ".parquet" and what == "all":
        raise ConfigError("a Parquet file has one kind of row: add --what answers or --what records")
    with Ledger(_existing(ledger)) as opened:
        kinds = ["answer"] if what == "answers" else []
        if what == "records":
            if (row := find_row(opened, run)) is None:
                raise ConfigError(f"there is no run {run} in the ledger {opened.location}")
            rows = export_records(opened, row.id)
        else:
            rows = export_rows(opened, *kinds)
        number = 0

        def counted() -> Iterator[Any]:
            nonlocal number
            for row in rows:
                number += 1
                yield row

        with phase(f"writing {to}", "row") as writing:
            if suffix == ".parquet":
                number = write_parquet(to, what, writing.count(rows))
            else:  # rows in the ledger are redacted already, except for samples
                write_jsonl(to, writing.count(counted()), redact=False)
    console().print(f"{count(number, 'row')} written to {to}")
    return ExitCode.OK


def _export_labels(to: str, suffix: str, ledger: str, name: str, scorer: str | None, *, by_hand: bool) -> int:
    """Write the labels of a scorer as a label file."""
    from evalstone._core.file_format import LABEL_FORMAT
    from evalstone.cli.results import find_run
    from evalstone.cli.values import scorer_named
    from evalstone.datasets.writing import write_jsonl, write_text
    from evalstone.judge_quality.labeling import Sheet, label_csv, label_rows
    from evalstone.ledger.labels import labels
    from evalstone.ledger.store import Ledger

    if suffix not in (".csv", ".jsonl"):
        raise ConfigError(f"the name of a label file must end in .csv or .jsonl, not {quoted(to)}")
    run = find_run(name, ledger)
    info = run.scorers[0] if scorer is None else scorer_named(scorer, run.scorers, "--scorer")
    with Ledger(ledger, read_only=True) as opened:
        found = labels(opened, run.id, info.signature)
    rows = label_rows(Sheet.of(run, info.signature), found, by_hand=by_hand) if found else []
    if not rows:
        raise ConfigError(f"no sample of run {run.id} has a label of {run.titles[info.signature]} to export")
    if suffix == ".csv":
        write_text(to, label_csv(rows))
    else:
        write_jsonl(to, ({"format": LABEL_FORMAT, **row} for row in rows))
    console().print(f"{count(len(rows), 'labeled sample')} written to {to}")
    return ExitCode.OK


def import_(
    files: Annotated[
        list[str], argument("FILE", "Exported .jsonl files, or records.jsonl for its answers.", complete=FILE)
    ],
    ledger: options.Ledger = None,
) -> int:
    """Import exported rows.

    Rows that the ledger already has stay as they are.
    """
    from evalstone.ledger.base import DEFAULT_LEDGER
    from evalstone.ledger.copy import import_rows
    from evalstone.ledger.store import Ledger

    screen = console()
    with Ledger(DEFAULT_LEDGER if ledger is None else ledger) as opened:
        for file in files:
            with phase(f"importing {file}", "row") as importing:
                added = import_rows(opened, importing.count(_read(Path(file))))
            rows = ", ".join(f"{kind}s: {number:,}" for kind, number in added.items() if number) or "nothing new"
            screen.print(f"{file}: added to {opened.location}: {rows}")
    return ExitCode.OK


def _read(file: Path) -> Iterator[tuple[str, Any]]:
    try:
        yield from file_values(file)
    except OSError as error:
        raise DataError(f"{file} can't be read: {error.strerror or error}") from None


def prune(
    ledger: options.Ledger = None,
    older_than: Annotated[
        float | None, option("--older-than DAYS", "Options", "Runs started, and live scores, more than DAYS ago.")
    ] = None,
    unfinished: Annotated[bool, option("--unfinished", "Options", "Incomplete runs that are not running now.")] = False,
    unused_answers: Annotated[
        bool, option("--unused-answers", "Options", "Answers that no remaining record uses.")
    ] = False,
    labeled: Annotated[bool, option("--labeled", "Options", "Also runs that people have labeled or pinned.")] = False,
    yes: Annotated[bool, option("--yes", "Options", "Delete. Without it, only show what would be deleted.")] = False,
) -> int:
    """Delete runs or answers.

    Deletes only what you select, and only with --yes. Runs that people have labeled or pinned are kept without
    --labeled.
    """
    from datetime import timedelta

    from evalstone.ledger.maintenance import prune as prune_ledger
    from evalstone.ledger.store import Ledger

    if older_than is None and not unfinished and not unused_answers:
        raise ConfigError("select what to delete: --older-than DAYS, --unfinished or --unused-answers")
    if older_than is not None and not 0 <= older_than <= MAX_DAYS:
        raise ConfigError(f"--older-than takes a number of days from 0 to {MAX_DAYS:,}, not {older_than:g}")
    with Ledger(_existing(ledger)) as opened:
        with phase("deleting" if yes else "looking for what can be deleted"):
            age = None if older_than is None else timedelta(days=older_than)
            pruned = prune_ledger(
                opened,
                older_than=age,
                unfinished=unfinished,
                unused_answers=unused_answers,
                labeled=labeled,
                delete=yes,
            )
        if yes and (pruned.runs or pruned.samples or pruned.answers or pruned.live_scores):
            with phase("shrinking the ledger"):
                opened.compact()
    rows = f"{count(pruned.runs, 'run')} with {count(pruned.records, 'record')}, {count(pruned.samples, 'sample')}"
    rows += f", {count(pruned.answers, 'answer')}"
    rows += f", {count(pruned.batches, 'open batch record')}" if pruned.batches else ""
    rows += f", {count(pruned.live_scores, 'live score')}" if pruned.live_scores else ""
    screen = console()
    screen.print(f"Deleted {rows}." if yes else f"Would delete {rows}. Nothing was deleted; add --yes.")
    if pruned.labeled:
        screen.print(f"Kept {count(pruned.labeled, 'run')} with labels or a pin; --labeled selects them too.")
    return ExitCode.OK


def verify(ledger: options.Ledger = None) -> int:
    """Check the ledger for damage.

    Exit code 1 if it is damaged.
    """
    from evalstone.ledger.base import shown
    from evalstone.ledger.maintenance import verify as verify_ledger
    from evalstone.ledger.schema import SCHEMA_VERSION

    url = _existing(ledger)
    with phase("checking the ledger"):
        result, name = verify_ledger(url), shown(url)
    screen = console()
    for problem in (*result.damage, *result.invalid_rows):
        screen.print(f"  {safe(problem, 500)}")
    if not result.sound:
        screen.print(f"{name} is damaged. To copy what is readable into a new ledger, run:", style="red")
        screen.print(f"evalstone ledger recover {name} --into NEW.db")
        return ExitCode.CHECK_FAILED
    if result.schema_version != SCHEMA_VERSION:
        screen.print(f"{name} is intact, but of version {result.schema_version or 'none yet'}; its rows were not read.")
    else:
        screen.print(f"{name} is intact: version {result.schema_version}, {count(result.rows, 'row')} read.")
    return ExitCode.OK


def recover(
    damaged: Annotated[str, argument("FILE", "The damaged ledger. It is not changed.", complete=FILE)],
    into: Annotated[str, option("--into LEDGER", "Options", "A new ledger, or one to add to.")],
) -> int:
    """Copy the readable rows of a damaged ledger into another one."""
    from evalstone.ledger.base import shown
    from evalstone.ledger.copy import recover as recover_rows

    numbers = ("copied", "already there", "unreadable", "invalid")
    rows = table("rows", *numbers, numbers=numbers)
    cut_off: list[str] = []
    with phase(f"copying {damaged}"):
        recovered = recover_rows(damaged, into)
    for kind, result in recovered.items():
        counts = (result.copied, result.existing, result.unreadable, result.invalid)
        rows.add_row(f"{kind}s", *(f"{number:,}" for number in counts))
        if result.cut_off:
            cut_off.append(f"{kind}s")
    screen = console()
    screen.print(rows)
    if cut_off:
        screen.print(
            f"\nThe end of the {' and the '.join(cut_off)} is damaged: rows after the last readable one are lost."
        )
    screen.print(f"\nThe readable rows of {damaged} are in {shown(into)}.")
    return ExitCode.OK
