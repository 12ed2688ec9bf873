"""What a command prints names the settings that it takes: its options, and the keys of its file."""

from __future__ import annotations

import re

import click
import pytest

from evalstone._core.front_ends import MARK, FrontEnd
from evalstone.cli.app import app
from evalstone.cli.ci import ci
from evalstone.cli.command import Command
from evalstone.cli.config_file import RunConfig, keys
from evalstone.cli.options import declared, front_end
from evalstone.report.notes import clause_of
from evalstone.testing.marks import Mark
from evalstone.types import Note
from tests.report.test_notes import SAID

OTHER_COMMAND = re.compile(r"\(evalstone [a-z ]+--[a-z-]+\)")
BROKEN = re.compile(r"\(\)|  | [;,.)]|[;:,]$|[;,:] *[;,:]|neither  ?nor|\( ")
"""What a clause has where the name of a setting is missing."""


def commands(group: click.Group = app, names: str = "") -> list[tuple[str, Command]]:
    found: list[tuple[str, Command]] = []
    for name in group.list_commands(click.Context(group)):
        one = group.get_command(click.Context(group), name)
        whole = f"{names}{name}"
        found += commands(one, f"{whole} ") if isinstance(one, click.Group) else []
        found += [(whole, one)] if isinstance(one, Command) else []
    return found


COMMANDS = commands()
NAMING = [one for one, _ in SAID if clause_of(one, FrontEnd(style="options")) != clause_of(one, FrontEnd())]
"""The notes that name settings."""


def said(note: Note, front: FrontEnd) -> str:
    return OTHER_COMMAND.sub("", clause_of(note, front))


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_notes_name_the_options_of_the_command_that_prints_them(name: str, command: Command) -> None:
    flags = {flag for one in command.declared.values() if one.option.flags for flag in one.flags}
    for note in NAMING:
        text = said(note, front_end(command.source))
        assert set(re.findall(r"--[a-z-]+", text)) <= flags, f"{name}: {text}"
        assert not BROKEN.search(text), f"{name}: {text}"


def test_notes_of_ci_name_its_options_and_the_keys_of_its_file() -> None:
    options = {one.flag for one in declared(ci)}
    named: set[str] = set()
    for note in NAMING:
        text = said(note, front_end(ci, frozenset(keys())))
        assert set(re.findall(r"--[a-z-]+", text)) <= options, text
        assert not BROKEN.search(text), text
        named.update(re.findall(r"\b([a-z]+(?:_[a-z]+)*) = ", text))
    assert {"missing", "max_change"} <= named <= set(keys())


def test_notes_of_a_test_name_the_arguments_of_its_mark() -> None:
    for note in NAMING:
        text = said(note, MARK)
        assert set(re.findall(r"\b([a-z]+(?:_[a-z]+)*)=", text)) <= Mark.__dataclass_fields__.keys(), text
        assert not BROKEN.search(text), text


def test_a_command_writes_a_setting_as_its_option_or_else_as_a_key_of_its_file() -> None:
    of_ci = front_end(ci, frozenset(keys()))
    assert of_ci.term("inconclusive", "pass") == "--inconclusive pass"
    assert of_ci.term("look", 2) == "look = 2"
    assert of_ci.term("labels", ...) == of_ci.term("unpaired", True) == ""
    assert front_end(RunConfig).term("look", 2) == "--look 2"
    assert front_end(RunConfig).term("cache", False) == "--no-cache"
