"""Reasoning in front of replies and answers."""

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evalstone._core.loose_json import with_latex
from evalstone._core.parsing import MAX_REPLY, parse_json
from evalstone._core.reasoning import answer_start, begins_with_reasoning, split_reasoning, without_reasoning
from evalstone.errors import ReplyError

DRAFT = 'Maybe {"verdict": "no"}. Wait.'
BLOCKS = [
    f"<think>{DRAFT}</think>",
    f"<think>\n{DRAFT}\n</think>\n\n",
    f"<THINK></THINK>\n<think>{DRAFT}</think>",
    f"<thinking>{DRAFT}</thinking>\n",
    f"<thought>{DRAFT}</thought>\n",
    f"<thoughts>{DRAFT}</thoughts>\n",
    f"<antThinking>{DRAFT}</antThinking>\n",
    f"<reasoning>{DRAFT}</reasoning>",
    f"<seed:think>{DRAFT}</seed:think>",
    f"[THINK]{DRAFT}[/THINK]",
    f"◁think▷{DRAFT}◁/think▷",
    f"<|START_THINKING|>{DRAFT}<|END_THINKING|><|START_RESPONSE|>",
    f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>",
    f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>",
    f"<|channel>thought\n{DRAFT}<channel|>",
    f"<|inner_prefix|>{DRAFT}<|inner_suffix|>",
    f"<think>{DRAFT}</think><|begin_of_box|>",
    f"<|channel|>commentary<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>",
    f"analysis{DRAFT}assistantfinal",
    f"<|start|>assistant<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>",
    f"<|begin_of_thought|>{DRAFT}<|end_of_thought|>\n\n<|begin_of_solution|>",
    f"Here is my thought process: {DRAFT} Here is my response: ",
    f"Here's my thought process: {DRAFT} Here's my response: ",
]
UNOPENED = [f"{DRAFT}\n</think>\n\n", f"{DRAFT}\n[/THINK]\n", f"{DRAFT}\n</seed:think>\n"]


@pytest.mark.parametrize("block", [*BLOCKS, *UNOPENED, f"Sure. <think>{DRAFT}</think>", f"{DRAFT}</think>"])
@pytest.mark.parametrize("answer", ["Yes.", '{"verdict": "yes", "reason": "It says </think> itself."}'])
def test_what_stands_before_the_last_closing_tag_of_a_reply_is_reasoning(block: str, answer: str) -> None:
    assert without_reasoning(block + answer).strip() == answer
    assert (block + answer)[answer_start(block + answer) :].strip().removeprefix("<|START_RESPONSE|>").removeprefix(
        "<|begin_of_box|>"
    ).removeprefix("<|begin_of_solution|>") == answer


@pytest.mark.parametrize(
    "reply",
    [
        "Yes.",
        '{"reason": "It ends with </think> and <think>", "verdict": "no"}',
        'Here: {"reason": "</think>",\n"verdict": {"1": "no"}} and {"a": "</think>"}',
        "Yes, the text has a <think> tag.",
        '{"reason": "It has <|end|> and </think>", "verdict": "no"}',
        "a < b and [1] and </b>",
        "",
    ],
)
def test_a_reply_without_reasoning_stays_as_it_is(reply: str) -> None:
    assert without_reasoning(reply) is reply
    assert answer_start(reply) == 0


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (f"<think>{DRAFT}", "ends in the middle of its reasoning"),
        (f"\ufeff  [THINK]{DRAFT}", "ends in the middle of its reasoning"),
        (f"<think>a</think><think>{DRAFT}", "ends in the middle of its reasoning"),
        (f"{DRAFT}\n<think>hm", "ends in the middle of its reasoning"),
        ("<|channel|>analysis<|message|>hm", "ends in the middle of its reasoning"),
        (f"<think>{DRAFT}</think>", "has reasoning, but no answer after it"),
        (f"{DRAFT}</think>\n \n", "has reasoning, but no answer after it"),
        ("<|channel|>final<|message|><|return|>", "has reasoning, but no answer after it"),
    ],
)
def test_reasoning_without_an_answer_is_named_as_such(reply: str, told: str) -> None:
    with pytest.raises(ReplyError, match=told) as raised:
        without_reasoning(reply)
    assert raised.value.reply == reply


json_objects = st.dictionaries(st.text(), st.text() | st.just("</think>") | st.just("<think>"), max_size=3)


@given(json_objects, st.sampled_from(["", *BLOCKS, *UNOPENED]))
@settings(max_examples=60)
def test_a_reply_that_is_cut_off_anywhere_never_gives_a_value(value: dict[str, Any], block: str) -> None:
    whole = block + json.dumps(value)
    assume(with_latex(whole) == whole)
    assert parse_json(without_reasoning(whole)) == value
    for end in range(len(block), len(whole)):
        with pytest.raises(ReplyError):
            parse_json(without_reasoning(whole[:end]))


@pytest.mark.parametrize("opening", ["", "Here: ", "<think>Hm.</think>"])
@pytest.mark.parametrize(
    "answer",
    [
        "{'reason': 'It says </think> Yes.', 'verdict': 'no'}",
        "{“reason”: “It says </think> Yes.”, “verdict”: “no”}",
        """{"reason": "It says\\' </think> Yes, and $\\alpha$.", "verdict": "no"}""",
        '{reason: "It says </think> Yes.", verdict: "no",}',
        "['It says </think>', 'Yes']",
    ],
)
def test_a_tag_that_an_object_in_any_spelling_quotes_ends_no_reasoning(opening: str, answer: str) -> None:
    if "[" not in answer or not opening.startswith("Here"):
        assert without_reasoning(opening + answer).removeprefix(opening) == answer


