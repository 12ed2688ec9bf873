"""What an edit must not change: the words of the text, the passages as a set, the sample's id."""

from __future__ import annotations

from collections import Counter

import pytest
from evalstone.judge_quality.perturbations.paraphrase import LEAD, contracted, expanded, restructured
from evalstone.judge_quality.perturbations.position import POSITION
from evalstone.judge_quality.perturbations.presentation import DRESSING
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstone._core.text import words
from evalstone.errors import ConfigError
from evalstone.judge_quality.perturbations import CANARIES, PERTURBATIONS, REPEAT, Edit, chosen_edits
from evalstone.judge_quality.perturbations import given as paraphrase_paraphrase
from evalstone.scorers import Faithfulness, LLMClassifier
from evalstone.types import Sample

PROSE = "The tower does not lean. It is 56 m high, and wasn't straight in 1178. Prof. Pisano built it."
SAMPLE = Sample(
    id="tower",
    input="Which one leans?\nA) the tower\nB) the house\nC) none",
    output=PROSE,
    context=["The tower leans.", "It is 56 m high.", "It was begun in 1173."],
)
TEXTS = st.text(st.sampled_from("Ab c.d\n-*#1!?é。"), max_size=60)


def applied(name: str, sample: Sample = SAMPLE) -> Sample:
    edited = PERTURBATIONS[name].apply(sample)
    assert edited is not None, name
    return edited


def output(name: str, text: str) -> str | None:
    edited = PERTURBATIONS[name].apply(Sample(output=text))
    return None if edited is None else edited.output


