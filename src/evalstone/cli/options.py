"""Options that several commands share, each declared once, the values they parse to, and the exit codes."""

# ruff: noqa: PLC0415 - commands import what they run when they run, so that the command line starts fast

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from evalstone.errors import ConfigError, unknown

if TYPE_CHECKING:
    from evalstone.results.summary import ScorerInfo


class ExitCode(IntEnum):
    """How a command ended."""

    OK = 0
    FAILED_THRESHOLD = 1
    USAGE = 2
    FAILURES = 3
    INCONCLUSIVE = 4
    INTERRUPTED = 130


RUN_EXIT_CODES = (
    "Exit codes: 0 success; 1 a threshold was not met; 2 usage error; 3 some scores failed, or the run is incomplete; "
    "4 with --gate, inconclusive; 130 interrupted."
)
GATE_EXIT_CODES = (
    "Exit codes: 0 every check passes; 1 a check fails; 2 usage error; 3 every check passes, but some scores failed or "
    "the run is incomplete; 4 inconclusive."
)
DRIFT_EXIT_CODES = "Exit codes: 0 no drift; 1 drift; 2 usage error."
JUDGE_EXIT_CODES = "Exit codes: 0 success; 2 usage error; 3 some scores failed, or incomplete; 130 interrupted."

# Data
MapOption = Annotated[
    list[str] | None,
    typer.Option(
        "--map", metavar="FIELD=COLUMN", help="Read a field from this column, e.g. output=answer. Repeatable."
    ),
]
DataOption = Annotated[
    str | None,
    typer.Option("--data", metavar="FILE", help="The run's samples, if its results folder does not contain them."),
]

# Judge and scorers
ScorersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--scorer",
        "-s",
        metavar="SCORER",
        help="A scorer, with parameters if needed: 'context_relevance(scale=10)'. Repeatable. "
        "Default: faithfulness and context_relevance.",
    ),
]
JudgeOption = Annotated[
    str | None,
    typer.Option(
        "--judge",
        "-j",
        metavar="JUDGE",
        help="lexical (offline, no API key), a model such as openai/gpt-5.1, or a composite judge; "
        "see evalstone judges. Default: lexical.",
    ),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option("--base-url", metavar="URL", help="Base URL of an OpenAI-compatible server."),
]
BudgetOption = Annotated[
    float | None,
    typer.Option(metavar="USD", help="Stop before the cost exceeds this amount.", min=0),
]
NoCacheOption = Annotated[
    bool | None,
    typer.Option("--no-cache/--cache", help="Ignore cached judge answers, or reuse them (default)."),
]
ConcurrencyOption = Annotated[
    int | None,
    typer.Option("--concurrency", metavar="N", help="Maximum number of concurrent judge calls. Default: 32.", min=1),
]
DryRunOption = Annotated[
    bool,
    typer.Option("--dry-run", help="Estimate calls, tokens and cost without calling the judge."),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
VerboseOption = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Print each score to stderr as it arrives."),
]

# Saved runs
LedgerOption = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="LEDGER",
        help="Ledger of answers and runs: a path, sqlite:///path or postgresql://... Default: .evalstone/ledger.db.",
    ),
]
RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="A results folder, the ID or name of a run in the ledger, or last.", show_default=True
    ),
]
SliceByOption = Annotated[
    list[str] | None,
    typer.Option("--slice-by", metavar="FIELD", help="Also report each value of this metadata field. Repeatable."),
]
TopOption = Annotated[
    int | None,
    typer.Option("--top", metavar="N", help="Show this many of the worst samples. Default: 3.", min=0),
]
AllowMismatchOption = Annotated[
    bool,
    typer.Option("--allow-mismatch", help="Compare even if judges, scorers or samples differ; differences are noted."),
]
ConfidenceOption = Annotated[
    float, typer.Option("--confidence", metavar="LEVEL", help="Confidence level of the intervals.")
]
AlphaOption = Annotated[
    float,
    typer.Option(
        "--alpha",
        metavar="RATE",
        help="Error rate: the chance of a wrong pass, and of a wrong fail, over all checks.",
    ),
]

