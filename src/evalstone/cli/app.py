"""The command line: its commands, and what becomes of errors.

Modules of commands import what they run inside their functions, so that `evalstone --help` stays fast.
"""

# ruff: noqa: PLC0415 - commands import what they run when they run, so that the command line starts fast

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from evalstone.cli import annotate, catalog, judge, ledger, results, run
from evalstone.cli.options import DRIFT_EXIT_CODES, GATE_EXIT_CODES, JUDGE_EXIT_CODES, RUN_EXIT_CODES, ExitCode
from evalstone.errors import EvalstoneError, RunAborted

# The base class of all errors in how a command is called; Typer doesn't export it.
_CallError: Any = typer.BadParameter.__mro__[2]


TOPICS = {
    "Judge": "judge base_url budget no_cache per_judge",
    "Running": "concurrency batch wait dry_run",
    "Thresholds": "fail_under fail_over gate minimum maximum max_regression pass_rate",
    "Statistics": "alpha confidence correction inconclusive power objective calibrator threshold label_threshold seed",
    "Output": "out html markdown csv junit svg as_json top quiet verbose",
}
_TOPIC = {option: topic for topic, options in TOPICS.items() for option in options.split()}


_TYPE = re.compile(r" <[a-z \[\]]+>")


class WriteError(Exception):
    """Standard output can't be written to."""


class Command(TyperCommand):
    """A command whose help lists its options by topic."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections of arguments and options."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                row = (_TYPE.sub("", record[0]), record[1])
                title = (
                    "Arguments" if parameter.param_type_name == "argument" else _TOPIC.get(parameter.name, "Options")
                )
                sections.setdefault(title, []).append(row)
        for title in ("Arguments", "Options", *TOPICS):
            if title in sections:
                with formatter.section(title):
                    formatter.write_dl(sections[title])


class Commands(TyperGroup):
    """The commands; a write error on standard output is caught before Typer makes its own exit code of it."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command and flush what it printed."""
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
            return code
        except OSError as error:
            if error.filename is not None:
                raise
            raise WriteError(error.strerror or str(error)) from error


SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    name="evalstone",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=SETTINGS,
)
ledger_app = typer.Typer(
    help="Inspect and maintain the ledger.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings=SETTINGS,
)


def _add(to: typer.Typer, command: Callable[..., int], name: str | None = None, epilog: str | None = None) -> None:
    to.command(name, cls=Command, epilog=epilog)(command)


_add(app, run.run, epilog=RUN_EXIT_CODES)
_add(app, run.score)
_add(app, run.demo)
_add(app, catalog.scorers)
_add(app, judge.judges)
_add(app, results.report)
_add(app, results.compare)
_add(app, results.drift, epilog=DRIFT_EXIT_CODES)
_add(app, results.gate, epilog=GATE_EXIT_CODES)
_add(app, results.power)
_add(app, results.runs)
_add(app, annotate.annotate)
_add(app, judge.calibrate, epilog=JUDGE_EXIT_CODES)
_add(app, judge.audit, epilog=JUDGE_EXIT_CODES)
app.add_typer(ledger_app, name="ledger")
for _command in (ledger.info, ledger.export, ledger.prune, ledger.verify, ledger.recover):
    _add(ledger_app, _command)
_add(ledger_app, ledger.import_, "import")


@app.callback(invoke_without_command=True)
def evalstone(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Evaluate the outputs of LLMs, RAG pipelines and agents."""
    if version:
        from importlib.metadata import version as installed

        typer.echo(installed("evalstone"))
        raise typer.Exit


def main() -> None:
    """Run the command line. An error is one line on standard error and an exit code."""
    sys.path.append(str(Path.cwd()))  # for scorers named module:scorer; last, so that nothing there hides a library
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - closed by the caller
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    try:
        sys.exit(app(standalone_mode=False))
    except _CallError as error:
        message, context = error.format_message(), getattr(error, "ctx", None)
        if message.startswith("Usage:"):  # no command at all: the help
            typer.echo(message, err=True)
            sys.exit(ExitCode.USAGE)
        path = context.command_path if context else "evalstone"
        _fail(f"{message.rstrip('.')}; see {path} --help", ExitCode.USAGE)
    except RunAborted as error:
        _fail(f"{error}. Finished calls are in the ledger; rerun the same command to resume.", ExitCode.FAILURES)
    except EvalstoneError as error:
        _fail(str(error), ExitCode.USAGE)
    except WriteError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        _fail(f"cannot write to standard output: {error}", ExitCode.FAILURES)
    except OSError as error:
        _fail(str(error), ExitCode.FAILURES)


def _fail(message: str, code: ExitCode) -> None:
    from evalstone.cli.output import to_stderr

    to_stderr(f"evalstone: {message}")
    sys.exit(code)