@pytest.mark.parametrize("block", [*BLOCKS, *UNOPENED])
@pytest.mark.parametrize("answer", ["B", "It's </think> that\n</think>\nends a block, after [THINK]."])
def test_a_judged_answer_is_split_at_the_end_of_its_first_blocks(block: str, answer: str) -> None:
    reasoning, rest = split_reasoning(block + answer)
    assert rest == answer
    assert DRAFT in reasoning
    assert "think" not in reasoning.casefold()
    assert begins_with_reasoning(block + answer)


@pytest.mark.parametrize(
    "answer",
    [
        "B",
        "",
        "  B\n",
        "Close it with </think>.",
        "Write <think>, then\n</think>\nand the answer.",
        "<p>Hi</p>",
        "Analysis of this: it holds. The assistantfinal token …",
        "analysis: none",
        "A <think>b</think>",
        "It ends so:\n```\nSo B.\n</think>\nB\n```\nB is the answer.",
        "It ends so:\n\n  ~~~text\nSo B.\n  </think>\nB\n  ~~~",
        "It ends so:\n```\nHi.\n```\nor so:\n```\nSo B.\n</think>\nB\n```\n```\nB\n```",
        "Write [THINK], then\n[/THINK]\nand the answer.",
        "Here is my thought process: A, then B.",
        'Write:\n<thought id="1">\nLook.\n</thought>\nThen go on.',
    ],
)
def test_an_answer_that_does_not_begin_with_reasoning_stays_as_it_is(answer: str) -> None:
    assert split_reasoning(answer) == ("", answer)
    assert not begins_with_reasoning(answer)


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("<think>They ask for\n```\nA\n</think>\nB\n```\nSo:</think>B", "B"),
        ("They ask for\n```\nA\n</think>\nB\n```\nSo:\n</think>\nB", "B"),
        ("<think>Draft:\n```\nA\n</think>\n```\nB\n```", "```\nB\n```"),  # which the reasoning left open
        ("Draft:\n```\nA\n</think>\n```\nB\n```", "```\nB\n```"),
        ("<think>Draft:\n```\nA\n</think>\n```\nB", "```\nB"),  # neither is closed, and there is no other tag
        ("<think>```\nA\n```</think>\n```\n<think>B</think>\n```", "```\n<think>B</think>\n```"),
        ("<think>A</think>```\n<think>B</think>\n```", "```\n<think>B</think>\n```"),
    ],
)
def test_a_closing_tag_in_a_code_block_is_quoted(output: str, answer: str) -> None:
    assert split_reasoning(output).answer == answer


def test_an_answer_that_ends_in_its_reasoning_is_blank() -> None:
    assert split_reasoning("<think>So A, or B") == ("So A, or B", "")
    assert split_reasoning("<think>\n\n</think>\n\nHi") == ("", "Hi")
    assert begins_with_reasoning("<think>\n\n</think>\n\nHi")


@pytest.mark.parametrize(
    "text",
    [
        "<think>" * (MAX_REPLY // 7),
        " x<think>" * (MAX_REPLY // 9),
        "</think>" * (MAX_REPLY // 8),
        "<think></think>" * (MAX_REPLY // 15),
        "{}</think>" * (MAX_REPLY // 10),
        '{"a": ' * (MAX_REPLY // 6 - 2) + "</think>",
        '{"</think>' * (MAX_REPLY // 10),
        "{'a':'</think>" * (MAX_REPLY // 14),
        "{'a': //</think>" * (MAX_REPLY // 16),
        "analysis" * (MAX_REPLY // 8),
        "<|channel|>final " * (MAX_REPLY // 17),
        "```\n</think>\n" * (MAX_REPLY // 13),
        "<think>\n```\n</think>\n" * (MAX_REPLY // 21),
        "Here is my thought process:" * (MAX_REPLY // 27),
        "<|start|>assistant" * (MAX_REPLY // 18),
        " " * (MAX_REPLY - 8) + "</think>",
        "\n" * (MAX_REPLY - 8) + "</think>",
    ],
    ids=lambda text: text[:16],
)
@pytest.mark.slow
def test_two_megabytes_of_anything_are_split_without_delay(text: str) -> None:
    started = time.process_time()
    with contextlib.suppress(ReplyError):
        without_reasoning(text)
    split_reasoning(text)
    assert time.process_time() - started < 10


@pytest.mark.parametrize("line", ["\n</think>\n", "\r\n</think>\r\n", "\n  </think> \n", "\n\t[/THINK]\n"])
def test_a_closing_tag_is_a_line_of_its_own_whatever_white_space_is_beside_it(line: str) -> None:
    assert split_reasoning(f"Maybe A.{line}B") == ("Maybe A.", "B")


@pytest.mark.parametrize("text", ["analysis: the word assistantfinal", "analysis of assistantfinal words", "analysis."])
def test_an_answer_that_begins_with_the_word_analysis_is_no_reasoning(text: str) -> None:
    assert split_reasoning(text) == ("", text)


def test_the_last_channel_may_be_json() -> None:
    answer = '{"verdict": "yes"}'
    assert without_reasoning(f"analysis{DRAFT}assistantfinaljson{answer}") == answer
    assert split_reasoning(f"analysis{DRAFT}assistantfinaljson{answer}").answer == answer
