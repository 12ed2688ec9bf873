"""One rule for the names of runs, datasets, judges and streams; those of scorers are words that a spec can have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from evalstone import ConfigError, Dataset, Judge, JudgeAnswer, Live, Sample, Score, Scorer, ScriptedJudge, evaluate
from evalstone.datasets import load
from evalstone.questions.base import Question
from tests.runs import Given

UNNAMED = ("", " ", "\u2800", "a\nb", "a\tb", "a\u2028b", "a\x00b", "a\x1b[31m", "a\u202eb", "a\ud800b", 5, None)
NAMED = ("a", "Größe 2", "v1.2 (main)", "日本", "👩‍💻")
SAMPLES = [Sample(id="1", output="0.5")]


def scorer_named(name: Any) -> str:
    return cast(Any, type("S", (Given,), {"name": name, "__module__": __name__}))().name


def run_named(name: Any) -> str:
    return evaluate(SAMPLES, Given(), ledger=None, name=name).name


def run_tagged(name: Any) -> str:
    return evaluate(SAMPLES, Given(), ledger=None, tags=[name]).tags[0]


def dataset_named(name: Any) -> str:
    return Dataset(SAMPLES, name).name


def scripted(name: Any) -> str:
    return ScriptedJudge([], name=name).identity


def judge_named(name: Any) -> str:
    class Own(Judge):
        @property
        def identity(self) -> str:
            return name

        async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
            raise NotImplementedError

    return Own().identity.partition("#")[0]


def stream_named(name: Any) -> str:
    return Live("contains(expected=x)", stream=name, process=False, ledger="l.db").stream


DOORS = (run_named, run_tagged, dataset_named, scripted, judge_named, stream_named)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", UNNAMED)
def test_what_is_no_line_of_visible_text_is_no_name(door: Callable[[Any], str], name: Any) -> None:
    if door is run_named and name == "":
        assert door(name) == ""  # no name
        return
    with pytest.raises(ConfigError, match="one line of visible text") as raised:
        door(name)
    assert raised.value.field in ("name", "tags", "identity", "stream")


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", NAMED)
def test_a_name_may_be_in_any_language(
    door: Callable[[Any], str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert door(name) == name


@pytest.mark.parametrize("name", [*UNNAMED, "my-scorer", "f(x)", "f@2", "2nd"])
def test_a_scorer_class_is_refused_where_it_is_defined_if_its_name_is_none(name: Any) -> None:
    with pytest.raises(ConfigError, match="S: name must be letters, digits and underscores") as raised:
        scorer_named(name)
    assert raised.value.field == "name"


def test_a_scorer_without_a_name_is_refused_where_it_is_made_whatever_its_own_post_init_does() -> None:
    class Nameless(Scorer):
        limit: int = 1

        def __post_init__(self) -> None:
            """Leaves out the checks of the base class."""

        def score(self, *, output: str) -> Score:
            return Score(len(output) <= self.limit and 1)

    with pytest.raises(ConfigError, match='the scorer Nameless has no name; add one to the class, such as name = "nam'):
        Nameless()


def test_a_file_whose_name_is_no_line_of_text_is_read_under_one(tmp_path: Path) -> None:
    file = tmp_path / "a\nb\udce9.jsonl"
    file.write_text('{"output": "0.5"}\n')
    assert load(file).name == r"a\nb\udce9.jsonl"
    assert evaluate(file, Given(), ledger=None).dataset_name == r"a\nb\udce9.jsonl"


def test_a_setting_with_line_breaks_is_hashed_in_an_identity() -> None:
    class Strict(Judge):
        instructions: str = ""

        async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
            raise NotImplementedError

    one, other = (Strict(instructions=text).identity for text in ("Be strict.\nVery.", "Be strict.\nNot."))
    assert "\n" not in one
    assert one != other
    assert Strict(instructions="Be strict.").identity.startswith("Strict(instructions=Be strict.)#")
