"""How the lexical judge reads texts: times, numbers, structured sources, other languages."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone._core.text import words
from evalstone.judges.lexical import LexicalJudge
from evalstone.judges.lexical.classifier import LONGEST_QUOTE, outside_training, quote
from evalstone.judges.lexical.features import Evidence, evidence, read
from evalstone.judges.lexical.model import shipped
from evalstone.judges.lexical.normalization import boolean_field, evened, fields, is_structured
from evalstone.judges.lexical.passages import prepared
from evalstone.questions import ClaimVerdict, VerifyClaims
from evalstone.questions.verdict import ClaimSupported

PLACE = (
    '{"name": "Joe\'s", "hours": {"Monday": "17:30-23:0", "Tuesday": "17:30-23:0"}, "attributes": {"BusinessParking": '
    '{"garage": true, "lot": false}, "WiFi": "free", "OutdoorSeating": null}, "reviews": [{"text": "Try the soup."}]}'
)
PYTHON = PLACE.replace("true", "True").replace("false", "False").replace("null", "None").replace('"', "'", 4)


def test_a_long_quotation_is_cut_between_words() -> None:
    text = " ".join(f"alpha{n} beta" for n in range(40))
    shown = quote(text)
    assert len(shown) <= LONGEST_QUOTE
    head, tail = shown.split(" … ")
    assert text.startswith(f"{head} ")
    assert text.endswith(f" {tail}")
    assert len(quote("x" * 500)) > LONGEST_QUOTE / 2


def prepared_evidence(claim: str, *context: str) -> Evidence:
    return evidence(claim, prepared(context, shipped().lexicon))


def verdict(claim: str, *context: str) -> ClaimVerdict:
    return asyncio.run(LexicalJudge().answer(VerifyClaims(claims=(claim,), context=context))).value[0]


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("5:30 PM", ["17h30"]),
        ("17:30:00", ["17h30"]),
        ("9 a.m. to 12 pm", ["9h00", "12h00"]),
        ("from 5 to 9 pm", ["17h00", "21h00"]),
        ("11am-3pm", ["11h00", "15h00"]),
        ("5 people, 3.5 stars, chapter 36:61", []),
    ],
)
def test_clock_times_have_one_form(text: str, times: list[str]):
    assert [word for word in words(evened(text)) if "h" in word and word[0].isdigit()] == times


def test_joined_words_are_taken_apart():
    assert words(evened("WiFi, take_out")) == ("wi", "fi", "take", "out")


@pytest.mark.parametrize("text", [PLACE, PYTHON])
def test_json_and_python_literals_are_read_field_by_field(text: str):
    assert is_structured(text)
    lines = [line.lower().split(": ", 1) for line in fields(text)]
    assert lines[0][0] == "name"
    assert lines[0][1].startswith("joe")
    assert ["hours monday", "17:30-23:0"] in lines
    assert ["attributes businessparking lot", "false"] in lines
    assert lines[-1] == ["reviews text", "try the soup."]


def test_a_list_of_plain_values_is_one_line():
    assert list(fields('{"tags": ["a", "b, c"], "n": 3}')) == ["tags: a, b, c", "n: 3"]


@pytest.mark.parametrize(
    ("text", "structured"),
    [
        ("The tower is tall.\nIt is in Paris.\nMany people: too many.", False),
        ("name: Joe's\ncity: Goleta\nWi Fi: free", True),
    ],
)
def test_prose_is_not_structured_and_lines_of_fields_are(text: str, structured: bool):
    assert is_structured(text) == structured


@given(st.text(alphabet="{}[]:,\"'\\ ab\n1"))
def test_what_is_no_json_is_read_without_an_error(text: str):
    assert all(isinstance(line, str) for line in fields(text))


@pytest.mark.parametrize("text", ['{"a": ' * 50_000, "[" * 200_000, '"' * 200_000, "'" * 100_001, "{a:" * 50_000])
def test_deep_or_broken_json_takes_no_more_than_seconds(text: str):
    started = time.process_time()
    list(fields(text))
    assert time.process_time() - started < 20


@pytest.mark.parametrize("source", [PLACE, PYTHON])
@pytest.mark.parametrize(
    "claim",
    [
        "Joe's has a parking lot.",
        "Joe's offers outdoor seating.",
        "The parking lot at Joe's is large.",
    ],
)
def test_a_claim_that_states_a_false_field_is_contradicted(claim: str, source: str):
    found = verdict(claim, source)
    assert found.verdict == "contradicted"
    assert 'the source has "' in found.reason


@pytest.mark.parametrize(
    "claim",
    [
        "Joe's has a parking garage and free Wi-Fi.",
        "Joe's has a garage but no lot.",
        "Joe's has no outdoor seating.",
        "Joe's is open Monday to Tuesday from 5:30 PM to 11 PM.",
    ],
)
def test_a_claim_that_fields_bear_out_is_supported(claim: str):
    assert verdict(claim, PLACE).verdict == "supported"


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("outdoor seating: no", ("outdoor seating", False)),
        ("hours lot: False", ("hours lot", False)),
        ("wifi: 'none'", ("wifi", False)),
        ("Wifi: No.", ("Wifi", False)),
        ("**wifi**: no", ("wifi", False)),
        ("- **Wi-Fi:** *No*", ("Wi-Fi", False)),
        ("3. `has_wifi` = false", ("has_wifi", False)),
        ("wifi — none", ("wifi", False)),
        ("wifi - n/a", ("wifi", False)),
        ("wifi：no", ("wifi", False)),
        ("wifi: No (only in the lobby)", ("wifi", False)),
        ("wifi: not available", ("wifi", False)),
        ("wifi: ✗", ("wifi", False)),
        ("wifi: Yes.", ("wifi", True)),
        ("**wifi** = true", ("wifi", True)),
        ("wifi: free", None),
        ("wi-fi-no", None),
        ("Monday: closed", None),
        ("is there any: note", None),
        ("none", None),
        ("wifi:", None),
        ("note: wifi: no", None),
        ("No - wifi", None),
    ],
)
def test_a_line_is_a_field_when_its_value_is_a_yes_or_a_no(line: str, field: tuple[str, bool] | None):
    assert boolean_field(line) == field


@pytest.mark.parametrize(("line", "field"), [("wifi: ", ("wifi", False)), ("a: b: null", ("a: b", False))])
def test_a_field_of_a_structured_source_may_be_empty_and_its_key_any_text(line: str, field: tuple[str, bool]):
    assert boolean_field(line, structured=True) == field


def test_a_field_is_recognized_by_the_words_that_no_other_line_has():
    source = '{"parking garage": true, "parking lot": false, "Take Out": null, "stars": 4}'
    fields = prepared((source,), shipped().lexicon).fields
    assert [(field.line, sorted(field.stems), field.value) for field in fields] == [
        ("parking garage: true", ["garag"], True),
        ("parking lot: false", ["lot"], False),
        ("Take Out: null", ["tak"], False),
    ]


@pytest.mark.parametrize("line", ["outdoor seating: no; wifi: free", "wifi: free, outdoor seating: No."])
@pytest.mark.parametrize(
    ("claim", "expected"), [("Joe's offers outdoor seating.", "contradicted"), ("The wifi is free.", "supported")]
)
def test_a_line_may_have_several_fields(line: str, claim: str, expected: str):
    assert verdict(claim, line).verdict == expected


def test_a_field_that_is_repeated_is_one_field():
    claim = "There is no outdoor seating."
    assert verdict(claim, "outdoor seating: yes", "outdoor seating: yes").verdict == "contradicted"


@pytest.mark.parametrize(
    "claim",
    [
        "Joe's has no outdoor seating.",
        "Outdoor seating isn't offered.",
        "The outdoor seating is unavailable.",
        "Outdoor seating is not allowed.",
    ],
)
def test_a_claim_that_denies_a_field_that_is_a_yes_is_contradicted(claim: str):
    line = "Outdoor seating: Yes."
    found = verdict(claim, line)
    assert found.verdict == "contradicted"
    assert f'source has "{line}"' in found.reason
    assert verdict(claim, "Outdoor seating: No.").verdict != "contradicted"
    response = asyncio.run(LexicalJudge().answer(ClaimSupported(claim=claim, context=(line,)))).value
    assert response.probability is not None
    assert response.probability < 0.2


@pytest.mark.parametrize(
    "claim",
    [
        "There is outdoor seating.",
        "There is outdoor seating, and wifi is not available.",
        "There isn't a fee for outdoor seating.",
        "Outdoor seating is not only for guests.",
        "No, it has outdoor seating.",
    ],
)
def test_a_negation_of_something_else_denies_no_field(claim: str):
    assert not prepared_evidence(claim, "outdoor seating: yes").contradicting


@pytest.mark.parametrize("others", [(), ("wifi: free",), ("wifi: free", "parking: yes")])
@pytest.mark.parametrize("claim", ["Joe's offers outdoor seating.", "The restaurant offers outdoor seating."])
def test_a_false_field_contradicts_a_claim_however_few_lines_the_source_has(claim: str, others: tuple[str, ...]):
    line = "outdoor seating: no"
    source = "\n".join((line, *others))
    found = verdict(claim, source)
    assert found.verdict == "contradicted"
    assert f'source has "{line}"' in found.reason
    assert verdict(claim, f"A diner. In Goleta.\n{source}").verdict == "contradicted"
    assert verdict(claim, source.replace("seating: no", "seating: yes")).verdict != "contradicted"
    response = asyncio.run(LexicalJudge().answer(ClaimSupported(claim=claim, context=(source,)))).value
    assert response.probability is not None
    assert response.probability < 0.1


@pytest.mark.parametrize(
    "text", ["He asked for parking: no, they said.", "These have parking:\nGoleta and Ventura", "a: b: no", "no"]
)
def test_prose_has_no_fields(text: str):
    assert prepared((text,), shipped().lexicon).fields == ()


def test_a_claim_in_chinese_is_compared_by_pairs_of_characters_and_said_to_be_outside():
    context = ("埃菲尔铁塔位于法国巴黎，高三百米，建于1889年。",)
    right = asyncio.run(LexicalJudge().answer(ClaimSupported(claim="埃菲尔铁塔位于法国巴黎。", context=context))).value
    wrong = asyncio.run(LexicalJudge().answer(ClaimSupported(claim="埃菲尔铁塔位于德国柏林。", context=context))).value
    assert right.verdict == "yes"
    assert wrong.verdict == "no"
    assert "柏林" in wrong.reason
    assert "another script" in right.reason


def test_outside_of_what_it_was_trained_on_the_judge_is_less_sure():
    foreign, known = "Der Turm wurde 1889 von der Firma Gustave Eiffels fertiggestellt.", "The tower is tall."
    assert 0 < (verdict(foreign, foreign).probability or 0) < (verdict(known, known).probability or 0)
    assert "not look like" in verdict(foreign, foreign).reason


@pytest.mark.parametrize(
    "text", ["", "Paris", "Apples, pears, plums, cherries, grapes, figs, dates, limes", "It was completed in 1889."]
)
def test_english_lists_and_short_texts_are_inside(text: str):
    assert outside_training(text) == ""


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("Apply it (Passage 2, steps 1-3).", ()),
        ("See passages 1, 2 and 3–5.", ()),
        ("It takes 1-3 days.", ("1", "3")),
    ],
)
def test_ranges_of_passages_and_steps_are_references_not_numbers(text: str, figures: tuple[str, ...]):
    assert read(text).figures == figures
