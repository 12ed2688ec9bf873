"""What the shell completes: names of scorers, judges and runs, the words of an option, files and folders."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from evalstone._core.installed import library_command
from evalstone.errors import ConfigError, EvalstoneError, unknown

if TYPE_CHECKING:
    from click import Command, Context, Parameter
    from click.shell_completion import CompletionItem

FILE, FOLDER = "file", "dir"
"""Paths that the shell completes by itself."""
_SCRIPTS = {
    "bash": ".bash_completions/evalstone.sh",
    "fish": ".config/fish/completions/evalstone.fish",
    "powershell": ".evalstone-completion.ps1",
    "zsh": ".zsh_completions/evalstone.zsh",
}
"""Where the script of a shell is, below the home folder."""
SHELLS = tuple(_SCRIPTS)
VARIABLE = "_EVALSTONE_COMPLETE"
"""The environment variable in which the shell's script names what it asks for."""

Complete: TypeAlias = Literal["file", "dir"] | Callable[[Mapping[str, Any], str], Iterable[str]] | None
"""What completes a value: paths, or a function that returns values, given those of the other options as texts, and the
beginning of its own. It may return values that begin otherwise."""


def items(complete: Complete) -> Callable[[Context, Parameter, str], list[CompletionItem[str]]]:
    """A function that completes the beginning of a value, as click calls it. Errors complete nothing."""

    def completed(context: Context, parameter: Parameter, beginning: str) -> list[CompletionItem[str]]:
        from click.shell_completion import CompletionItem

        if complete is None:
            return []
        if isinstance(complete, str):
            return [CompletionItem(beginning, type=complete)]
        try:
            values = [value for value in complete(context.params, beginning) if value.startswith(beginning)]
        except (EvalstoneError, OSError):
            values = []
        # Wherever a run is named, a folder can be. The script for zsh loses its place at an empty value.
        paths = [CompletionItem(beginning or "./", type=FOLDER)] if complete is runs else []
        return paths + [CompletionItem(value) for value in values]

    return completed


def words(*values: str) -> Complete:
    """Completes one of a few words."""
    return lambda given, beginning: values


def scorers(given: Mapping[str, Any], beginning: str) -> Iterable[str]:
    """The names of scorers, or of the tool that is named."""
    from evalstone.scorers.registry import PLUGINS, SCORERS

    if tool := given.get("system"):
        from evalstone.scorers.other_systems import bare, system_named, table

        system = system_named(tool)
        return [] if system is None else list(dict.fromkeys(bare(row.theirs) for row in table(system)))

    return [*SCORERS, *PLUGINS.names()]


def bounded_scorers(given: Mapping[str, Any], beginning: str) -> Iterable[str]:
    """The names of scorers, for a number to follow."""
    return [f"{name}=" for name in scorers(given, beginning)]


def judges(given: Mapping[str, Any], beginning: str) -> Iterable[str]:
    """The judges without a model, verifier models, those of plug-ins, and the providers of models."""
    from evalstone.judges.parse import OFFLINE, ONNX, PLUGINS
    from evalstone.models.catalog import PROVIDERS

    deciding = [f"{name}/" for name, info in PROVIDERS.items() if info.decides]
    others = [*OFFLINE, ONNX, *PLUGINS.names(), *deciding]
    return [*(name for name in others if name.startswith(beginning)), *models(given, beginning)]


def models(given: Mapping[str, Any], beginning: str) -> Iterable[str]:
    """The providers of models that write text, or the models of the one provider that is meant."""
    from evalstone.models.catalog import PLUGINS, PROVIDERS
    from evalstone.models.prices import listed_models

    writing = [name for name, info in PROVIDERS.items() if not info.decides]
    providers = [f"{name}/" for name in (*writing, *PLUGINS.names())]
    meant = [name for name in providers if name.startswith(beginning) or beginning.startswith(name)]
    if len(meant) == 1 and (known := listed_models(meant[0][:-1])):
        return [f"{meant[0]}{model}" for model in known]
    return meant


