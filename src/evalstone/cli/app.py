"""The command line: its commands and its error handling.

Only the command that is called is imported, and commands import what they need inside their functions, so that help
stays fast.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from evalstone._core.front_ends import COMMAND_LINE
from evalstone._core.redaction import masked
from evalstone.cli.options import Value, Values, number, option
from evalstone.cli.output import guard, replace_unprintable, to_stderr
from evalstone.errors import ConfigError, EvalstoneError, WriteError, near, unknown
from evalstone.results.endings import ExitCode

# The base class of all usage errors; Typer doesn't export it.
_CallError: Any = typer.BadParameter.__mro__[2]

# Each command with its module and the first line of its help. Its function has the command's name.
COMMANDS = {
    "run": ("run", "Score a dataset."),
    "score": ("run", "Score one sample."),
    "demo": ("run", "Score 60 bundled RAG answers with the lexical judge."),
    "scorers": ("catalog", "List the scorers, or describe one."),
    "judges": ("catalog", "List the judges, or describe one."),
    "report": ("results", "Show a saved run, or export it."),
    "compare": ("results", "Compare runs over the same samples."),
    "drift": ("results", "Check whether a judge has drifted."),
    "gate": ("results", "Check a saved run against thresholds."),
    "power": ("results", "Estimate how many samples you need."),
    "runs": ("results", "List saved runs with their mean scores."),
    "annotate": ("annotate", "Label samples of a run in the terminal."),
    "calibrate": ("judge", "Compare a judge with human labels."),
    "audit": ("judge", "Test a judge's robustness to irrelevant changes."),
    "collect": ("traces", "Receive traces over OTLP/HTTP, write them to a file, and score them."),
    "traces": ("traces", "List the samples in a file of traces, or create a dataset from them."),
    "live": ("", "Check the coverage and drift of live scoring."),
    "ledger": ("", "Inspect and maintain the ledger."),
}
LIVE_COMMANDS = {
    "coverage": ("live", "Show how much of the traffic was scored, skipped or dropped."),
    "drift": ("live", "Check whether live scores have become worse than a baseline."),
}
LEDGER_COMMANDS = {
    "info": ("ledger", "Show size, row counts, cost by judge and target, and the latest runs."),
    "scores": ("ledger", "List scores, newest first."),
    "export": ("ledger", "Export rows to a file, as a backup or for another ledger."),
    "prune": ("ledger", "Delete runs or answers."),
    "verify": ("ledger", "Check the ledger for damage."),
    "recover": ("ledger", "Copy the readable rows of a damaged ledger into another one."),
    "import": ("ledger", "Import exported rows."),
}

_EXIT_CODES = "Exit codes: 0 success; 2 usage error; 3 could not be completed; 130 interrupted."
_JUDGE_EXIT_CODES = (
    "Exit codes: 0 success; 2 usage error; 3 some scores failed, no sample was scored, or incomplete; 130 interrupted."
)
EXIT_CODES = {
    "run": "Exit codes: 0 success; 1 a threshold was not met; 2 usage error; 3 some scores failed, no sample "
    "was scored, the judge gave no answers, or the run is incomplete or could not be completed; "
    "4 with --gate, inconclusive; 130 interrupted.",
    "score": "Exit codes: 0 success; 2 usage error; 3 the score failed or could not be computed; 130 interrupted.",
    "report": "Exit codes: 0 success; 2 usage error; 3 some scores failed, no sample was scored, the run is "
    "incomplete or could not be read; 130 interrupted.",
    "gate": "Exit codes: 0 every check passes; 1 a check fails; 2 usage error; 3 every check passes, but some scores "
    "failed or the run is incomplete; or the run was broken off, or the command could not be completed; "
    "4 inconclusive; 130 interrupted.",
    "coverage": "Exit codes: 0 everything is accounted for; 1 it is not; 2 usage error; 3 could not be completed; "
    "130 interrupted.",
    "drift": "Exit codes: 0 no drift; 1 drift; 2 usage error; 3 could not be completed; 130 interrupted.",
    "verify": "Exit codes: 0 intact; 1 damaged; 2 usage error; 3 could not be completed; 130 interrupted.",
    "calibrate": _JUDGE_EXIT_CODES,
    "audit": _JUDGE_EXIT_CODES,
}

TOPICS = {
    "Target": "target trials target_version target_timeout target_concurrency",
    "Judge": "judge base_url budget no_cache per_judge",
    "Running": "concurrency batch wait dry_run",
    "Thresholds": "fail_under fail_over gate minimum maximum max_regression max_difference pass_rate",
    "Statistics": "alpha confidence correction inconclusive margin max_change power objective calibrator threshold "
    "label_threshold seed",
    "Output": "out html markdown csv junit svg as_json top quiet verbose otel",
}
_TOPIC = {option: topic for topic, options in TOPICS.items() for option in options.split()}
_TYPE = re.compile(r" <[a-z \[\]]+>")
SETTINGS: Any = {"help_option_names": ["-h", "--help"]}


@contextmanager
def _writing() -> Generator[None]:
    """Flush standard output at the end of the block. Raises WriteError, before Typer turns it into its own exit code.
    If the reader is gone, as with `| head`, the program ends quietly."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, BrokenPipeError):
            sys.exit(ExitCode.BROKEN_PIPE)
        raise WriteError(f"cannot write to standard output: {error.strerror or error}") from error


