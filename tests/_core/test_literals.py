from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone._core.literals import written_list, written_value
from evalstone.errors import DataError

pytestmark = pytest.mark.slow

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.lists(VALUES) | st.dictionaries(st.text(), VALUES))
def test_what_json_and_python_print_is_read(value: Any):
    assert written_value(json.dumps(value)) == value
    assert written_value(f" {value!r}\n") == value


@given(st.lists(st.text()))
def test_a_tuple_is_a_list(texts: list[str]):
    assert written_value(repr(tuple(texts))) == texts


@given(st.lists(st.text(), min_size=2))
def test_what_numpy_prints_is_never_joined(texts: list[str]):
    assert written_value(f"[{' '.join(map(repr, texts))}]") == texts
    with pytest.raises(DataError, match=r"with commas \(numpy"):
        written_value(f"[{' '.join(map(repr, texts))}, 'a']")


@given(st.lists(st.text(min_size=1), min_size=1), st.data())
def test_a_list_that_is_cut_off_is_refused(texts: list[str], data: st.DataObject):
    for whole in (json.dumps(texts), repr(texts)):
        end = data.draw(st.integers(2, len(whole) - 1))
        with pytest.raises(DataError, match="complete list"):
            written_value(whole[:end])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("['a', nan, None]", ["a", None, None]),
        ('["a", NaN]', ["a", None]),
        ("[('a', 1), ('b', -2.5e3)]", [["a", 1], ["b", -2500.0]]),
        ("{7: 2, 'b': True, 8.5: None}", {"7": 2, "b": True, "8.5": None}),
        ("['a',\n 'b',]", ["a", "b"]),
        ("()", []),
        ("[['a' 'b']\n ['c' 'd']]", [["a", "b"], ["c", "d"]]),
        ("[{'a': 1}\n {'a': 2}]", [{"a": 1}, {"a": 2}]),
        ("['f(x)' None]", ["f(x)", None]),
        ("array(['a', 'b'], dtype=object)", ["a", "b"]),
        ("[array(['a'], dtype='<U1'), np.array([])]", [["a"], []]),
        ("pd.Index(['a'])", ["a"]),
        ("Index(['a', 'b'], dtype='object')", ["a", "b"]),
        ("deque(['a'], maxlen=3)", ["a"]),
        ("dict_keys(['a'])", ["a"]),
        ("[np.str_('a'), np.float64(0.5)]", ["a", 0.5]),
        ("['a', Timestamp('2020-01-01')]", ["a", "2020-01-01"]),
        ("[{'at': datetime.date(2020, 1, 2)}]", [{"at": "2020-01-02"}]),
        (
            "[Document(metadata={'page': 1}, page_content=\"it's\")]",
            [{"metadata": {"page": 1}, "page_content": "it's"}],
        ),
        ("page_content='a\nb' metadata={'k': None}", {"page_content": "a\nb", "metadata": {"k": None}}),
        ("page_content='a'", {"page_content": "a"}),
        (
            "[NodeWithScore(node=TextNode(relationships={<NodeRelationship.SOURCE: '1'>: None}, text='a'), score=0.5)]",
            [{"node": {"relationships": {"1": None}, "text": "a"}, "score": 0.5}],
        ),
        ("{'a': [Row(text='b')]}", {"a": [{"text": "b"}]}),
    ],
)
def test_python_literals(text: str, value: Any):
    assert written_value(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *("[1] Smith et al. found it.", "[1, 2] show it.", "[ERROR] The disk is full.", "[redacted]", "[sic]"),
        *(
            "[a link](https://a.b)",
            '["A title"](https://a.b)',
            "[Field(default=1)](https://a.b)",
            "[[a page]] of a wiki",
        ),
        *("[Note: it has moved]", '["Smith" 2020] found it.', '["A", "B"] are the choices.', "['90s music] isn't new."),
        *('("Hi," she said.)', '("Agreement", the contract) is void.', "('a')", "(see [1], [2])", "(x, y)"),
        *(
            "{name} is a placeholder",
            '{"a": 1} is the reply.',
            "{",
            "(",
            "{p1,p2}",
            "[x, y] = f(a)[1]",
            "[sic, he said",
            "{,}",
            "(,)",
            "{:}",
        ),
        *("print('a')", "Document(s) and more", "array of texts", "a <b at 0x12> c", "None of it.", "1    p", ""),
        *(
            "42",
            "true",
            '"a"',
            "[[“A” and B]]",
            '[["A" and B',
            "2 columns have dtype: object",
            "1  dtype: object is one",
        ),
    ],
)
def test_prose_stays_text(text: str):
    assert written_list(text) == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("['a' ... 'b']", "with commas"),
        ("['a' 'b', 'c']", "with commas"),
        ("['a''b']", "with commas"),
        ("('a' 'b')", "with commas"),
        ("array(['a', ..., 'b'], dtype=object)", "not objects"),
        ("array(['a'], ['b'])", "not objects"),
        ("page_content='It's' metadata={}", "not objects"),
        ("page_content='C:\\new' metadata={}", "not objects"),
        ("page_content='a' metadata={}\npage_content='b' metadata={}", "must be one list"),
        ("[Document(page_content=text)]", "not objects as Python prints them"),
        ("[Document('a')]", "not objects as Python prints them"),
        ("[{'at': datetime.date(2020, 13, 1)}]", "without objects"),
        ("['a', 'it's']", "complete list"),
        ("[{'a': 'b'", "complete list"),
        ("('a', 'b']", "complete list"),
        ("('a']", "complete list"),
        ("('a', ", "complete list"),
        ("('a', \"b", "complete list"),
        ("(('a',), ('b'", "complete list"),
        ("[1, 2", "complete list"),
        ("[1 2]", "complete list"),
        ("[1 2 ... 8 9]", "complete list"),
        ("[1, 2,, 3]", "complete list"),
        ("[,]", "complete list"),
        ("[None, 'a'", "complete list"),
        ("[nan,\n 'a'", "complete list"),
        ('[null, "a"', "complete list"),
        ('[NaN, "a"', "complete list"),
        ('["a"] ["b"]', "must be one list, but ' [\"b\"]' follows its end"),
        ('["a"], ["b"]', "must be one list"),
        ('{"a": 1}\n{"a": 2}', "must be one list"),
        ("['a'], 'b'", "must be one list"),
        ('{"a","b c"}', "not a set"),
        ("{'a'}", "not a set"),
        ("[a b, c d]", "in quotes (Spark"),
        ("[“a”, “b”]", "in quotes"),
        ("[b'a']", "not objects"),
        ("[<Document object at 0x7f00>]", "not objects"),
        ("<list_iterator object at 0x7f00>", "not objects"),
        ("0    a\n1    b\nName: contexts, dtype: object", "not objects"),
        (" Series(['a'])", "not objects"),
        ("tensor([1, 2])", "not objects"),
        ("HumanMessage(content='a')", "not objects"),
        ("[Document()]", "not objects"),
        ("{'a': Decimal('1')}", "without objects"),
        ("('a', Decimal('1'))", "without objects"),
        ("[('a', 1), (date(2020, 1, 1), 2)]", "without objects"),
        ("['a', b'b']", "without objects"),
        ("NaN", "must be empty"),
        ("null", "must be empty"),
        ("<NA>", "must be empty"),
        ("NaT", "must be empty"),
        ("nan", "must be empty if it is missing, not the text 'nan'"),
        (" None ", "must be empty"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_neither_a_list_nor_prose_is_refused(text: str, problem: str):
    with pytest.raises(DataError) as caught:
        written_list(text)
    assert problem in str(caught.value)


@pytest.mark.parametrize("text", ["{'b', 'a'}", '{"a", "b",}', "set(['a', 'b'])", "frozenset({'a', 'b'})"])
def test_a_set_is_read_only_where_no_order_is_needed(text: str):
    assert written_value(text, sets=True) == {"a", "b"}
    with pytest.raises(DataError, match="not a set, which has no order"):
        written_value(text)


def test_the_error_says_what_to_do():
    with pytest.raises(DataError) as caught:
        written_list("['a', 'b")
    hint = 'save lists as JSON, and a text that begins like a list as ["…"]'
    assert str(caught.value).startswith("must be a complete")
    assert str(caught.value).endswith(f"""{"['a', 'b"!r}; {hint}""")
