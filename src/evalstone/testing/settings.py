"""The settings of a pytest session: options of the command line, or settings of the ini file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from evalstone._core.declarations import check_argument
from evalstone._core.files import file_text, home_expanded
from evalstone._core.sizes import Trials
from evalstone.errors import ConfigError, invalid
from evalstone.judges import Judge, ScriptedJudge, parse_judge
from evalstone.ledger.base import DEFAULT_LEDGER, NO_FILES, file_of
from evalstone.run.budget import Budget
from evalstone.testing.names import OPTIONS, SPENT

SCRIPTED = "scripted"
SQLITE = "sqlite:///"


@dataclass(frozen=True)
class Settings:
    """The settings of a session."""

    judge_name: str
    """A name, or scripted:FILE with the file's path."""
    judge_option: str
    """The name of the option, or of the ini setting, that names the judge."""
    ledger: str | Path
    """The ledger of answers and runs."""
    trials: int | None
    """How often a target answers each sample, unless a test says so."""
    budget: Budget | None
    """What the judge calls of this process may cost: under xdist, each worker's share."""
    report: Path | None
    """Where runs and scores are written."""

    def judge(self) -> Judge:
        """The judge. Raises ConfigError for an unknown one, or a script that can't be read."""
        try:
            return self._judge()
        except ConfigError as error:
            raise ConfigError(f"{self.judge_option}: ", error) from None

    def _judge(self) -> Judge:
        kind, _, file = self.judge_name.partition(":")
        if kind != SCRIPTED:
            return parse_judge(self.judge_name)
        if not file:
            raise ConfigError(
                "scripted needs a file with the replies: scripted:replies.json; or override the fixture "
                "evalstone_judge with a ScriptedJudge"
            )
        try:
            script: object = json.loads(file_text(Path(file)))
        except ConfigError:
            raise
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(f"{file} can't be read as a judge's replies: ", error) from None
        if not isinstance(script, list | dict):
            raise ConfigError(
                f"{file} must contain a list of replies, or an object from kinds of questions to replies, "
                f"not {type(script).__name__}"
            )
        return ScriptedJudge(cast("list[Any] | dict[str, Any]", script))


def check_options(config: pytest.Config) -> None:
    """Raise UsageError for an option of the command line that is wrong, before any test runs."""
    if problem := wrong_setting(config, judge=_given(config, "judge") is not None):
        raise pytest.UsageError(problem)


def wrong_setting(config: pytest.Config, *, judge: bool) -> str:
    """What is wrong with the options and the settings of the ini file; "" if nothing is.

    judge: whether the judge is used, too.
    """
    try:
        settings = settings_of(config)
        if judge:
            settings.judge()
    except ConfigError as error:
        return str(error)
    return ""


def session_judge(config: pytest.Config) -> Judge:
    """The judge of the session. If it is wrong, a test that requests the fixture only while it runs fails here, without
    a traceback of the plugin."""
    try:
        return settings_of(config).judge()
    except ConfigError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


_SETTINGS = pytest.StashKey[Settings]()


def settings_of(config: pytest.Config) -> Settings:
    """The settings of a session, read once. Raises ConfigError for one that is wrong."""
    if _SETTINGS not in config.stash:
        settings = config.stash[_SETTINGS] = _read(config)
        if (budget := settings.budget) is not None:
            config.stash[SPENT] = lambda: budget.spent
    return config.stash[_SETTINGS]


def _read(config: pytest.Config) -> Settings:
    judge = _text(config, "judge") or "lexical"
    if judge.startswith(f"{SCRIPTED}:"):
        judge = f"{SCRIPTED}:{_path(config, 'judge', judge.removeprefix(f'{SCRIPTED}:'))}"
    ledger, report = _text(config, "ledger"), _text(config, "report")
    trials, budget = _number(config, "trials"), _number(config, "budget")
    if trials is not None:
        check_argument(_name(config, "trials"), trials, Trials)
    if budget is not None and not budget >= 0:
        raise ConfigError(invalid(_name(config, "budget"), "0 or more US dollars", budget, f"{budget:g}"))
    ledger = _path(config, "ledger", ledger) if ledger else config.rootpath / DEFAULT_LEDGER.removeprefix(SQLITE)
    try:
        file_of(ledger)
    except ConfigError as error:
        raise ConfigError(f"{_name(config, 'ledger')}: ", error) from None
    folder = Path(_path(config, "report", report)) if report else None
    if folder is not None and folder.exists() and not folder.is_dir():
        raise ConfigError(f"{_name(config, 'report')} must be a folder, and {folder} is a file")
    # Workers can't see what the others have spent; shares hold in any case.
    workers = int(getattr(config, "workerinput", {}).get("workercount", 1))
    whose = "the session's" if workers == 1 else "this worker's share of"
    return Settings(
        judge_name=judge,
        judge_option=_name(config, "judge"),
        ledger=ledger,
        trials=None if trials is None else int(trials),
        budget=None if budget is None else Budget(budget / workers, name=f"{whose} {_name(config, 'budget')}"),
        report=folder,
    )


def _given(config: pytest.Config, name: str) -> object:
    return config.getoption(f"evalstone_{name}")


def _text(config: pytest.Config, name: str) -> str:
    value = _given(config, name)
    if isinstance(value, str) and not value.strip():
        raise ConfigError(f"{_name(config, name)} must not be empty; leave it out for the default")
    return str(config.getini(f"evalstone_{name}") if value is None else value).strip()


def _number(config: pytest.Config, name: str) -> float | None:
    text, kind = _text(config, name), OPTIONS[name][1]
    try:
        return kind(text) if text else None  # pyright: ignore[reportReturnType]
    except ValueError:
        noun = "a whole number" if kind is int else "a number"
        raise ConfigError(invalid(_name(config, name), noun, text)) from None


def _path(config: pytest.Config, name: str, text: str) -> str:
    """A path, from the folder where pytest was called, or in an ini file, from the file's; a URL as it is."""
    if "://" in text or text.lower() in NO_FILES:
        return text
    folder = config.rootpath if _given(config, name) is None else config.invocation_params.dir
    return str(folder / home_expanded(text))


def _name(config: pytest.Config, name: str) -> str:
    return f"evalstone_{name}" if _given(config, name) is None else f"--evalstone-{name}"
