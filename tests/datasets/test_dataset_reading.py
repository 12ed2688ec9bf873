"""What a caller says about a file: its encoding, and the separator of its passages."""

from __future__ import annotations

import gzip
import io
import json
import re
from contextlib import suppress
from encodings.aliases import aliases
from pathlib import Path
from typing import Any

import pytest

from evalstone import check, load
from evalstone._core.files import check_encoding, text_pieces
from evalstone._core.front_ends import COMMAND_LINE
from evalstone.errors import ConfigError, DataError

TEXT = "question,answer,contexts\nWo ist Köln?,In Köln.,Köln ist alt.|Köln ist groß.\n"


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16-le", "utf-8", "mac-roman"])
@pytest.mark.parametrize("zipped", [False, True])
def test_a_file_is_read_in_the_encoding_that_is_named(tmp_path: Path, encoding: str, zipped: bool) -> None:
    path = tmp_path / ("d.csv.gz" if zipped else "d.csv")
    path.write_bytes(gzip.compress(TEXT.encode(encoding)) if zipped else TEXT.encode(encoding))
    (sample,) = load(path, encoding=encoding)
    assert (sample.input, sample.output) == ("Wo ist Köln?", "In Köln.")
    assert check(path, encoding=encoding).encoding == encoding


def test_no_encoding_is_guessed(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(TEXT.encode("cp1252"))
    with pytest.raises(DataError, match=r"not UTF-8: byte 34 \(0xf6, line 2\)"):
        load(path)
    checked = check(path)
    assert (checked.complete, checked.n_problems) == (False, 1)
    assert "not UTF-8" in checked.problems[0].message
    with pytest.raises(DataError, match="not ASCII: byte 34"):
        load(path, encoding="ascii")


def test_a_byte_order_mark_comes_before_the_encoding_that_is_named(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(TEXT.encode("utf-8-sig"))
    (sample,) = load(path, encoding="cp1252")
    assert sample.output == "In Köln."
    assert check(path, encoding="cp1252").encoding == "UTF-8 with a byte order mark"


MISREAD = "the file is UTF-8 but is read as cp1252, which makes Ã¶ of ö; leave the encoding out unless that is right"


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize(
    ("content", "encoding", "notes"),
    [
        (TEXT.encode(), "cp1252", (MISREAD,)),
        (TEXT.encode(), "latin-1", (MISREAD.replace("cp1252", "latin-1"),)),
        (TEXT.encode(), "UTF8", ()),
        (TEXT.encode(), "utf-8-sig", ()),
        (TEXT.encode(), None, ()),
        (TEXT.encode("utf-8-sig"), "cp1252", ()),
        (TEXT.encode("cp1252"), "cp1252", ()),
        (TEXT.encode("utf-16-le"), "utf-16-le", ()),
        ("output\n漢".encode("utf-16-le"), "utf-16-le", ()),
        (b"output\nplain\n", "cp1252", ()),
        (TEXT.encode() + "ö,ö,ö".encode("cp1252"), "cp1252", ()),
        (b"output\nK\xc3\xb6ln \xc3", "cp1252", ()),
        (b"output\n" + b"a" * 65_528 + "ö\n".encode(), "cp1252", (MISREAD,)),
    ],
)
def test_a_file_in_utf_8_that_is_read_in_another_encoding_is_noticed(
    tmp_path: Path, content: bytes, encoding: str | None, notes: tuple[str, ...], zipped: bool
) -> None:
    path = tmp_path / ("d.csv.gz" if zipped else "d.csv")
    path.write_bytes(gzip.compress(content) if zipped else content)
    assert load(path, encoding=encoding).notes == check(path, encoding=encoding).remarks == notes


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("output\nKöln Á\n".encode(), r"not CP1252: byte 15 \(0x81, line 2\), but UTF-8; leave the encoding out$"),
        (b"output\n" + b"a" * 70_000 + "Á\n".encode(), r"0x81, line 2\), but UTF-8; leave the encoding out$"),
        (b"output\nK\xf6ln \x81\n", r"0x81, line 2\); save the file as UTF-8$"),
        (b"output\nKoeln \x81\n", r"0x81, line 2\); save the file as UTF-8$"),
    ],
)
def test_a_file_in_utf_8_with_bytes_that_the_named_encoding_lacks_is_noticed(
    tmp_path: Path, content: bytes, error: str
) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=error):
        load(path, encoding="cp1252")


def test_each_of_several_files_in_utf_8_is_named(tmp_path: Path) -> None:
    for name, encoding in (("a.csv", "utf-8"), ("b.csv", "cp1252"), ("c.csv", "utf-8")):
        (tmp_path / name).write_bytes(TEXT.encode(encoding))
    noted = load(tmp_path / "*.csv", encoding="cp1252").notes
    assert noted == tuple(MISREAD.replace("the file", name) for name in ("a.csv", "c.csv"))


