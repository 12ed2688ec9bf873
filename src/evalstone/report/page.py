"""The shell of an HTML page: one file that opens offline, loads nothing, and runs no script but its own.

Judged text comes into it in two ways: escaped as text, and as JSON in blocks that no browser executes. A content
security policy by hashes forbids every other script, style, picture, form and connection.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from evalstone._core.json import to_jsonable
from evalstone.datasets.writing import write_text

_CLOSING = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
# What turns the direction of a line, hides in it, or cannot be seen; line breaks and tabs stay.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def asset(name: str) -> str:
    """A style sheet or a script of the pages."""
    return resources.files("evalstone.report").joinpath("assets", name).read_text(encoding="utf-8")


def seen(text: str) -> str:
    """Text with control, direction and invisible characters written as `\\u202e`; line breaks and tabs stay."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def escaped(text: object) -> str:
    """Judged text for the inside of an element or of a quoted attribute."""
    return html.escape(seen(str(text)))


def json_block(name: str, value: Any) -> str:
    """A value as a block of JSON that a script reads and no browser executes, whatever text it holds."""
    text = json.dumps(to_jsonable(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    safe = _CLOSING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return f'<script type="application/json" id="{name}">{safe}</script>\n'


def page(title: str, body: Iterable[str], *, script: str = "") -> Iterator[str]:
    """A whole page in pieces. body: HTML, in which judged text is escaped already. script: the name of an asset."""
    style, code = asset("page.css"), asset(script) if script else ""
    allowed = f"style-src '{_hash(style)}'; script-src {_quoted(code)}"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{escaped(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
    )
    yield from body
    yield (f"<script>{code}</script>\n" if code else "") + "</body>\n</html>\n"


def _quoted(code: str) -> str:
    return f"'{_hash(code)}'" if code else "'none'"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def write_page(path: str | Path, parts: Iterable[str]) -> Path:
    """Write a page, whole or not at all. Raises ConfigError when it cannot be written."""
    write_text(path, parts)
    return Path(path)
