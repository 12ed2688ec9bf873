"""How the lexical judge reads numbers: words, ordinals, fractions and dates as the same tokens as digits."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone import Record, score
from evalstone.judges.lexical.normalization import comparable
from evalstone.judges.lexical.numbers import figures, shown

pytestmark = pytest.mark.slow


def tokens(text: str) -> str:
    return " ".join(token.lower() for token in comparable(text))


def numbers(text: str) -> list[str]:
    return list(figures(tokens(text).split()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,250.50", ["1250.5"]),
        ("the 3rd and the third", ["3"]),
        ("forty-two", ["42"]),
        ("the twenty-first of the 42nd", ["21", "42"]),
        ("1.5 million people", ["1500000"]),
        ("$2.5bn", ["2500000000"]),
        ("$5M, $5m, $5 million, US$5 million, 5 million dollars", ["5000000"]),
        ("€50k, 50K, 50,000 EUR, EUR 50,000", ["50000"]),
        ("$1.2B or 1.2bn or 1,200 million", ["1200000000"]),
        ("7B, 330m", ["7000000000", "330"]),
        ("1.234,56 and 1,234.56", ["1234.56"]),
        ("1.234.567,8", ["1234567.8"]),
        ("1,2,3", ["1", "2", "3"]),
        (".5 percent, a rate of 0.5, 3.5.", ["0.5", "3.5"]),
        ("10\u00a0000, 10\u202f000, 10\u2009000", ["10000"]),
        ("10\u00a0000\u00a0000, 10\u00a00000", ["10000000", "10", "0"]),
        ("two hundred and fifty thousand", ["250000"]),
        ("one million two hundred thousand and five", ["1200005"]),
        ("between one hundred and two hundred", ["100", "200"]),
        ("a hundred, a dozen, three dozen", ["100", "12", "36"]),
        ("ten to twenty", ["10", "20"]),
        ("the thirtieth, the fortieth and the ninety-first", ["30", "40", "91"]),
        ("3 hundred, 2 dozen", ["300", "24"]),
        ("nineteen eighty-four", ["19", "84"]),
        ("50% or fifty percent or 60 per cent", ["50", "60"]),
        ("in the 1990s, B12", ["1990"]),
        ("in 2000 five ships sank", ["2000", "5"]),
        ("007, 0.50", ["7", "0.5"]),
        ("version 1.2.3", ["1", "2", "3"]),
        ("two thirds, 2/3, one-fifth, three quarters", ["0.667", "0.2", "0.75"]),
        ("open at 5:30 PM", ["17h30"]),
        ("the 19th century, the nineteenth-century house", ["19cy"]),
        ("the 18th and 19th centuries, the twenty-first century", ["18cy", "19cy", "21cy"]),
        ("two centuries, 3 centuries", ["2", "3"]),
        ("twice a day, thrice", ["2", "3"]),
        ("once a day, once weekly", ["1"]),
        ("once he came; at once; once upon a time", []),
        ("5kg, 12 km, 20C", ["5", "12", "20"]),
        ("٢", ["2"]),
        ("no number", []),
    ],
)
def test_numbers_are_read_as_plain_figures(text: str, expected: list[str]):
    assert numbers(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "March 3, 2021",
        "3 March 2021",
        "3rd of March 2021",
        "March 3rd 2021",
        "Mar. 3, 2021",
        "2021-03-03",
        "2021/3/3",
        "03.03.2021",
        "03/03/2021",
        "the third of March 2021",
        "2021年3月3日",
        "二〇二一年三月三日",
        "二零二一年3月3号",
    ],
)
def test_a_date_is_day_month_and_year_however_it_is_written(text: str):
    assert numbers(text) == ["3", "3mo", "2021"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12/31/2020 and 31/12/2020", ["31", "12mo", "2020"]),
        ("3/4/2021", ["3", "4", "2021"]),
        ("2021-13-45", ["2021", "13", "45"]),
        ("from April to July", ["4mo", "7mo"]),
        ("In May it rains", ["5mo"]),
        ("born may 3, 1990", ["3", "5mo", "1990"]),
        ("You may go, it may rain. They march. An august body.", []),
        ("May we go? March on!", []),
        ("Jan met Dec", []),
    ],
)
def test_months_are_told_from_other_words_by_what_stands_beside_them(text: str, expected: list[str]):
    assert numbers(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Earth has one moon", ["1"]),
        ("number one, chapter one is short", ["1"]),
        ("no one knows the one who did that one", []),
        ("one of them, one can say", []),
        ("the second planet, a second chance", ["2"]),
        ("per second, a split second, 30 second clips; it takes a second", ["30"]),
        ("a third of the staff", ["0.333"]),
        ("sales rose by a third.", ["0.333"]),
        ("a third man", ["3"]),
        ("the first president, at first; first of all", ["1"]),
        ("First, mix the flour", []),
        ("one another, one example", []),
        ("a quarter of the staff", ["0.25"]),
        ("the quarter", []),
    ],
)
def test_words_that_are_numbers_only_at_times_count_only_then(text: str, expected: list[str]):
    assert numbers(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("三颗卫星", ["3"]),
        ("第四颗", ["4"]),
        ("第一", ["1"]),
        ("十二个人", ["12"]),
        ("两百二十一米", ["221"]),
        ("三万五千人", ["35000"]),
        ("百分之五十的人", ["50"]),
        ("二〇〇八", ["2008"]),
        ("十分钟", ["10"]),
        ("5月", ["5mo"]),
        ("一些人十分高兴，万一下雨，千万不要去四川", []),
        ("七八个人", []),
    ],
)
def test_chinese_numerals_are_numbers_where_they_count_something(text: str, expected: list[str]):
    assert numbers(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("About two million People live in 3 Cities", "about 2000000 people live in 3 cities"),
        ("the 3rd of March", "the 3 of 3mo"),
    ],
)
def test_other_words_stay_in_their_places(text: str, expected: str):
    assert tokens(text) == expected
    assert comparable("Ada: Three Cats") == ["Ada", "3", "Cats"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5kg or 5 kilos", "5 kilogram or 5 kilogram"),
        ("330 metres, 6 ft, 30 min", "330 meter 6 foot 30 minute"),
        ("5 days of 3 hours", "5 day of 3 hours"),
        ("330m in metres, a min, its feet", "330m in metres a min its feet"),
        ("sold 5xb and B12cm", "sold 5xb and b12cm"),
        ("$5, 5 dollars, USD 5, 5 USD, US$5, 5$", "5 dollar 5 dollars 5 dollar 5 dollar 5 dollar 5 dollar"),
        ("€5, 5 €, £5, ¥5", "5 euro 5 euro 5 pound 5 yen"),
        ("$5 million, $5-million, $5m", "5000000 dollar 5000000 dollar 5000000 dollar"),
        ("$5 mothers, A$5k", "5 dollar mothers 5000 dollar"),
        ("50 km/h, 50 kilometres per hour, 50 kph", "50 kmh 50 kmh 50 kmh"),
        ("50 mi/h, 50 miles an hour, 50 mph, an hour", "50 mph 50 mph 50 mph an hour"),
        ("50 Kilometers per hour", "50 kmh"),
        ("50 KM/H", "50 kmh"),
        ("20 °C, 20°F, 90°", "20 degrees celsius 20 degrees fahrenheit 90 degrees"),
        ("5MB, 50Hz, 10 kW, 5µg, iPhone", "5 megabyte 50 hertz 10 kilowatt 5 microgram iphone"),
        ("-5 and −5 and (-.5), 5-10, 5 - 10, 5 -10, F-35", "minus 5 and minus 5 and minus 0.5 5 10 5 10 5 10 f 35"),
        ("no more than 5, Not fewer than 5, not more", "at most 5 at least 5 not more"),
    ],
)
def test_a_unit_after_a_number_has_one_spelling(text: str, expected: str):
    assert tokens(text) == expected


def test_a_year_in_the_century_of_its_sentence_is_not_mentioned_rather_than_contradicted():
    found, _ = checked("The house was built in 1889.", "The house was built in the 19th century.")
    assert found.value == 0
    assert found.calls[1].answer[0]["verdict"] == "not_mentioned"


def test_a_month_and_a_century_are_named_in_reasons():
    assert shown("19cy") == "century 19"
    assert (shown("5mo"), shown("17h30"), shown("12"), shown("promo")) == ("May", "17:30", "12", "promo")


def checked(output: str, context: str) -> tuple[Record, Record]:
    sample = {"input": "What is it?", "output": output, "context": [context]}
    return score("faithfulness", sample, ledger=None), score("fact_check", sample, ledger=None)


MOONS = "Mars has three moons."
EARTH = "The Earth is the third planet from the Sun and the only astronomical object known to harbor life."
DIFFERENT = [
    ("The house was built in the 19th century.", "The house was built in the 18th century."),
    ("The house was built in the 19th century.", "The house was built in 1789."),
    ("Take the pill three times a day.", "Take the pill twice a day."),
    ("Mars has five moons.", MOONS),
    ("Mars has 5 moons.", MOONS),
    ("Mars has two moons.", "Mars has one moon."),
    ("Mars has one moon.", MOONS),
    ("The Earth is the fourth planet from the Sun.", EARTH),
    ("The Earth is the 4th planet from the Sun.", EARTH),
    ("The Earth is the 4th planet from the Sun.", "The Earth is the 3rd planet from the Sun."),
    ("Returns are accepted within ten days.", "Returns are accepted within five days."),
    ("The shop has one hundred chairs.", "The shop has two hundred chairs."),
    ("It costs twenty-one dollars.", "It costs twenty-two dollars."),
    ("About fifty percent of the staff agreed.", "About sixty percent of the staff agreed."),
    ("A third of the staff agreed.", "A quarter of the staff agreed."),
    ("The treaty was signed on March 3, 2021.", "The treaty was signed on March 4, 2021."),
    ("The treaty was signed on March 3, 2021.", "The treaty was signed on 3 April 2021."),
    ("The treaty was signed on March 3, 2021.", "The treaty was signed on 2022-03-03."),
    ("The park opens in May.", "The park opens in April."),
    ("火星有五颗卫星。", "火星有三颗卫星。"),
    ("地球是第四颗行星。", "地球是第三颗行星。"),
    ("这家店有十二名员工。", "这家店有二十名员工。"),
    ("百分之三十的人同意。", "百分之五十的人同意。"),
    ("合同于2021年3月3日签署。", "合同于2021年4月3日签署。"),
]
EQUAL = [
    ("The house was built in the 19th century.", "The house was built in 1889."),
    ("The house was built in the nineteenth century.", "The house was built in the 19th century."),
    ("Take the pill two times a day.", "Take the pill twice a day."),
    ("Take the pill one time a day.", "Take the pill once a day."),
    ("The tower is 330 m tall.", "The tower is 330 metres tall."),
    ("The tower is 330 meters tall.", "The tower is 330 m tall."),
    ("The bag weighs 5 kilograms.", "The bag weighs 5kg."),
    (MOONS, MOONS),
    ("Mars has 3 moons.", MOONS),
    (MOONS, "Mars has 3 moons."),
    ("The Earth is the third planet from the Sun.", EARTH),
    ("The Earth is the 3rd planet from the Sun.", EARTH),
    ("One study found that 5 patients improved.", "A study of 2019 found that 5 patients improved."),
    ("First, mix the flour with 2 eggs.", "Mix the flour with 2 eggs, then wait 3 hours."),
    ("Returns are accepted within 10 days.", "Returns are accepted within ten days."),
    ("About two million people live here.", "About 2,000,000 people live here."),
    ("About fifty percent of the staff agreed.", "About 50% of the staff agreed."),
    ("A third of the staff agreed.", "One third of the staff agreed."),
    ("He is the one who wrote it.", "He is the one who wrote it."),
    ("The treaty was signed on March 3, 2021.", "The treaty was signed on 3 March 2021."),
    ("The treaty was signed on March 3, 2021.", "The treaty was signed on 2021-03-03."),
    ("The treaty was signed in March 2021.", "The treaty was signed on 2021-03-03."),
    ("火星有3颗卫星。", "火星有三颗卫星。"),
    ("合同于2021年3月3日签署。", "合同于二〇二一年三月三日签署。"),
]


@pytest.mark.parametrize(("output", "context"), DIFFERENT)
def test_another_number_is_not_supported(output: str, context: str):
    faithfulness, fact_check = checked(output, context)
    assert faithfulness.value == 0
    assert fact_check.value is not None
    assert fact_check.value < 0.5


@pytest.mark.parametrize(("output", "context"), EQUAL)
def test_the_same_number_in_another_form_is_supported(output: str, context: str):
    faithfulness, fact_check = checked(output, context)
    assert faithfulness.value == 1
    assert fact_check.value is not None
    assert fact_check.value > 0.5


@given(
    st.text(),
    st.text(alphabet="one two three hundred million and second third of a May march 3 0.,-/:%一二十百千万年月日第"),
)
def test_any_text_has_numbers_and_reading_its_tokens_again_changes_no_number(text: str, other: str):
    for each in (text, other):
        assert all(comparable(each)) or not comparable(each)
        assert all(numbers(each)) or not numbers(each)


LONG = 300_000
HOSTILE = {
    "number words": "hundred million and " * (LONG // 20),
    "ones": "one " * (LONG // 4),
    "months": "May March " * (LONG // 10),
    "billions": "2bn " * (LONG // 4),
    "digits": "9" * LONG,
    "dates": "2021-03-" * (LONG // 8),
    "slashes": "1/" * (LONG // 2),
    "Chinese numerals": "三" * LONG,
    "Chinese units": "十百千万亿" * (LONG // 5),
    "Chinese dates": "3月" * (LONG // 2),
    "units": "5kg 3 m " * (LONG // 8),
    "joined units": "5kg" * (LONG // 3),
    "separators": "1," * (LONG // 2),
    "centuries": "19th and " * (LONG // 9) + "20th centuries",
    "times": "once a twice " * (LONG // 13),
    "percent signs": "%" * LONG,
    "noise": "".join(random.Random(0).choices("1 .,/-%三十月一年第 aone", k=LONG)),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_long_hostile_text_takes_seconds_at_most(kind: str):
    started = time.process_time()
    numbers(HOSTILE[kind])
    assert time.process_time() - started < 6
