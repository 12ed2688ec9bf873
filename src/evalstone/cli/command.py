"""Commands and groups of click, made from declared options."""

from __future__ import annotations

import dataclasses
import inspect
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_type_hints

import click
from click.core import ParameterSource

from evalstone._core.display import joined
from evalstone._core.front_ends import COMMAND_LINE
from evalstone.cli import completion
from evalstone.cli.options import MEANT, Declared, Panel, declared
from evalstone.cli.output import check_inputs_stay
from evalstone.errors import ConfigError, WriteError, near, unknown
from evalstone.results.endings import ExitCode

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_MOST_NAMED = 5
_MEANT_COMMANDS = {
    **dict.fromkeys(("eval", "evaluate", "test"), ("run",)),
    **dict.fromkeys(("dashboard", "serve", "studio", "ui"), ("view",)),
    **dict.fromkeys(("diff",), ("compare",)),
    **dict.fromkeys(("inspect", "lint", "validate"), ("check",)),
    **dict.fromkeys(("metrics",), ("scorers",)),
    **dict.fromkeys(("models",), ("judges",)),
    **dict.fromkeys(("new",), ("init",)),
    **dict.fromkeys(("list", "ls"), ("runs",)),
}
"""The commands that people mean by names of other tools."""
SETTINGS: Any = {"help_option_names": ["-h", "--help"]}


class Row(NamedTuple):
    """An option in the help."""

    usage: str
    help: str
    declared: Declared | None
    """None for --help."""


class Command(click.Command):
    """A command from a function that returns its exit code.

    Its options are declared by the function's parameters, and by the fields of dataclasses that it takes. If it takes
    one dataclass and nothing else, the `load` of that class makes it from what is given on the command line.
    """

    def __init__(self, name: str, function: Callable[..., int], epilog: str) -> None:
        self.function, self.source = function, _source(function)
        self.declared = {one.parameter: one for one in declared(self.source)}
        hints = get_type_hints(self.source)
        self.groups = {one.group: hints[one.group] for one in self.declared.values() if one.group}
        params = [_parameter(one) for one in self.declared.values()]
        mixed = any(one.option.takes_options for one in self.declared.values())
        settings = SETTINGS | {"ignore_unknown_options": mixed}
        super().__init__(name, params=params, help=inspect.getdoc(function), epilog=epilog, context_settings=settings)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line. Errors know the command, so that they can name its help."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def invoke(self, ctx: click.Context) -> int:
        """Call the function with what is given; the rest has its defaults."""
        given: dict[str, Any] = {name: {} for name in self.groups}
        for name, one in self.declared.items():
            if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
                continue
            value = one.read(ctx.params[name])
            if one.option.entry:
                given.setdefault(one.name, {})[one.option.entry] = value
            elif one.group:
                given[one.group][one.name] = value
            else:
                given[one.name] = value
        given |= {name: kind(**given[name]) for name, kind in self.groups.items()}
        with _phases(quiet=ctx.params.get("quiet", False)):
            if self.source is self.function:
                self._check_inputs_stay(ctx)
                return self.function(**given)
            return self.function(self.source.load(**given))

    def _check_inputs_stay(self, ctx: click.Context) -> None:
        """Raise ConfigError if the command would overwrite what it reads."""
        texts = {name: ctx.params[name] for name in self.declared}
        outputs = {one.flag: texts[name] for name, one in self.declared.items() if one.is_output and texts[name]}
        inputs = (texts[name] or one.option.default for name, one in self.declared.items() if one.is_input)
        check_inputs_stay(outputs, inputs)

    def panels(self, ctx: click.Context) -> dict[str, list[Row]]:
        """The arguments and options by the sections of the help."""
        found: dict[str, list[Row]] = {panel: [] for panel in get_args(Panel)}
        for parameter in self.get_params(ctx):
            one = self.declared.get(parameter.name or "")
            if one is not None and not one.option.flags:
                found["Arguments"].append(Row(one.metavar, one.help(), one))
            elif record := parameter.get_help_record(ctx):
                found[one.option.panel if one else "Options"].append(Row(*record, one))
        return {panel: rows for panel, rows in found.items() if rows}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections of arguments and options."""
        for panel, rows in self.panels(ctx).items():
            with formatter.section(panel):
                formatter.write_dl([(row.usage, row.help) for row in rows])


def _phases(*, quiet: bool) -> AbstractContextManager[None]:
    """A block within which phases that take long are shown, if standard error is a terminal."""
    if quiet or not sys.stderr.isatty():
        return nullcontext()
    from evalstone.report.progress import showing_phases

    return showing_phases()


def _source(function: Callable[..., int]) -> Any:
    hints = get_type_hints(function)
    hints.pop("return", None)
    kinds = [*hints.values()]
    return kinds[0] if len(kinds) == 1 and dataclasses.is_dataclass(kinds[0]) else function


def _parameter(one: Declared) -> click.Parameter:
    complete = completion.items(completion.words(*one.choices) if one.choices else one.option.complete)
    if not one.option.flags:
        metavar = f"{one.metavar}{'...' if one.repeatable else ''}"
        return click.Argument(
            [one.parameter],
            metavar=metavar if one.required else f"[{metavar}]",
            nargs=-1 if one.repeatable else 1,
            required=one.required,
            callback=_matched if one.repeatable else None,
            shell_complete=complete,
        )
    if one.type is bool:
        return click.Option([one.parameter, *one.option.flags], is_flag=True, help=one.help())
    return click.Option(
        [one.parameter, *one.option.flags],
        metavar=one.metavar,
        help=one.help(),
        multiple=one.repeatable,
        required=one.required,
        shell_complete=complete,
    )


def _matched(context: click.Context, parameter: click.Parameter, paths: Sequence[str]) -> Sequence[str]:
    """Paths. On Windows, where shells don't do that, with what matches the patterns among them."""
    if os.name != "nt":
        return paths
    from glob import glob

    from evalstone._core.storage import is_pattern

    found: list[str] = []
    for path in paths:
        matches = sorted(glob(path.replace("[", "[[]"))) if is_pattern(path) else []  # noqa: PTH207 - it may be absolute
        found += matches or [path]
    return found