# Output
OutOption = Annotated[
    str | None,
    typer.Option("--out", "-o", metavar="FOLDER", help="Write records.jsonl, summary.json and samples.jsonl here."),
]
HtmlOption = Annotated[
    str | None,
    typer.Option("--html", metavar="FILE", help="Write a self-contained HTML page; - for stdout."),
]
MarkdownOption = Annotated[
    str | None,
    typer.Option("--markdown", metavar="FILE", help="Write Markdown for a pull request; - for stdout."),
]
CsvOption = Annotated[
    str | None,
    typer.Option("--csv", metavar="FILE", help="Write CSV that is safe to open in a spreadsheet; - for stdout."),
]
JunitOption = Annotated[
    str | None,
    typer.Option("--junit", metavar="FILE", help="Write JUnit XML; - for stdout."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on one line.")]


def field_columns(texts: Iterable[str]) -> dict[str, str | list[str]]:
    """`["output=answer"]` as a mapping; `input=` ignores a field, and several columns of `context` are joined.

    Raises ConfigError for anything else.
    """
    columns: dict[str, list[str]] = {}
    for text in texts:
        field, equals, column = (part.strip() for part in text.partition("="))
        if not (field and equals):
            raise ConfigError(f"--map takes FIELD=COLUMN, such as output=answer, not {text!r}")
        if column not in (names := columns.setdefault(field, [])):
            names.append(column)
        if len(names) > 1 and field != "context":
            raise ConfigError(f"--map names {field} twice: {' and '.join(names)}; only context takes several columns")
    return {field: names if len(names) > 1 else names[0] for field, names in columns.items()}


def scorer_numbers(texts: Iterable[str], option: str) -> dict[str, float]:
    """`["faithfulness=0.9", "contains(expected=z)=1"]` as a mapping from scorer to number.

    The number follows the last equals sign, since a scorer's parameters contain some. Raises ConfigError for a text of
    another form, a value that isn't a finite number, and a scorer named twice.
    """
    values: dict[str, float] = {}
    for text in texts:
        scorer, equals, number = (part.strip() for part in text.rpartition("="))
        if not (scorer and equals and number) or scorer.count("(") != scorer.count(")"):
            raise ConfigError(f"{option} takes SCORER=NUMBER, such as faithfulness=0.9, not {text!r}")
        value = finite(number, f"{option} {scorer}")
        if scorer in values:
            raise ConfigError(f"{option} names {scorer} twice: {values[scorer]:g} and {value:g}")
        values[scorer] = value
    return values


def pass_rates(texts: Iterable[str]) -> dict[str, tuple[float, float]]:
    """`["faithfulness@0.8=0.9"]` as a mapping from scorer to score and share. Raises ConfigError as scorer_numbers."""
    rates: dict[str, tuple[float, float]] = {}
    for text, share in scorer_numbers(texts, "--pass-rate").items():
        scorer, _, score = text.rpartition("@")
        if not scorer:
            raise ConfigError(f"--pass-rate takes SCORER@SCORE=SHARE, such as faithfulness@0.8=0.9, not {text!r}")
        if scorer in rates:
            raise ConfigError(f"--pass-rate names {scorer} twice; a gate takes one pass rate per scorer")
        rates[scorer] = (finite(score, f"--pass-rate {scorer}"), share)
    return rates


def finite(text: str, what: str) -> float:
    """A finite number. Raises ConfigError naming what it is for."""
    try:
        value = float(text)
    except ValueError:
        raise ConfigError(f"{what} takes a number, not {text!r}") from None
    if not math.isfinite(value):
        raise ConfigError(f"{what} takes a finite number, not {text!r}")
    return value


def scorer_named(name: str, scorers: Sequence[ScorerInfo], option: str) -> ScorerInfo:
    """The scorer of a run that a name, a signature or a spec such as `contains(expected=z)` refers to.

    Raises ConfigError for an unknown scorer, and for a name that several scorers share.
    """
    plain = name.replace("-", "_") if "(" not in name else name
    matches = [info for info in scorers if plain in (info.name, info.parameters, info.signature)]
    if not matches and "(" in name:
        from evalstone.scorers import parse_scorers

        (spec,) = parse_scorers([name])
        matches = [info for info in scorers if info.signature == spec.signature]
    if not matches:
        raise ConfigError(f"{option}: {unknown('scorer', name, [info.parameters for info in scorers])}")
    if len(matches) > 1:
        specs = " or ".join(info.parameters for info in matches)
        raise ConfigError(f"{option}: {name} is ambiguous; name one with its parameters: {specs}")
    return matches[0]


def judge_spec(judge: Any, base_url: str | None) -> Any:
    """A judge with a base URL added. Raises ConfigError unless the judge is one model."""
    if base_url is None:
        return judge
    if isinstance(judge, dict):
        return {**cast("dict[str, Any]", judge), "base_url": base_url}
    if "/" not in str(judge):
        raise ConfigError(f"--base-url needs a model as --judge, such as vllm/my-model, not {judge}")
    from evalstone.judges.parse import table_of

    table = table_of(str(judge))
    if isinstance(table, str):
        return {"model": judge, "base_url": base_url}
    if "model" not in table:
        raise ConfigError(
            "--base-url applies to a single model; in a composite judge, set it per model: vllm/x(base_url=http://...)"
        )
    return {**table, "base_url": base_url}
