"""`evalstone rubrics`: criteria for the answers to each sample, written by a judge into the dataset."""

from __future__ import annotations

import sys
from typing import Annotated

from evalstone._core.display import count, ended, quoted, safe
from evalstone.cli import options
from evalstone.cli.execution import RESUME, WITHOUT_NO_CACHE, interruptible
from evalstone.cli.options import FILE, option
from evalstone.cli.output import console, say, to_stderr
from evalstone.cli.values import judge_spec
from evalstone.errors import ConfigError, absent
from evalstone.results.endings import INTERRUPTED, ExitCode, code_of_judging


def rubrics(
    data: Annotated[str, options.argument("DATA", f"{options.SAMPLES}.", complete=FILE)],
    out: Annotated[
        str, option("--out -o FILE", "Output", "Where to write the samples with their rubrics (JSONL).", complete=FILE)
    ],
    map: options.Map = None,
    judge: options.Judge = None,
    base_url: options.BaseUrl = None,
    budget: options.Budget = None,
    cache: options.Cache = True,
    ledger: options.Ledger = None,
    concurrency: options.Concurrency = 32,
    quiet: options.Quiet = False,
) -> int:
    """Write a rubric for each sample, to review and use.

    The judge writes the criteria from the input and the reference, for samples that have none. The scorer rubric then
    uses them. It sees no answer, and asks what rubric(generate=true) asks, so that the ledger's criteria are the same.
    """
    from evalstone.datasets.writing import write_jsonl
    from evalstone.judge_quality.rubrics import write_rubrics
    from evalstone.ledger.base import DEFAULT_LEDGER

    if judge is None:
        raise ConfigError(absent("--judge", "rubrics needs a judge that writes text; name one: --judge openai/gpt-5.1"))
    if not out.endswith((".jsonl", ".ndjson")):
        raise ConfigError(f"--out takes a file of JSON Lines, such as with-rubrics.jsonl, not {quoted(out)}")
    resume = RESUME if cache else WITHOUT_NO_CACHE
    with interruptible(resume=resume) as stop:
        done = write_rubrics(
            data,
            map=map,
            judge=judge_spec(judge, base_url),
            concurrency=concurrency,
            cache=cache,
            budget=budget,
            progress=not quiet and sys.stderr.isatty(),
            stop=stop,
            ledger=DEFAULT_LEDGER if ledger is None else ledger,
        )
    if done.stop_reason:
        if stop.ending is INTERRUPTED:
            to_stderr(f"Interrupted after {count(done.written, 'rubric')}; {resume}.")
            return ExitCode.INTERRUPTED
        to_stderr(f"The samples were not written: {ended(done.stop_reason)} To go on, {resume}.")
        return ExitCode.INCOMPLETE
    write_jsonl(out, done.samples, redact=False)
    screen = console()
    others = [f"{done.kept:,} had one"] * bool(done.kept)
    others += [f"{done.without:,} without an input"] * bool(done.without)
    others += [f"{len(done.errors):,} failed"] * bool(done.errors)
    screen.print(", ".join([f"{count(done.written, 'rubric')} written", *others]))
    for sample, error in [*done.errors.items()][:3]:
        screen.print(safe(f"{sample}: {error}", 500), soft_wrap=True)
    say(f"Saved: {out}")
    return code_of_judging(len(done.errors), done.stop_reason)