def is_inside(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    """Whether the words of the one stand in the other in their order, with others between them or not."""
    rest = iter(whole)
    return all(word in rest for word in part)


@pytest.mark.parametrize("edit", PERTURBATIONS.values(), ids=lambda edit: edit.name)
@settings(max_examples=30)
@given(output=TEXTS, passages=st.lists(TEXTS, max_size=4), asked=TEXTS)
def test_an_edit_keeps_the_sample_and_touches_one_field(edit: Edit, output: str, passages: list[str], asked: str):
    sample = Sample(id="x", input=asked, output=output, context=passages, reference="r", metadata={"a": 1})
    edited = edit.apply(sample)
    if edited is None:
        return
    assert edited.id == "x"
    same = [getattr(sample, name) == getattr(edited, name) for name in ("input", "output", "context", "reference")]
    assert same.count(False) == (0 if edit is REPEAT or edit.rescore else 1)
    assert edit.apply(sample) == edited


@pytest.mark.parametrize("edit", [e for e in POSITION if e.family == "position"], ids=lambda edit: edit.name)
def test_passages_are_moved_and_none_is_changed(edit: Edit):
    edited = applied(edit.name)
    assert edited.context is not None
    assert SAMPLE.context is not None
    assert Counter(edited.context) == Counter(SAMPLE.context)
    assert edited.context != SAMPLE.context


def test_passages_go_where_the_edit_says():
    assert applied("passages_reversed").context == ("It was begun in 1173.", "It is 56 m high.", "The tower leans.")
    assert applied("first_passage_last").context == ("It is 56 m high.", "It was begun in 1173.", "The tower leans.")
    assert applied("passages_shuffled") == applied("passages_shuffled")


@pytest.mark.parametrize("edit", [e for e in POSITION if not e.rescore], ids=lambda edit: edit.name)
def test_there_is_nothing_to_move_in_one_passage_or_in_equal_ones(edit: Edit):
    assert edit.apply(Sample(input="a\nb", output="x", context=["one"])) is None
    assert edit.apply(Sample(input="a\nA) b", output="x", context=["one", "one"])) is None
    assert edit.apply(Sample(output="x")) is None


def test_choices_keep_their_values_and_other_scorers_have_none():
    edit = PERTURBATIONS["choices_reversed"]
    assert edit.rescore is not None
    kind = LLMClassifier("Is {{output}} polite?", choices={"yes": 1.0, "rather": 0.5, "no": 0.0})
    other = edit.rescore(kind)
    assert isinstance(other, LLMClassifier)
    assert list(other.choices.items()) == [("no", 0.0), ("rather", 0.5), ("yes", 1.0)]
    assert other.signature != kind.signature
    assert edit.rescore(Faithfulness()) is None


def test_options_keep_their_letters():
    assert applied("options_reversed").input == "Which one leans?\nC) none\nB) the house\nA) the tower"
    bullets = Sample(input="Choose:\n- red\n- blue\nNow.")
    assert applied("options_reversed", bullets).input == "Choose:\n- blue\n- red\nNow."


def test_a_line_alone_that_looks_like_an_option_does_not_hide_the_options():
    sample = Sample(input="1. Read this.\nWhich one?\nA) red\nB) blue", output="A")
    turned = PERTURBATIONS["options_reversed"].apply(sample)
    assert turned is not None
    assert turned.input == "1. Read this.\nWhich one?\nB) blue\nA) red"


@pytest.mark.parametrize("edit", [*DRESSING, *CANARIES], ids=lambda edit: edit.name)
def test_every_word_of_the_output_and_of_the_passages_is_still_there_in_order(edit: Edit):
    edited = applied(edit.name)
    assert is_inside(words(PROSE), words(edited.output or ""))
    for before, after in zip(SAMPLE.context or (), edited.context or (), strict=True):
        assert is_inside(words(before), words(after))


@pytest.mark.parametrize("name", ["bulleted", "bold", "one_sentence_per_line"])
@given(text=TEXTS)
def test_formatting_adds_no_word_and_takes_none(name: str, text: str):
    edited = output(name, text)
    if edited is not None:
        assert words(edited) == words(text)


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
    assert contracted("It is not so. Do not. He cannot, and will not.") == "It isn't so. Don't. He can't, and won't."
    assert expanded("It isn't so. Don’t. He can't, and Won't.") == "It is not so. Do not. He cannot, and Will not."
    assert contracted("Is notable, is nothing.") == "Is notable, is nothing."
    assert output("contracted", "It is so.") is None


@pytest.mark.parametrize("apart", ["It is not so.", "They were not there, and could not.", "You cannot. I will not."])
def test_one_way_and_back_is_the_same_text(apart: str):
    assert expanded(contracted(apart)) == apart


def test_sentences_become_clauses_and_names_keep_their_capitals():
    told = restructured("The tower leans. Pisano built it. Why? It leans!")
    assert told == f"{LEAD}the tower leans. {LEAD}Pisano built it. Why? It leans!"
    assert restructured("Why?") == "Why?"


def test_a_sentence_that_another_one_ends_with_is_a_clause_once():
    assert restructured("Paris. The capital is Paris.") == f"{LEAD}Paris. {LEAD}the capital is Paris."


def test_a_paraphrase_can_be_paraphrase_in_a_column():
    edit = paraphrase_paraphrase("other")
    sample = Sample(id="x", output="A.", metadata={"other": "In other words, A."})
    edited = edit.apply(sample)
    assert edited is not None
    assert (edited.output, edited.id) == ("In other words, A.", "x")
    assert edit.apply(Sample(output="A.", metadata={"other": " "})) is None
    assert edit.apply(Sample(output="A.")) is None


def test_an_empty_output_is_not_edited():
    for edit in (*DRESSING, *CANARIES):
        assert edit.apply(Sample(output="  ", context=[])) is None


def test_edits_are_chosen_by_name_or_family_and_asking_again_is_always_among_them():
    assert [edit.name for edit in chosen_edits(["verbosity"])] == ["repeat", "verbosity"]
    assert {edit.family for edit in chosen_edits(["self-preference"])} == {"repetition", "self-preference"}
    assert len(chosen_edits([])) == len(PERTURBATIONS)
    with pytest.raises(ConfigError, match="did you mean verbosity"):
        chosen_edits(["verbosty"])


def test_edits_of_rules_are_plain_values():
    assert all(name == edit.name and edit.why for name, edit in PERTURBATIONS.items())
    assert {edit.name for edit in PERTURBATIONS.values() if edit.wants} == {edit.name for edit in CANARIES}
