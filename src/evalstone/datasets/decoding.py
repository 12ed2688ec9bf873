"""Bytes of a data file as text."""

from __future__ import annotations

import codecs
import gzip
import zlib

from evalstone.datasets.wording import escaped
from evalstone.errors import DataError

# UTF-32 before UTF-16: the little-endian mark of the one begins with the mark of the other.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def unzipped(data: bytes) -> bytes:
    """What a gzip file holds. Raises DataError when it is none, or is cut off."""
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"not a whole gzip file ({escaped(error)})") from None


def decoded(data: bytes) -> str:
    """The text: UTF-8 with or without a byte order mark, UTF-16 or UTF-32 with one.

    Raises DataError naming the first byte that is not text, and for NUL characters.
    """
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        # The utf-8-sig decoder counts from behind the mark.
        start = error.start + (len(codecs.BOM_UTF8) if encoding == "utf-8-sig" else 0)
        line = data.count(b"\n", 0, start) + 1
        came = data[start : start + 1].hex()
        raise DataError(
            f"not {encoding.removesuffix('-sig').upper()}: byte {start + 1} (0x{came}, line {line}) is no text; "
            "save the file as UTF-8"
        ) from None
    nul = text.find("\0")
    if nul >= 0:
        line = text.count("\n", 0, nul) + 1
        raise DataError(f"NUL character in line {line}: a binary file, or UTF-16 without a byte order mark")
    return text
