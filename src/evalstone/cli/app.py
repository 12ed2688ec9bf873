"""The command line: its commands and its error handling.

Only the command that is called is imported, and commands import what they need inside their functions, so that help
stays fast.
"""

from __future__ import annotations

import os
import sys

import click
from click.exceptions import NoArgsIsHelpError

from evalstone._core.front_ends import COMMAND_LINE
from evalstone._core.redaction import masked
from evalstone.cli import completion
from evalstone.cli.command import Commands, usage_error
from evalstone.cli.output import guard, replace_unprintable, to_stderr
from evalstone.errors import ConfigError, EvalstoneError
from evalstone.results.endings import EXIT_CODES, ExitCode

_EVERY = (ExitCode.OK, ExitCode.USAGE, ExitCode.INCOMPLETE, ExitCode.INTERRUPTED)
_JUDGING = (ExitCode.SCORES_FAILED,)
_CHECKING = (ExitCode.CHECK_FAILED,)
_MORE = {
    "run": (*_CHECKING, ExitCode.INCONCLUSIVE, *_JUDGING),
    "ci": (*_CHECKING, ExitCode.INCONCLUSIVE, *_JUDGING),
    "gate": (*_CHECKING, ExitCode.INCONCLUSIVE, *_JUDGING),
    "merge": _JUDGING,
    "report": _JUDGING,
    "calibrate": _JUDGING,
    "align": (ExitCode.INCONCLUSIVE, *_JUDGING),
    "audit": _JUDGING,
    "check": _CHECKING,
    "rubrics": _JUDGING,
    "drift": _CHECKING,
    "coverage": _CHECKING,
    "verify": _CHECKING,
}
"""By command, the exit codes that not all commands have."""


def exit_codes(command: str) -> tuple[ExitCode, ...]:
    """The exit codes of a command. All have 141, too, if nobody reads their output."""
    return tuple(sorted((*_EVERY, *_MORE.get(command, ()))))


def _epilog(command: str) -> str:
    return f"Exit codes: {'; '.join(f'{code} {EXIT_CODES[code][0]}' for code in exit_codes(command))}."


_EPILOGS = {name: _epilog(name) for name in ("", *_MORE)}
"""By command, what follows its help; "" for all others."""

# Each command with its module and the first line of its help. Its function has the command's name.
LIVE_COMMANDS = {
    "coverage": ("live", "Show how much of the traffic was scored, skipped or dropped."),
    "drift": ("live", "Check whether live scores have become worse than a baseline."),
}
LEDGER_COMMANDS = {
    "info": ("ledger", "Show size, row counts, cost by judge and target, and the latest runs."),
    "scores": ("ledger", "List scores, newest first."),
    "export": ("ledger", "Export rows to a file, as a backup or for another ledger, or labels as a label file."),
    "prune": ("ledger", "Delete runs or answers."),
    "verify": ("ledger", "Check the ledger for damage."),
    "recover": ("ledger", "Copy the readable rows of a damaged ledger into another one."),
    "import": ("ledger", "Import exported rows."),
}
SKILL_COMMANDS = {
    "install": ("skill", "Write the skill for coding agents into a folder of skills."),
    "show": ("skill", "Print the skill, or one of the files that it refers to."),
}
COMMANDS = {
    "run": ("run", "Score a dataset."),
    "check": ("check", "Check a dataset before a run."),
    "init": ("init", "Write the files of a first evaluation, with its workflow for CI."),
    "ci": ("ci", "Score, compare with a baseline, and check, in CI."),
    "score": ("run", "Score one sample."),
    "demo": ("run", "Score 60 bundled RAG answers with the lexical judge."),
    "scorers": ("catalog", "List the scorers, or describe one."),
    "judges": ("catalog", "List the judges, or describe one."),
    "view": ("view", "Look at runs in a browser."),
    "import": ("importing", "Import the results of another tool, with its scores."),
    "merge": ("blocks", "Merge the parts of a run that was scored with --shard."),
    "report": ("results", "Show a saved run or one of its samples, or export it."),
    "compare": ("results", "Compare runs over the same samples."),
    "drift": ("results", "Check whether a judge has drifted."),
    "gate": ("results", "Check a saved run against thresholds."),
    "power": ("results", "Estimate how many samples you need."),
    "runs": ("results", "List saved runs with their mean scores."),
    "annotate": ("annotate", "Label samples of a run in the terminal."),
    "calibrate": ("judge", "Compare a judge with human labels, or several judges with each other."),
    "align": ("judge", "Choose from labels how a judge is asked."),
    "audit": ("judge", "Test a judge's robustness to irrelevant changes."),
    "rubrics": ("rubrics", "Write a rubric for each sample, to review and use."),
    "collect": ("traces", "Receive traces over OTLP/HTTP, write them to a file, and score them."),
    "traces": ("traces", "List the samples in a file of traces, or create a dataset from them."),
    "live": ("", "Check the coverage and drift of live scoring."),
    "ledger": ("", "Inspect and maintain the ledger."),
    "mcp": ("mcp", "Serve runs and scores to agents, over the Model Context Protocol."),
    "skill": ("", "Teach a coding agent to use evalstone."),
}
GROUPS = {"live": LIVE_COMMANDS, "ledger": LEDGER_COMMANDS, "skill": SKILL_COMMANDS}


def _show_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from importlib.metadata import version

        click.echo(version("evalstone"))
        context.exit()


def _show_completion(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None and not context.resilient_parsing:
        click.echo(completion.script(app, value.strip()), nl=False)
        context.exit()


def _install_completion(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None and not context.resilient_parsing:
        click.echo(f"Written to {completion.install(app, value.strip())}. It takes effect in a new shell.")
        context.exit()


app = Commands(
    "evalstone",
    "Evaluate the outputs of LLMs, RAG pipelines and agents.",
    COMMANDS,
    _EPILOGS,
    groups=[Commands(name, COMMANDS[name][1], table, _EPILOGS) for name, table in GROUPS.items()],
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Show the version and exit.",
        ),
        *(
            click.Option(
                [flag],
                metavar="[SHELL]",
                is_flag=False,
                flag_value=" ",
                is_eager=True,
                expose_value=False,
                callback=callback,
                help=help,
                shell_complete=completion.items(completion.words(*completion.SHELLS)),
            )
            for flag, callback, help in (
                ("--install-completion", _install_completion, "Install completion for your shell."),
                ("--show-completion", _show_completion, "Show the completion script, to install it yourself."),
            )
        ),
    ],
)


def main() -> None:
    """Run the command line. An expected error is one line on stderr and an exit code."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - closed by the caller
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison] - closed by the caller
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    replace_unprintable()
    guard()
    try:
        # On Windows, click would put the values of environment variables, which may be keys, into all arguments, and
        # the names of files into texts.
        sys.exit(app.main(standalone_mode=False, complete_var=completion.VARIABLE, windows_expand_args=False))
    except click.Abort:  # Ctrl-C
        sys.exit(ExitCode.INTERRUPTED)
    except NoArgsIsHelpError as error:
        click.echo(error.message, err=True)
        sys.exit(ExitCode.USAGE)
    except click.UsageError as error:
        _fail(usage_error(error), ExitCode.USAGE)
    except ConfigError as error:
        _fail(error.text(COMMAND_LINE), ExitCode.USAGE)
    except EvalstoneError as error:
        _fail(error.text(COMMAND_LINE), ExitCode.INCOMPLETE)
    except OSError as error:
        _fail(str(error), ExitCode.INCOMPLETE)


def _fail(message: str, code: ExitCode) -> None:
    to_stderr(f"evalstone: {masked(message)}")
    sys.exit(code)
