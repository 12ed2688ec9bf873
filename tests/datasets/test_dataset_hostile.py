from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalstone.datasets import FIELD_NAMES, load
from evalstone.errors import ConfigError

WORDS = [name for ranks in FIELD_NAMES.values() for rank in ranks for name in rank]
KEYS = st.sampled_from(
    [
        *WORDS,
        *["role", "content", "type", "text", "parts", "tool_calls", "function", "name", "arguments", "toolInvocation"],
        *["choices", "message", "format", "state", "tool_call_id", "inputMessages", "systemMessages", "from", "value"],
    ]
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=4),
    st.sampled_from(["user", "assistant", "tool", "text", "tool_use", "tool_result", "tool-call", "human", "['a']"]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)
SUFFIXES = ["json", "jsonl", "csv", "tsv", "jsonl.gz", "parquet"]


def read_or_refused(source: Any) -> bool:
    try:
        return len(load(source)) > 0
    except ConfigError as error:
        return str(error).isprintable()


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=5), max_size=3))
@pytest.mark.slow
def test_any_row_is_read_or_refused_in_one_sentence(rows: list[dict[str, Any]]) -> None:
    assert read_or_refused(rows)


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=300, deadline=None)
@given(data=st.one_of(st.binary(max_size=60), st.text('[]{}",:input\n\r\t;\\ ', max_size=60).map(str.encode)))
def test_any_file_is_read_or_refused_in_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / f"any.{suffix}"
    path.write_bytes(data)
    assert read_or_refused(path)