class Command(TyperCommand):
    """A command whose help lists its options by topic."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, including --help."""
        return _quick(self, super().get_params(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections of arguments and options."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                is_argument = parameter.param_type_name == "argument"
                title = "Arguments" if is_argument else _TOPIC.get(parameter.name, "Options")
                sections.setdefault(title, []).append((_TYPE.sub("", record[0]), record[1]))
        for title in ("Arguments", "Options", *TOPICS):
            if title in sections:
                with formatter.section(title):
                    formatter.write_dl(sections[title])


class Commands(TyperGroup):
    """A group of commands, each created when it is called."""

    table: Mapping[str, tuple[str, str]] = COMMANDS

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = dict.fromkeys(self.table)  # pyright: ignore[reportAttributeAccessIssue] - created on demand

    def get_params(self, ctx: Any) -> list[Any]:
        """The options before the command, including --help."""
        return _quick(self, super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands, in the order of their help."""
        return list(self.table)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command. Raises ConfigError for an unknown name, except during shell completion."""
        if cmd_name not in self.table:
            if ctx.resilient_parsing or cmd_name.startswith("-"):
                return None
            raise ConfigError(unknown("command", cmd_name, self.table))
        if self.commands[cmd_name] is None:
            self.commands[cmd_name] = _command(cmd_name, self.table[cmd_name][0])
        return self.commands[cmd_name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the section of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help) for name, (_, help) in self.table.items()])

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        """Parse the command line, or print help."""
        with _writing():
            return super().make_context(*arguments, **settings)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with _writing():
            return super().invoke(ctx)


class LiveCommands(Commands):
    """The commands of `evalstone live`."""

    table = LIVE_COMMANDS


class LedgerCommands(Commands):
    """The commands of `evalstone ledger`."""

    table = LEDGER_COMMANDS


GROUPS = {"live": LiveCommands, "ledger": LedgerCommands}


def _command(name: str, module: str) -> Any:
    """The command from the function of that name, or the group of that name."""
    settings: Any = {"rich_markup_mode": None, "context_settings": SETTINGS}
    if not module:
        return GROUPS[name](name=name, help=COMMANDS[name][1], no_args_is_help=True, **settings)
    function: Callable[..., int] = getattr(import_module(f"evalstone.cli.{module}"), name.replace("import", "import_"))
    single = typer.Typer(add_completion=False, **settings)
    single.command(name, cls=Command, epilog=EXIT_CODES.get(name, _EXIT_CODES))(function)
    return typer.main.get_command(single)


def _quick(command: Any, parameters: list[Any]) -> list[Any]:
    """Parameters that convert values only if necessary: Typer converts with pydantic, which is slow to import."""
    types: dict[str, Any] = get_type_hints(command.callback, include_extras=True) if command.callback else {}
    for parameter in parameters:
        if "process_value" not in vars(parameter):
            convert = parameter.process_value
            parameter.process_value = functools.partial(_value, parameter, types.get(parameter.name), convert)
    return parameters


def _value(parameter: Any, hint: Any, convert: Callable[[Any, Any], Any], ctx: Any, value: Any) -> Any:
    """A parameter's value from the command line, or its default."""
    if parameter.required and not value:
        return convert(ctx, value)
    if value is None:
        return () if parameter.multiple or parameter.nargs == -1 else None
    kind, *declared = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if isinstance(value, str) and kind in (int, int | None, float, float | None):
        limits = declared[0].min, declared[0].max
        return number(value, max(parameter.opts, key=len), *limits, whole=kind in (int, int | None))
    is_text = kind in (Value, Values, list[str]) and type(value) in (str, list, tuple)
    return value if is_text or type(value) is kind else convert(ctx, value)


app = typer.Typer(
    name="evalstone",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=SETTINGS,
)


@app.callback(invoke_without_command=True)
def evalstone(
    version: Annotated[bool, option("--version", "Show the version and exit.")] = False,
) -> None:
    """Evaluate the outputs of LLMs, RAG pipelines and agents."""
    if version:
        from importlib.metadata import version as installed

        typer.echo(installed("evalstone"))
        raise typer.Exit


def main() -> None:
    """Run the command line. An expected error is one line on stderr and an exit code."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - closed by the caller
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison] - closed by the caller
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    replace_unprintable()
    guard()
    try:
        sys.exit(app(standalone_mode=False))
    except _CallError as error:
        message = error.format_message()
        if message.startswith("Usage:"):  # no command at all: print the help
            typer.echo(message, err=True)
            sys.exit(ExitCode.USAGE)
        context: Any = getattr(error, "ctx", None)
        message = message[:1].lower() + message[1:]
        help = f"; see {context.command_path if context else 'evalstone'} --help"
        if hasattr(error, "possibilities"):  # an unknown option
            given, parameters = error.option_name.lstrip("-"), context.command.params
            options = (known for known in parameters if known.param_type_name == "option")
            names = (name for known in options for name in (*known.opts, *known.secondary_opts))
            message = f"unknown option {error.option_name}"
            if argument := next((known for known in parameters if given in known.opts), None):
                help = f"; give {(argument.name or given).upper()} without an option"
            elif guesses := near(given, [name.lstrip("-") for name in names]):
                help = f"; did you mean {' or '.join(f'--{name}' for name in guesses)}?"
        _fail(message.rstrip(".") + help, ExitCode.USAGE)
    except ConfigError as error:
        _fail(error.text(COMMAND_LINE), ExitCode.USAGE)
    except EvalstoneError as error:
        _fail(error.text(COMMAND_LINE), ExitCode.FAILURES)
    except OSError as error:
        _fail(str(error), ExitCode.FAILURES)


def _fail(message: str, code: ExitCode) -> None:
    to_stderr(f"evalstone: {masked(message)}")
    sys.exit(code)
