from __future__ import annotations

import contextlib
import json
import math
import time
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evalstone._core.loose_json import with_latex
from evalstone._core.parsing import (
    MAX_REPLY,
    bare,
    choice_schema,
    member,
    numbered,
    numbered_schema,
    object_schema,
    parse_json,
    refuse_placeholders,
    repeated_end,
    texts,
    validated,
)
from evalstone.errors import JudgeDeclined, ReplyError
from evalstone.questions import MiniCheck, RatePassages, VerifyClaims
from tests.fakes import QUESTION_KINDS, question_of, ratings, verdicts

VALUE: dict[str, Any] = {
    "claims": ["Ada wrote it.", "It has {braces}, “quotes” and a \\ in it."],
    "n": {"a": [1, {}], "b": None},
}
TEXT = json.dumps(VALUE, ensure_ascii=False)

# A backspace before "m" is written like the LaTeX command \bm, as which it is read.
json_texts = st.text().filter(lambda text: with_latex(json.dumps(text)) == json.dumps(text))
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | json_texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(json_texts, inner, max_size=3),
    max_leaves=10,
)
json_objects = st.dictionaries(json_texts, json_values, max_size=4)


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        f"  \n{TEXT}\n\t",
        f"\ufeff{TEXT}",
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```",
        f"~~~json\n{TEXT}\n~~~",
        f"\ufeff```json\r\n{TEXT}\r\n```\r\n",
        f"Here it is:\n{TEXT}\nI hope that this helps.",
        f"Here it is: ```json {TEXT}``` Done.",
        f"{TEXT}\n{TEXT}",
        f"First {json.dumps(VALUE, indent=2)}, in short {TEXT}",
        f"For each claim in {{C1, C2}} as in \\frac{{a}}{{b}}: {TEXT}",
        f"I use {{'single', 'quotes'}} no more. {TEXT}",
        f"[Note] {TEXT}",
        json.dumps(VALUE, indent=4),
        json.dumps(VALUE, ensure_ascii=True),
        TEXT.replace('": ', '" \t\r\n: \t'),
    ],
)
def test_the_one_object_in_a_reply_is_read(reply: str):
    assert parse_json(reply) == VALUE


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('{"a": [1, 2,], "b": {"c": "x, ]",},}', {"a": [1, 2], "b": {"c": "x, ]"}}),
        ('{"a": 1, // the first\n "b": "http://x", // end\n}', {"a": 1, "b": "http://x"}),
        ('{ // first\n "a": 1}\nI said "so // maybe".', {"a": 1}),
        ('{"a": 1,} and in short {"a": 1,}', {"a": 1}),
        ('["a", "b"]', ["a", "b"]),
        ('Here: ["a", "b",]' + ' and {"a": 1}', {"a": 1}),
        ('[{"a": 1}, {"a": 2}]', [{"a": 1}, {"a": 2}]),
        ('I looked at ["a" and "b"]: {"a": 1}', {"a": 1}),
    ],
)
def test_comments_last_commas_and_lists_are_read(reply: str, value: Any):
    assert parse_json(reply) == value


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("{'a': 'It is', 'b': [1, 'x']}", {"a": "It is", "b": [1, "x"]}),
        ("```python\n{'a': 'so'}\n```\nIt's so.", {"a": "so"}),
        ("""{'a': "It's so", 'b': 'a "b"'}""", {"a": "It's so", "b": 'a "b"'}),
        (r"{'a': 'It\'s so, \n\\ \"b\" \u00e9'}", {"a": 'It\'s so, \n\\ "b" é'}),
        (r"""{"a": "It\'s so"}""", {"a": "It's so"}),
        (r"{'a': '$\alpha \frac{1}{2}$'}", {"a": r"$\alpha \frac{1}{2}$"}),
        ("{'a': True, 'b': False, 'c': None, 'True': 'None'}", {"a": True, "b": False, "c": None, "True": "None"}),
        ('{"a": True}', {"a": True}),
        ("{1: 'yes', 2: {'a': [1, 2]}}", {"1": "yes", "2": {"a": [1, 2]}}),
        ('{a: "x", b_2: [1,], // so\n c: {"d": 1}}', {"a": "x", "b_2": [1], "c": {"d": 1}}),
        ('{“a”: “It’s so”, “b”: “a "b"”}', {"a": "It’s so", "b": 'a "b"'}),
        ("['a', 'b']", ["a", "b"]),
        ("[{'a': 1}, {'a': 2}]", [{"a": 1}, {"a": 2}]),
        ("I looked at ['a' and 'b']: {'a': 1}", {"a": 1}),
        ("{'a': 1} and in short {\"a\": 1}", {"a": 1}),
        ("{'a': 1} isn't {b}, it's so", {"a": 1}),
    ],
)
def test_the_spellings_of_python_and_javascript_are_read(reply: str, value: Any):
    assert parse_json(reply) == value


def test_a_python_literal_is_read_whole_or_not_at_all():
    whole = repr(VALUE)
    assert parse_json(whole) == VALUE
    for end in range(len(whole)):
        with pytest.raises(ReplyError):
            parse_json(whole[:end])


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"$\frac{1}{2}$", r"$\frac{1}{2}$"),
        (r"\alpha + \beta \times \theta", r"\alpha + \beta \times \theta"),
        (r"\tan x \to 0 and \rceil", r"\tan x \to 0 and \rceil"),
        (r"\bf \nu \not", r"\bf \nu \not"),
        (r"\sqrt{2} \underline{x} \(x\) \, \neq \rightarrow \text{a} \textbf{b} \begin{x}",) * 2,
        (r"$\\frac{1}{2}$", r"$\frac{1}{2}$"),
        (r"a\tb\nnot\ttan\r\n\u0041\"\/\b", 'a\tb\nnot\ttan\r\nA"/\b'),
    ],
)
def test_backslashes_of_latex_stand_for_themselves(written: str, meant: str):
    assert parse_json(f'{{"a": "{written}"}}') == {"a": meant}


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("", "empty"),
        (" \n\ufeff ", "no complete JSON object"),
        ("\ufeff\n", "empty"),
        ("I cannot answer.", "no complete JSON object"),
        ("yes", "no complete JSON object"),
        ("5", "no complete JSON object"),
        ("null", "no complete JSON object"),
        ('"a text"', "no complete JSON object"),
        ("{'claims': ['a'", "not valid"),
        ("{'claims': ['a'}", "not valid"),
        ("{'a': 'It's so'}", "not valid"),
        ("{'a': 'x' if True else 'y'}", "not valid"),
        ("{'a': 1} {'a': 2}", "2 different JSON objects"),
        ("{\"a\": 1} or {'a': 2}", "2 different JSON objects"),
        ("{'a': 1, 'a': 2}", "the key 'a' stands twice"),
        ("{'a': 1, \"a\": 1}", "the key 'a' stands twice"),
        ("{1: {'a': 1}, '1': {'a': 2}}", "the key '1' stands twice"),
        ("{'a': nan}", "not valid"),
        ("{'a': NaN}", "NaN is not a JSON number"),
        ("{'a': open('x')}", "not valid"),
        ("{'a': “x”y”}", "not valid"),
        ("{claims: ['a', }", "not valid"),
        ("{claims}", "no complete JSON object"),
        ("['a'] or ['b']", "no complete JSON object"),
        ('["a", "b"', "no complete JSON object"),
        ('[{"a": 1}', "cut off"),
        ('Result: [\n {"a": 1},', "cut off"),
        ('[{"a": 1}] {"a": 1}', "2 different JSON objects"),
        ('["a"]\n["b"]', "2 different JSON objects"),
        ('["a"] or ["b"]', "no complete JSON object"),
        ('{"a": 1} {"a": 2}', "2 different JSON objects"),
        ('{"a": 1} or {}', "2 different JSON objects"),
        ('{"a": 1}\n{"a": 1}\n{"b": 1}', "3 different JSON objects"),
        ('{"a": 1, "a": 2}', "the key 'a' stands twice"),
        ('{"a": 1, "a": 1}', "the key 'a' stands twice"),
        ('{"v": {"1": {"x": 1}, "1": {"x": 2}}}', "the key '1' stands twice"),
        ('Here: {"a": 1, "\\u0061": 2}', "the key 'a' stands twice"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('so {"a": [Infinity]}', "Infinity is not a JSON number"),
        ('{"a": -Infinity}', "-Infinity is not a JSON number"),
        ('{"a": 1', "cut off"),
        ('{"a": "text', "cut off"),
        ('{"a": {"b": 1}', "cut off"),
        ('{"a": {"b": 1},', "cut off"),
        ("{", "cut off"),
        ("```json\n{\n```", "cut off"),
        ('```json\n{"a": [1,\n```', "cut off"),
        ('{"a": {"b": true}, "c": {"d": tru', "not valid"),
        ('{"a": {"b": 1}, "c": nul', "not valid"),
        ('{"a": {"b": 1}, "c": …}', "not valid"),
        ('{"a": {"b": 1},, }', "not valid"),
        ('{"a": [1 2,]}', "not valid"),
        ('{"a": {"b": 1} "c": 2}', "not valid"),
        ('{"a": {"b": 1}, // so', "not valid"),
        ('{"a": {"b": 1}, "c": NaN}', "NaN"),
        ('{"a": 1} and {"a": 1', "cut off"),
        ('{"a": ' + "1" * 5000 + "}", "not valid"),
        ('{"a": 1}' + "}", None),
    ],
)
def test_what_is_not_one_whole_object_is_refused_with_the_reason(reply: str, told: str | None):
    if told is None:
        assert parse_json(reply) == {"a": 1}
        return
    with pytest.raises(ReplyError, match=told) as raised:
        parse_json(reply)
    assert raised.value.reply == reply


@given(json_objects)
def test_any_object_is_read_as_it_was_written(value: dict[str, Any]):
    assert parse_json(json.dumps(value)) == value
    assert parse_json(f"```json\n{json.dumps(value, ensure_ascii=False, indent=1)}\n```") == value


@given(json_objects, st.sampled_from(["", "```json\n", "Here: ", "\ufeff"]))
@settings(max_examples=60)
def test_a_reply_cut_off_anywhere_never_gives_a_value(value: dict[str, Any], before: str):
    whole = before + json.dumps(value)
    for end in range(len(whole)):
        with pytest.raises(ReplyError):
            parse_json(whole[:end])
    assert parse_json(whole) == value


@pytest.mark.parametrize("kind", [kind for kind in QUESTION_KINDS if kind is not MiniCheck], ids=lambda kind: kind.kind)
def test_no_question_reads_an_answer_out_of_a_cut_off_reply(kind: Any):
    question = question_of(kind, "Ada.")
    for whole in (json.dumps(question.example()), json.dumps(question.example(), indent=2)):
        for end in range(len(whole)):
            with pytest.raises((ReplyError, JudgeDeclined)):
                question.parse(whole[:end])


@given(json_objects, json_objects)
@settings(max_examples=50)
def test_of_two_objects_neither_is_chosen(one: dict[str, Any], other: dict[str, Any]):
    assume(one != other)
    with pytest.raises(ReplyError, match="2 different"):
        parse_json(f"{json.dumps(one)} no, {json.dumps(other)}")


@given(st.text(alphabet='{}[]":,\\ \nab1tn`<think>/', max_size=60))
@settings(max_examples=300)
def test_any_text_gives_an_object_or_a_reply_error(text: str):
    with contextlib.suppress(ReplyError):
        assert isinstance(parse_json(text), dict | list)


@pytest.mark.parametrize("opening", ['{"a":', '{"a":[', "[", '[{"a":'])
@pytest.mark.parametrize("depth", [500, 995, 5_000, 200_000])
def test_deep_nesting_is_refused_or_read_and_never_breaks(opening: str, depth: int):
    closing = "".join({"{": "}", "[": "]"}[c] for c in reversed(opening) if c in "{[")
    whole = opening * depth + "{}" + closing * depth
    for reply in (whole, opening * depth, f"so: {whole} or {whole}"):
        with contextlib.suppress(ReplyError):
            assert isinstance(parse_json(reply), dict | list)


def test_a_reply_that_is_too_long_is_refused_before_it_is_read():
    with pytest.raises(ReplyError, match="2,000,001 characters") as raised:
        parse_json('{"a": "' + "x" * (MAX_REPLY - 8) + '"}')
    assert len(raised.value.reply or "") == 1000


def test_a_reply_just_short_enough_is_read():
    assert len(parse_json('{"a": "' + "x" * (MAX_REPLY - 9) + '"}')["a"]) == MAX_REPLY - 9


@pytest.mark.parametrize(
    "reply",
    [
        "{" * MAX_REPLY,
        "{ " * (MAX_REPLY // 2),
        "{}" * (MAX_REPLY // 2),
        '{"' * (MAX_REPLY // 2),
        "[" * MAX_REPLY,
        "[ " * (MAX_REPLY // 2),
        "[{}" * (MAX_REPLY // 3),
        '["' * (MAX_REPLY // 2),
        '["a",' * (MAX_REPLY // 5),
        '["a" ' * (MAX_REPLY // 5),
        '{"a":1,}' * (MAX_REPLY // 8),
        "{'a':1}" * (MAX_REPLY // 7),
        "{'a':" * (MAX_REPLY // 5),
        "{a:[" * (MAX_REPLY // 4),
        "['" * (MAX_REPLY // 2),
        "{'" * (MAX_REPLY // 2),
        "{" + "a" * (MAX_REPLY - 1),
        "{a" + " " * (MAX_REPLY - 2),
        "{a " * (MAX_REPLY // 3),
        "{'a':" + "1," * (MAX_REPLY // 2 - 3),
        '{"a":1,//' * (MAX_REPLY // 9),
        '{"a":[' + ", " * (MAX_REPLY // 2 - 3),
        '{"a":"' + "\\\\f" * (MAX_REPLY // 3 - 3),
        '"' * MAX_REPLY,
        '{"a":1}' * (MAX_REPLY // 7),
        "{ `" * (MAX_REPLY // 3),
        "{" + "`" * (MAX_REPLY - 1),
        "{" + " " * (MAX_REPLY - 1),
        "[" + " " * (MAX_REPLY - 1),
        "{" + ",".join(f'"{n}":1' for n in range(150_000)) + ',"149999":2}',
        "{" + '"a":1,' * 300_000 + '"a":1}',
    ],
    ids=lambda reply: reply[:14],
)
@pytest.mark.slow
def test_two_megabytes_of_anything_are_read_or_refused_without_delay(reply: str):
    started = time.process_time()
    with contextlib.suppress(ReplyError):
        parse_json(reply)
    assert time.process_time() - started < 20


def test_an_error_does_not_repeat_a_key_of_great_length():
    key = "k" * 100_000
    with pytest.raises(ReplyError) as raised:
        parse_json(f'{{"{key}": 1, "{key}": 2}}')
    assert len(str(raised.value)) < 200
    with pytest.raises(ReplyError) as raised:
        numbered({key: "a"}, 1, of="claim")
    assert len(str(raised.value)) < 200


def test_numbered_members_come_in_the_order_of_their_numbers():
    given = {"10": "low", **{str(n): "high" for n in range(9, 0, -1)}}
    assert numbered(given, 10, of="passage") == ["high"] * 9 + ["low"]


def test_a_list_of_the_right_length_is_read_as_numbered():
    assert numbered(["a", "b"], 2, of="claim") == ["a", "b"]


@pytest.mark.parametrize(
    ("data", "count", "told"),
    [
        ({"1": "a"}, 2, "2 claims, 1 verdict; missing: 2"),
        ({"1": "a", "2": "b", "3": "c"}, 2, "2 claims, 3 verdicts; unknown: '3'"),
        ({"0": "a", "1": "b"}, 2, "2 claims, 2 verdicts; missing: 2; unknown: '0'"),
        (["a"], 2, "2 claims, 1 verdict; missing: 2"),
        (["a", "b"], 1, "1 claim, 2 verdicts; unknown: '2'"),
        ({"1": "a"}, 0, "0 claims, 1 verdict; unknown: '1'"),
        ({"01": "a"}, 1, "missing: 1; unknown: '01'"),
        ({"1 ": "a"}, 1, "missing: 1; unknown: '1 '"),
        ({"one": "a"}, 1, "missing: 1; unknown: 'one'"),
        ("ab", 2, "an object with the keys 1 to 2 was expected, one for each claim"),
        (None, 1, "an object with the keys 1 to 1 was expected"),
        (5, 1, "an object with the keys"),
    ],
)
def test_a_wrong_count_or_number_is_told(data: Any, count: int, told: str):
    with pytest.raises(ReplyError) as raised:
        numbered(data, count, of="claim")
    assert told in str(raised.value)


@pytest.mark.parametrize("data", [{}, []])
def test_an_empty_collection_is_a_miscount(data: Any):
    with pytest.raises(ReplyError, match="3 claims, 0 verdicts; missing: 1, 2, 3"):
        numbered(data, 3, of="claim")
    assert numbered(data, 0, of="claim") == []


@given(st.integers(0, 30), st.dictionaries(st.integers(-2, 40).map(str), st.text(), max_size=31))
def test_numbered_gives_exactly_one_member_for_each_item_or_nothing(count: int, data: dict[str, str]):
    try:
        found = numbered(data, count, of="claim")
    except ReplyError:
        assert set(data) != {str(n) for n in range(1, count + 1)}
    else:
        assert found == [data[str(n)] for n in range(1, count + 1)]
        assert len(data) == count


def test_many_members_are_counted_without_delay():
    data = {str(number): "a" for number in range(1, 100_001)}
    started = time.process_time()
    assert len(numbered(data, 100_000, of="claim")) == 100_000
    assert time.process_time() - started < 20


VERIFY = VerifyClaims(claims=("c1", "c2"), context=("p1", "p2"))


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (verdicts("supported"), "2 claims, 1 verdict; missing: 2"),
        (verdicts("supported", "supported", "supported"), "2 claims, 3 verdicts; unknown: '3'"),
        (verdicts("supported", "UNSUPPORTED"), "verdict 2.verdict"),
        (verdicts("supported", "yes"), "verdict 2.verdict"),
        (verdicts("supported", "supported by 1"), "verdict 2.verdict"),
        (verdicts("supported", ("supported", [3])), "verdict 2 cites passage 3; there are 2 passages"),
        (verdicts(("supported", [0]), "supported"), "verdict 1 cites passage 0"),
        (verdicts(("supported", [-1]), "supported"), "verdict 1 cites passage -1"),
        (verdicts(("supported", [1, "1 and 2"]), "supported"), "verdict 1.passages.1"),  # pyright: ignore[reportArgumentType]
        (verdicts(("supported", ["1.5"]), "supported"), "verdict 1.passages.0"),  # pyright: ignore[reportArgumentType]
        (verdicts(("supported", [1.5]), "supported"), "verdict 1.passages.0"),  # pyright: ignore[reportArgumentType]
        (verdicts(("supported", ["one"]), "supported"), "verdict 1.passages.0"),  # pyright: ignore[reportArgumentType]
        ({"verdicts": None}, "an object with the keys 1 to 2"),
        ({"verdict": {}}, "the key 'verdicts' was expected"),
        ({"verdicts": {"1": {"passages": []}, "2": {}}}, "verdict 1.verdict"),
        ({"verdicts": {"1": "supported", "2": "supported"}}, "verdict 1"),
    ],
)
def test_a_verdict_that_is_not_one_is_refused_and_named(reply: Any, told: str):
    with pytest.raises(ReplyError) as raised:
        VERIFY.parse(json.dumps(reply))
    assert told in str(raised.value)


@pytest.mark.parametrize("level", ["very high", "high, low", "hi", "", '""', ".", None, 1])
def test_a_level_that_is_none_is_refused(level: Any):
    question = RatePassages(question="q", answer="a", context=("p",))
    with pytest.raises(ReplyError, match=r"(rating 1|passages\.1)\.level"):
        question.parse(json.dumps(ratings((level, True))))


def test_a_citation_that_stands_twice_counts_once():
    assert VERIFY.parse(json.dumps(verdicts(("supported", [2, 1, 2]), "supported")))[0].passages == (2, 1)


def test_validated_names_at_most_three_places():
    with pytest.raises(ReplyError) as raised:
        validated(list[int], ["a", "b", "c", "d"], "numbers")
    assert str(raised.value).count("numbers.") == 3
    assert "numbers.0: " in str(raised.value)


def test_validated_without_a_place_says_reply():
    with pytest.raises(ReplyError, match=r"^reply: .* string"):
        validated(str, 5)


@pytest.mark.parametrize("data", [None, [], "claims", {"other": 1}, 5])
def test_a_member_that_is_missing_is_told(data: Any):
    with pytest.raises(ReplyError, match="key 'claims'"):
        member(data, "claims")


def test_blank_texts_are_dropped_and_others_stripped():
    assert texts([" a ", "", "\n", "b"], "claims") == ("a", "b")
    with pytest.raises(ReplyError, match=r"claims\.1"):
        texts(["a", None], "claims")
    with pytest.raises(ReplyError, match="claims"):
        texts("a", "claims")


def test_schemas_are_closed_and_need_every_key_in_their_order():
    schema = numbered_schema("verdict", 2)
    assert schema["required"] == ["1", "2"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["1"] == schema["properties"]["2"] == {"$ref": "#/$defs/verdict"}
    item = object_schema({"b": {"type": "array"}, "a": choice_schema(["x", "y"])})
    assert list(item["properties"]) == item["required"] == ["b", "a"]
    assert item["properties"]["a"] == {"type": "string", "enum": ["x", "y"]}
    assert numbered_schema("verdict", 0)["properties"] == {}


def test_numbers_keep_their_value():
    assert math.isclose(parse_json('{"a": 1e-3}')["a"], 0.001)
    assert parse_json('{"a": 12345678901234567890}')["a"] == 12345678901234567890


def test_a_repetition_at_the_end_has_eight_units_of_at_most_200_characters_and_100_characters_in_all():
    letters = "".join(map(chr, range(0x4E00, 0x4E00 + 201)))
    assert repeated_end("a" * 100) == "a"
    assert repeated_end("a" * 99) == repeated_end(letters[:100] + "a" * 99) == ""
    assert repeated_end("good " * 20) == "good "
    for size in (13, 200):
        assert repeated_end(letters[:size] * 8) == letters[:size]
        assert repeated_end((letters[:size] * 8)[1:]) == ""
    assert repeated_end(letters * 8) == ""


def test_the_letters_and_digits_of_a_text_are_the_same_with_and_without_other_characters_around_them():
    letters = "".join(filter(str.isalnum, map(chr, range(128)))).lower()
    every = "".join(map(chr, range(128)))
    assert bare(every) == letters
    assert bare(f"ß{every}É") == f"ss{letters}é"


def test_a_text_that_repeats_itself_or_stands_for_one_is_refused_unless_the_material_has_it():
    def refuse(text: str, *material: str) -> None:
        refuse_placeholders({"a": [text]}, lambda _: False, lambda: material)

    looping = "So good. " * 20
    for text, problem in (
        (looping, "it repeats itself"),
        (f"{looping}\n", "it repeats itself"),
        ("...", "placeholder"),
    ):
        with pytest.raises(ReplyError, match=rf"^a\.1: .*{problem}"):
            refuse(text, "So good.")
        refuse(text, f"{text} It is.", text)


def test_the_place_of_a_refused_text_is_told_without_its_control_characters_and_in_short():
    with pytest.raises(ReplyError, match="is a placeholder") as raised:
        refuse_placeholders({"k" * 1000: {"\x1b[31m": "..."}}, lambda _: False, tuple)
    assert len(str(raised.value)) < 300
    assert "\x1b" not in str(raised.value)