def runs(given: Mapping[str, Any], beginning: str) -> Iterable[str]:
    """The latest runs in the ledger, by their names or IDs. A server is not asked: it may be slow."""
    from evalstone.ledger.base import DEFAULT_LEDGER, file_of, is_there, resolved

    ledger = resolved(given.get("ledger") or DEFAULT_LEDGER)
    if file_of(ledger) is None or not is_there(ledger):
        return ["last"]
    from evalstone.ledger.store import Ledger
    from evalstone.run.saved import evaluations

    with Ledger(ledger) as opened:
        rows = evaluations(opened.runs())
    names = (str(row.metadata.get("name") or "") for row in rows)
    return ["last", *dict.fromkeys(filter(None, names)), *(row.id for row in rows)]


def fields(given: Mapping[str, Any], beginning: str) -> Iterable[str]:
    """The fields of samples, for a column to follow."""
    from evalstone.datasets.columns import FIELD_NAMES

    return [f"{name}=" for name in FIELD_NAMES]


def tools(given: Mapping[str, Any], beginning: str) -> Iterable[str]:
    """The tools whose names are known."""
    from evalstone.scorers.other_systems import SYSTEMS

    return list(SYSTEMS)


def result_tools(given: Mapping[str, Any], beginning: str) -> Iterable[str]:
    """The tools whose results can be imported."""
    from evalstone.compat.imports.reading import readers

    return list(readers())


def objectives(given: Mapping[str, Any], beginning: str) -> Iterable[str]:
    """The measures that a threshold can maximize."""
    from evalstone.results.calibration import MEASURES

    return list(MEASURES)


def perturbations(given: Mapping[str, Any], beginning: str) -> Iterable[str]:
    """The perturbations, and their families."""
    from evalstone.judge_quality.perturbations import PERTURBATIONS

    return [*PERTURBATIONS, *dict.fromkeys(one.family for one in PERTURBATIONS.values())]


def _shell(name: str) -> str:
    """A shell that can complete; the user's own without a name. Raises ConfigError for any other."""
    from click.shell_completion import get_completion_class

    own = Path(os.environ.get("SHELL", "")).stem or ("powershell" if os.name == "nt" else "")
    if not (shell := name or own):
        raise ConfigError("the shell is not known: SHELL is not set; name the shell after the option")
    if shell not in SHELLS:
        raise ConfigError(unknown("shell", shell, SHELLS))
    if get_completion_class(shell) is None:  # PowerShell, before click 8.5
        update = library_command("click", newest=True)
        raise ConfigError(f"this version of click can't complete in {shell}; update it: {update}")
    return shell


def script(app: Command, name: str) -> str:
    """The script that lets a shell complete the command."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(_shell(name))
    return "" if kind is None else kind(app, {}, "evalstone", VARIABLE).source()


def install(app: Command, name: str) -> Path:
    """Write the script, and a line that reads it into the file with which the shell starts; returns the script's file.

    Raises ConfigError for an unknown shell, and for a file that can't be written.
    """
    shell, home = _shell(name), Path.home()
    file = home / _SCRIPTS[shell]
    quoted = "'" + str(file).replace("'", "''") + "'" if shell == "powershell" else shlex.quote(str(file))
    # Not in a folder of `fpath`: when zsh calls click's script a second time, it only registers its function.
    compdef = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }"
    start, line = {
        "bash": (home / ".bashrc", f"source {quoted}"),
        "zsh": (home / ".zshrc", f"{compdef}; source {quoted}"),
        "fish": (None, ""),
    }.get(shell) or (_powershell_profile(shell), f". {quoted}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(script(app, shell), "utf-8", newline="\n")
        if start is not None:
            start.parent.mkdir(parents=True, exist_ok=True)
            before = start.read_text("utf-8", "replace") if start.exists() else ""
            if line not in before.splitlines():
                with start.open("a", encoding="utf-8", newline="\n") as appended:
                    appended.write(f"{line}\n" if not before or before.endswith("\n") else f"\n{line}\n")
    except OSError as error:
        raise ConfigError(f"cannot write {error.filename}: {error.strerror or error}") from None
    return file


def _powershell_profile(shell: str) -> Path:
    import subprocess  # slow to import

    for program in ("pwsh", shell):
        try:
            command = [program, "-NoProfile", "-Command", "echo $profile"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
            return Path(done.stdout.strip())
        except (OSError, subprocess.CalledProcessError):
            continue
    raise ConfigError("PowerShell was not found, so its profile is unknown; see --show-completion")
