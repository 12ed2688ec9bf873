"""Negations in scripts without spaces: a copy of a sentence with one more of them isn't supported by it."""

from __future__ import annotations

import pytest

from evalstone import score
from evalstone.judges.lexical.spaceless_negations import with_negations_apart

PAIRS = [
    ("狗允许入内。", "狗不允许入内。"),
    ("允許攜帶寵物。", "不允許攜帶寵物。"),
    ("餐厅有早餐。", "餐厅没有早餐。"),
    ("他是医生。", "他不是医生。"),
    ("退款可以在5天内申请。", "退款不可以在5天内申请。"),
    ("酒店允许携带宠物入住。", "酒店并非允许携带宠物入住。"),
    ("入场费收取。", "入场费未收取。"),
    ("犬は入場できます。", "犬は入場できません。"),
    ("犬は入場できる。", "犬は入場できない。"),
    ("彼は医者です。", "彼は医者ではありません。"),
    ("彼は医者だ。", "彼は医者じゃない。"),
    ("朝食があります。", "朝食がありません。"),
    ("朝食がありました。", "朝食がありませんでした。"),
    ("彼は行く。", "彼は行かない。"),
    ("彼は運転する。", "彼は運転しない。"),
    ("駐車場がある。", "駐車場がない。"),
    ("部屋は高い。", "部屋は高くない。"),
    ("彼は食べた。", "彼は食べなかった。"),
    ("สุนัขเข้าได้", "สุนัขเข้าไม่ได้"),
]
FAITHFULNESS, FACT_CHECK = "faithfulness", "fact_check"


def value(scorer: str, claim: str, *context: str) -> float:
    found = score(scorer, output=claim, context=context).value
    assert found is not None
    return found


@pytest.mark.parametrize(("claim", "other"), [*PAIRS, *((other, claim) for claim, other in PAIRS)])
def test_a_copy_with_another_negation_is_not_supported_and_one_with_the_same_is(claim: str, other: str) -> None:
    assert (value(FAITHFULNESS, claim, other), value(FAITHFULNESS, claim, claim)) == (0, 1)
    assert value(FACT_CHECK, claim, other) <= 0.2 < 0.5 < value(FACT_CHECK, claim, claim)
    assert value(FAITHFULNESS, claim, other, claim) == 1


def test_the_sentence_may_be_one_of_several() -> None:
    passage = "这家酒店位于北京市中心，靠近地铁站。酒店不允许携带宠物入住。早餐不收费。"
    claims = ("酒店不允许携带宠物入住。", "早餐不收费。", "酒店位于北京市中心。")
    assert [value(FAITHFULNESS, claim, passage) for claim in claims] == [1, 1, 1]
    assert [value(FAITHFULNESS, claim.replace("不", ""), passage) for claim in claims[:2]] == [0, 0]


@pytest.mark.parametrize(
    "text",
    ["两个城市不同", "他不仅会唱歌", "不过他来了", "差不多三年", "未来三年", "无论如何", "料金は少ない", "abc", "不"],
)
def test_words_that_only_contain_the_sign_of_a_negation_stay(text: str) -> None:
    assert with_negations_apart(text) == text


@pytest.mark.parametrize(
    ("text", "apart"),
    [
        ("我不得不走", "我得走 不  不 "),
        ("不超过5天。不收费", "超过 不 5天。收费 不 "),
        ("The sign 不要 means no.", "The sign 要 不  means no."),
        ("飲みませんでした", "飲みました 不 "),
    ],
)
def test_negations_follow_their_run_of_characters(text: str, apart: str) -> None:
    assert with_negations_apart(text) == apart
