"""What a perturbation must not change: the words of the text, the passages as a set, the sample's id."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstone._core.text import words
from evalstone.errors import ConfigError
from evalstone.judge_quality.perturbations import (
    CHECKED,
    LEAD,
    PERTURBATIONS,
    REPEAT,
    contract,
    expand,
    from_column,
    restructure,
    select_perturbations,
)
from evalstone.results.audit import Perturbation
from evalstone.scorers import Faithfulness, LLMClassifier
from evalstone.types import Message, Sample, ToolCall

PROSE = "The tower does not lean. It is 56 m high, and wasn't straight in 1178. Prof. Pisano built it."
SAMPLE = Sample(
    id="tower",
    input="Which one leans?\nA) the tower\nB) the house\nC) none",
    output=PROSE,
    context=["The tower leans.", "It is 56 m high.", "It was begun in 1173."],
)
POSITION, REFRAMED = (
    [one for one in PERTURBATIONS.values() if one.family in families]
    for families in (("position", "options"), ("length", "self-preference", "formatting", "injection"))
)
TEXTS = st.text(st.sampled_from("Ab c.d\n-*#1!?é。"), max_size=60)


def applied(name: str, sample: Sample = SAMPLE) -> Sample:
    changed = PERTURBATIONS[name].apply(sample)
    assert changed is not None, name
    return changed


def output(name: str, text: str) -> str | None:
    changed = PERTURBATIONS[name].apply(Sample(output=text))
    return None if changed is None else changed.output


def is_inside(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    """Whether the words of the one stand in the other in their order, with others between them or not."""
    rest = iter(whole)
    return all(word in rest for word in part)


@pytest.mark.parametrize("one", PERTURBATIONS.values(), ids=lambda one: one.name)
@settings(max_examples=30)
@given(output=TEXTS, passages=st.lists(TEXTS, max_size=4), asked=TEXTS)
def test_a_perturbation_keeps_the_sample_and_touches_one_field(
    one: Perturbation, output: str, passages: list[str], asked: str
):
    sample = Sample(id="x", input=asked, output=output, context=passages, reference="r", metadata={"a": 1})
    changed = one.apply(sample)
    if changed is None:
        return
    assert changed.id == "x"
    same = [getattr(sample, name) == getattr(changed, name) for name in ("input", "output", "context", "reference")]
    assert same.count(False) == (0 if one is REPEAT or one.rescore else 1)
    assert one.apply(sample) == changed


@pytest.mark.parametrize("one", [e for e in POSITION if e.family == "position"], ids=lambda one: one.name)
def test_passages_are_moved_and_none_is_changed(one: Perturbation):
    changed = applied(one.name)
    assert changed.context is not None
    assert SAMPLE.context is not None
    assert Counter(changed.context) == Counter(SAMPLE.context)
    assert changed.context != SAMPLE.context


def test_passages_go_where_the_perturbation_says():
    assert applied("passages_reversed").context == ("It was begun in 1173.", "It is 56 m high.", "The tower leans.")
    assert applied("first_passage_last").context == ("It is 56 m high.", "It was begun in 1173.", "The tower leans.")
    assert applied("passages_shuffled") == applied("passages_shuffled")


@pytest.mark.parametrize("one", [e for e in POSITION if not e.rescore], ids=lambda one: one.name)
def test_one_passage_or_equal_ones_cannot_be_reordered(one: Perturbation):
    assert one.apply(Sample(input="a\nb", output="x", context=["one"])) is None
    assert one.apply(Sample(input="a\nA) b", output="x", context=["one", "one"])) is None
    assert one.apply(Sample(output="x")) is None


def test_choices_keep_their_values_and_other_scorers_have_none():
    one = PERTURBATIONS["choices_reversed"]
    assert one.rescore is not None
    kind = LLMClassifier("Is {{output}} polite?", choices={"yes": 1.0, "rather": 0.5, "no": 0.0})
    other = one.rescore(kind)
    assert isinstance(other, LLMClassifier)
    assert list(other.choices.items()) == [("no", 0.0), ("rather", 0.5), ("yes", 1.0)]
    assert other.signature != kind.signature
    assert one.rescore(Faithfulness()) is None


def test_options_keep_their_letters():
    assert applied("options_reversed").input == "Which one leans?\nC) none\nB) the house\nA) the tower"
    bullets = Sample(input="Choose:\n- red\n- blue\nNow.")
    assert applied("options_reversed", bullets).input == "Choose:\n- blue\n- red\nNow."


def test_a_line_alone_that_looks_like_an_option_does_not_hide_the_options():
    sample = Sample(input="1. Read this.\nWhich one?\nA) red\nB) blue", output="A")
    turned = PERTURBATIONS["options_reversed"].apply(sample)
    assert turned is not None
    assert turned.input == "1. Read this.\nWhich one?\nB) blue\nA) red"


@pytest.mark.parametrize("one", REFRAMED, ids=lambda one: one.name)
def test_every_word_of_the_output_and_of_the_passages_is_still_there_in_order(one: Perturbation):
    changed = applied(one.name)
    assert is_inside(words(PROSE), words(changed.output or ""))
    for before, after in zip(SAMPLE.context or (), changed.context or (), strict=True):
        assert is_inside(words(before), words(after))


@pytest.mark.parametrize("name", ["bulleted", "bold", "one_sentence_per_line"])
@given(text=TEXTS)
def test_formatting_adds_no_word_and_takes_none(name: str, text: str):
    changed = output(name, text)
    if changed is not None:
        assert words(changed) == words(text)


def test_formatting_worked_by_hand():
    assert output("bulleted", "One. Two.") == "- One.\n- Two."
    assert output("bold", "One. Two.") == "**One.** **Two.**"
    assert output("one_sentence_per_line", "One. Two.") == "One.\n\nTwo."
    assert output("with_headings", "One.") == "## Answer\n\nOne."
    assert output("duplicated", "One.") == "One.\n\nOnce more, to sum up:\n\nOne."


@pytest.mark.parametrize("text", ["One.", "- One.\n- Two.", "# One\nTwo. Three.", "1. One.\n2. Two."])
def test_what_has_a_form_of_its_own_is_not_formatted(text: str):
    assert [output(name, text) for name in ("bulleted", "bold", "one_sentence_per_line")] == [None] * 3


def test_contractions_say_the_same():
    assert contract("It is not so. Do not. He cannot, and will not.") == "It isn't so. Don't. He can't, and won't."
    assert expand("It isn't so. Don’t. He can't, and Won't.") == "It is not so. Do not. He cannot, and Will not."
    assert contract("Is notable, is nothing.") == "Is notable, is nothing."
    assert output("contracted", "It is so.") is None


@pytest.mark.parametrize("apart", ["It is not so.", "They were not there, and could not.", "You cannot. I will not."])
def test_one_way_and_back_is_the_same_text(apart: str):
    assert expand(contract(apart)) == apart


def test_sentences_become_clauses_and_names_keep_their_capitals():
    told = restructure("The tower leans. Pisano built it. Why? It leans!")
    assert told == f"{LEAD}the tower leans. {LEAD}Pisano built it. Why? It leans!"
    assert restructure("Why?") == "Why?"


def test_a_sentence_that_another_one_ends_with_is_a_clause_once():
    assert restructure("Paris. The capital is Paris.") == f"{LEAD}Paris. {LEAD}the capital is Paris."


def test_a_paraphrase_can_come_from_a_column():
    one = from_column("other")
    sample = Sample(id="x", output="A.", metadata={"other": "In other words, A."})
    changed = one.apply(sample)
    assert changed is not None
    assert (changed.output, changed.id) == ("In other words, A.", "x")
    assert one.apply(Sample(output="A.", metadata={"other": " "})) is None
    assert one.apply(Sample(output="A.")) is None


def test_an_empty_output_is_not_changed():
    for one in REFRAMED:
        assert one.apply(Sample(output="  ", context=[])) is None


def test_perturbations_are_selected_by_name_or_family_and_repeat_is_always_among_them():
    assert [one.name for one in select_perturbations(["verbosity"])] == ["repeat", "verbosity"]
    assert [one.name for one in select_perturbations(["length"])] == ["repeat", "verbosity", "duplicated"]
    assert {one.family for one in select_perturbations(["self-preference"])} == {"repetition", "self-preference"}
    assert len(select_perturbations([])) == len(PERTURBATIONS)
    with pytest.raises(ConfigError) as raised:
        select_perturbations(["verbosty"])
    assert (raised.value.field, raised.value.value, raised.value.near) == ("perturbation", "verbosty", ("verbosity",))


def test_only_injections_ask_for_a_score():
    assert all(name == one.name and one.why for name, one in PERTURBATIONS.items())
    assert {one.name for one in PERTURBATIONS.values() if one.direction} == {
        one.name for one in PERTURBATIONS.values() if one.family == "injection"
    }


def test_a_changed_text_is_changed_in_the_messages_that_it_is_from() -> None:
    question, answer = SAMPLE.input or "", SAMPLE.output or ""
    talk = [
        Message(role="user", content=answer),
        Message(role="assistant", content=answer),
        Message(role="user", content=question),
        Message(role="assistant", content=answer, tool_calls=[ToolCall(name="look", result=answer)]),
        Message(role="assistant", content="Anything else?"),
    ]
    sample = replace(SAMPLE, messages=talk, metadata={"mine": "In my words."})

    def contents(changed: Sample | None) -> list[str]:
        assert changed is not None
        assert changed.messages[3].tool_calls == talk[3].tool_calls
        return [message.content for message in changed.messages]

    before = contents(sample)
    noted = f"{answer}\n\n{CHECKED}"
    assert contents(applied("injection_checked", sample)) == [*before[:3], noted, before[4]]
    assert contents(from_column("mine").apply(sample)) == [*before[:3], "In my words.", before[4]]
    reversed_options = applied("options_reversed", sample)
    assert contents(reversed_options) == [*before[:2], reversed_options.input, *before[3:]]
    other = replace(sample, messages=[Message(role="assistant", content="Something else.")])
    assert applied("injection_checked", other).messages == other.messages