def test_traces_in_utf_8_that_are_read_in_another_encoding_are_noticed(tmp_path: Path) -> None:
    said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Köln?"}]}])
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": said, "city": "Köln"}
    span = {"traceId": "1" * 32, "spanId": "2" * 16, "name": "chat", "startTimeUnixNano": 1, "attributes": attributes}
    path = tmp_path / "d.jsonl"
    path.write_text(json.dumps(span, ensure_ascii=False), encoding="utf-8")
    for notes in (load(path, encoding="cp1252").notes, check(path, encoding="cp1252").remarks):
        assert notes.count(MISREAD) == 1


@pytest.mark.parametrize("encoding", ["nope", "hex", "", 5])
def test_an_unknown_encoding_is_refused(tmp_path: Path, encoding: Any) -> None:
    path = tmp_path / "d.csv"
    path.write_text(TEXT)
    for read in (load, check):
        with pytest.raises(ConfigError, match="encoding must be the name of an encoding, such as cp1252, not"):
            read(path, encoding=encoding)


@pytest.mark.parametrize("source", ["-", [{"output": "a"}], "os:environ"])
def test_only_files_have_an_encoding(source: Any) -> None:
    for read in (load, check):
        with pytest.raises(ConfigError, match="encoding is for files"):
            read(source, encoding="cp1252")


@pytest.mark.parametrize(
    ("cell", "passages"),
    [
        ("a|b", ("a", "b")),
        ("['a', 'b|c", ("['a', 'b", "c")),
        ("a| |", ("a",)),
        (["a|b", "c"], ("a|b", "c")),
        ("['a', 'b']", ("['a', 'b']",)),
    ],
)
def test_a_text_is_split_at_the_separator_and_a_list_is_read_as_it_is(cell: Any, passages: tuple[str, ...]) -> None:
    (sample,) = load([{"output": "x", "docs": cell}], map={"context": "docs"}, split={"context": "|"})
    assert sample.context == passages


def test_every_column_of_the_context_is_split() -> None:
    rows = [{"output": "x", "one": "a|b", "two": ["c", "d|e"]}]
    (sample,) = load(rows, map={"context": ["one", "two"]}, split={"context": "|"})
    assert sample.context == ("a", "b", "c", "d|e")


def test_passages_that_deepeval_joined_can_be_split() -> None:
    row = {"input": "q", "actual_output": "a", "expected_output": "r", "retrieval_context": "p|q", "context": "i"}
    row |= {"source_file": "f"}
    with pytest.raises(DataError, match="DeepEval joins passages"):
        load([row])
    assert load([row], split={"context": "|"}).samples[0].context == ("p", "q")


@pytest.mark.parametrize(
    ("split", "problem"),
    [
        ({"output": "|"}, "split is for context, whose passages are a list, not for 'output'"),
        ({"context": ""}, "split must be a table with the separator of the context"),
        ("|", "split must be a table with the separator of the context"),
    ],
)
def test_other_separators_are_refused(split: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        load([{"output": "a"}], split=split)


ZURICH = "output\nIn Zürich.\n"


@pytest.mark.parametrize(
    ("content", "encoding", "problem"),
    [
        (ZURICH.encode("cp1252"), None, r"line 2\); save the file as UTF-8, or name its encoding, such as --encoding "
         r"cp1252$"),
        (ZURICH.encode() + ZURICH.encode("cp1252"), None, r"line 4\); save the file as UTF-8$"),
        (b"output\n\xc3\xbc" + b"a" * 70_000 + b"\xfc", None, r"line 2\); save the file as UTF-8$"),
        (ZURICH.encode("utf-8-sig") + b"\xfc", None, r"line 3\); save the file as UTF-8$"),
        (ZURICH.encode(), "ascii", r"not ASCII: byte 12 \(0xc3, line 2\), but UTF-8; leave the encoding out$"),
        (ZURICH.encode("utf-16-le"), "utf-16", r"not UTF-16 \(.*BOM\); save the file as UTF-8$"),
        (ZURICH.encode("utf-16-le"), None, r"^NUL character in line 1: a binary file, or UTF-16 without a byte order "
         "mark; if it is that: --encoding utf-16-le$"),
        ("Köln\x80\n".encode("utf-16-le"), None, "^NUL character in line 1:"),
    ],
)  # fmt: skip
def test_a_file_in_another_encoding_says_how_to_name_it(
    tmp_path: Path, content: bytes, encoding: str | None, problem: str
) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(content)
    (only,) = check(path, encoding=encoding).problems
    assert re.search(problem, only.error.text(COMMAND_LINE))


def test_every_encoding_of_python_reads_a_text_or_refuses_it() -> None:
    """Codecs raise errors of several types, and some have no state."""
    contents = (
        ZURICH.encode(),
        ZURICH.encode("utf-16"),
        "東京".encode("cp932") * 50_000,
        b"+AOk-\\ud800\xff\x1b$B" * 9,
    )
    for name in sorted({*aliases.values(), "utf-8-sig", "idna", "undefined", "unicode_escape"}):
        try:
            check_encoding(name)
        except ConfigError:
            continue
        for content in contents:
            with suppress(DataError):
                assert "".join(text_pieces(io.BytesIO(content), encoding=name))