@contextmanager
def _writing() -> Generator[None]:
    """Flush standard output at the end of the block. Raises WriteError, before click takes the error for its own. If
    the reader is gone, as with `| head`, the program ends quietly."""
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


class Commands(click.Group):
    """A group of commands, each imported when it is called.

    table: by name, the module of a command below `evalstone.cli`, and the first line of its help. Its function has the
    command's name. A group has no module. epilogs: by name, what follows the help of a command; "" for all others.
    """

    def __init__(
        self,
        name: str,
        help: str,
        table: Mapping[str, tuple[str, str]],
        epilogs: Mapping[str, str],
        *,
        groups: Sequence[Commands] = (),
        params: list[click.Parameter] | None = None,
    ) -> None:
        super().__init__(
            name, commands=groups, help=help, params=params, no_args_is_help=True, context_settings=SETTINGS
        )
        self.table, self.epilogs = table, epilogs

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order of their help."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command. Raises ConfigError for an unknown name, except during shell completion."""
        if cmd_name not in self.table:
            if ctx.resilient_parsing or cmd_name.startswith("-"):
                return None
            meant = [name for name in _MEANT_COMMANDS.get(cmd_name, ()) if name in self.table]
            raise ConfigError(unknown("command", cmd_name, self.table, meant=meant))
        if cmd_name not in self.commands:
            module = import_module(f"evalstone.cli.{self.table[cmd_name][0]}")
            function = getattr(module, cmd_name.replace("import", "import_"))
            self.commands[cmd_name] = Command(cmd_name, function, self.epilogs.get(cmd_name, self.epilogs[""]))
        return self.commands[cmd_name]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the section of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help) for name, (_, help) in self.table.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """The commands that begin with a text, without importing them; the options after a dash."""
        from click.shell_completion import CompletionItem

        names = [CompletionItem(name, help=help) for name, (_, help) in self.table.items()]
        found = [item for item in names if item.value.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def make_context(self, *arguments: Any, **settings: Any) -> click.Context:
        """Parse the command line, or print help."""
        with _writing():
            return super().make_context(*arguments, **settings)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with _writing():
            return super().invoke(ctx)


def _with_option(flag: str, context: click.Context) -> list[str]:
    """The commands that have an option; none if nearly all have it."""
    group = context.find_root().command
    if not isinstance(group, Commands):
        return []
    commands = [(name, group.get_command(context, name)) for name in group.list_commands(context)]
    found = [
        f"evalstone {name}"
        for name, command in commands
        if command is not None and any(flag in (*one.opts, *one.secondary_opts) for one in command.params)
    ]
    return found if len(found) <= _MOST_NAMED else []


def usage_error(error: click.UsageError) -> str:
    """A wrong call in one line, with what may be meant, or where to look."""
    message = error.format_message()
    context = error.ctx
    help = f"; see {context.command_path if context else 'evalstone'} --help"
    if isinstance(error, click.NoSuchOption) and context is not None:
        given = error.option_name.lstrip("-")
        message = f"unknown option {error.option_name}"
        options: list[str] = []
        for known in context.command.params:
            if isinstance(known, click.Option):
                options += [name.lstrip("-") for name in (*known.opts, *known.secondary_opts)]
            elif given in (known.name, (known.metavar or "").strip("[].").lower()):
                return f"{message}; give {(known.metavar or given).strip('[].')} without an option"
        settings = (COMMAND_LINE.names.get(name, name) for name in MEANT.get(given.replace("-", "_"), ()))
        meant = [name for name in settings if name in options]
        if guesses := meant or near(given, options):
            help = f"; did you mean {' or '.join(f'--{name}' for name in guesses)}?"
        elif others := _with_option(error.option_name, context):
            help = f"; it is an option of {joined(others)}"
    return message[:1].lower() + message[1:].rstrip(".") + help
