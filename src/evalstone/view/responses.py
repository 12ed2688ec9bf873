"""What a route answers with: a page, its data, a file, or an error in words."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeVar

from evalstone._core.front_ends import COMMAND_LINE
from evalstone._core.json import finite_constant
from evalstone._core.redaction import redacted
from evalstone.errors import ConfigError, EvalstoneError
from evalstone.report.html import OF_ONE, asset, environment
from evalstone.view.addresses import CSV, JSON, name_in
from evalstone.view.query import Query

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

Q = TypeVar("Q", bound=Query)
ASSETS = {"page.css": "text/css", "view.css": "text/css", "view.js": "text/javascript", "icon.svg": "image/svg+xml"}
SHARED_SCRIPTS = OF_ONE
"""Scripts of reports that are a part of the script of the pages."""
WATCH = "10"
"""Seconds until a page with a run in progress is loaded again."""
SOON = "2"
"""Seconds until a page is loaded again for which something is being computed."""
HELD_BACK = 1 << 16
"""The characters of a file that are written before any of them is sent."""
PIECE = 1 << 16
"""The characters of a file that are sent together."""


class NotThere(EvalstoneError):
    """There is no such page."""


class BadAddress(EvalstoneError):
    """The address makes no sense."""


def page(template: str, *, status: int = 200, headers: Mapping[str, str] | None = None, **context: Any) -> Response:
    """A page from a template in `view/templates`."""
    from starlette.responses import HTMLResponse  # noqa: PLC0415 - an extra

    text = environment("evalstone.view").get_template(template).render(asset=asset_address, **context)
    return HTMLResponse(redacted(text).encode("utf-8", "replace"), status_code=status, headers=headers)


def json_data(data: Any) -> Response:
    """The data of a page as JSON, which has no NaN and no infinity: they are null, and text."""
    from starlette.responses import Response  # noqa: PLC0415 - an extra

    try:
        text = json.dumps(data, indent=1, allow_nan=False)
    except ValueError:
        text = json.dumps(json.loads(json.dumps(data), parse_constant=finite_constant), indent=1)
    return Response(redacted(text), media_type="application/json")


def csv_file(lines: Iterable[str], name: str) -> Response:
    """The data of a page as a CSV file with this name."""
    return attachment(map(redacted, lines), f"{name}.csv", "text/csv")


def file_name(name: str, suffix: str = "") -> str:
    """The name of a file that is sent, in plain characters."""
    return "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "_" for char in name + suffix)


def _pieces(texts: Iterable[str]) -> Iterator[str]:
    """Texts joined to longer ones: a server sends each by itself, which takes longer than to make a line."""
    waiting, size = list[str](), 0
    for text in texts:
        waiting.append(text)
        size += len(text)
        if size >= PIECE:
            yield "".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield "".join(waiting)


def attachment(texts: Iterable[str], name: str, media_type: str) -> Response:
    """A file with this name, as it is written. An error in its beginning is raised; later, the connection is closed."""
    from starlette.responses import StreamingResponse  # noqa: PLC0415 - an extra

    headers = {"content-disposition": f'attachment; filename="{file_name(name)}"'}
    waiting, beginning, size = iter(texts), list[str](), 0
    for text in waiting:
        beginning.append(text)
        size += len(text)
        if size > HELD_BACK:
            break
    body = (text.encode("utf-8", "replace") for text in _pieces(itertools.chain(beginning, waiting)))
    return StreamingResponse(body, media_type=f"{media_type}; charset=utf-8", headers=headers)


def redirect(address: str) -> Response:
    """Leads to another address of these pages."""
    from starlette.responses import RedirectResponse  # noqa: PLC0415 - an extra

    return RedirectResponse(address, status_code=303)


def error_page(status: int, error: Exception | str, headers: Mapping[str, str] | None = None) -> Response:
    """An error in words."""
    text = error.text(COMMAND_LINE) if isinstance(error, EvalstoneError) else str(error)
    return page(
        "message.html",
        status=status,
        headers=headers,
        title="Not found" if status == 404 else "Error",
        text=text,
        progress=None,
    )


def asset_file(request: Request) -> Response:
    """A style sheet or script. Its address has a hash of it, so that browsers may keep it."""
    from starlette.responses import Response  # noqa: PLC0415 - an extra

    name = request.path_params["name"]
    if name not in ASSETS:
        raise NotThere("There is no such file.")
    headers = {"cache-control": "private, max-age=31536000, immutable"}
    return Response(_asset(name), media_type=ASSETS[name], headers=headers)


def icon(_: Request) -> Response:
    """What browsers ask for without being told to."""
    from starlette.responses import Response  # noqa: PLC0415 - an extra

    return Response(_asset("icon.svg"), media_type=ASSETS["icon.svg"])


@functools.cache
def _asset(name: str) -> str:
    own = resources.files("evalstone.view").joinpath("assets", name)
    text = own.read_text(encoding="utf-8") if own.is_file() else asset(name)
    return "\n".join([*map(asset, SHARED_SCRIPTS), text]) if name == "view.js" else text


@functools.cache
def asset_address(name: str) -> str:
    """The address of a style sheet or script, with a hash of it."""
    return f"/assets/{hashlib.sha256(_asset(name).encode()).hexdigest()[:16]}/{name}"


# ---- What an address says ----


def suffixed(part: str) -> tuple[str, str]:
    """A part of a path without the suffix of its data, and the suffix."""
    for suffix in (JSON, CSV):
        if part.endswith(suffix) and part != suffix:
            return part.removesuffix(suffix), suffix
    return part, ""


def named(part: str) -> str:
    """The name in a part of a path.

    Raises:
        BadAddress: It isn't UTF-8.
    """
    try:
        return name_in(part)
    except UnicodeDecodeError:
        raise BadAddress("The address is not valid UTF-8.") from None


def suffix_of(request: Request) -> str:
    """What the address of a page without an ID asks for: "" for the page, or the suffix of its data.

    Raises:
        NotThere: It is another suffix.
    """
    suffix = request.path_params.get("suffix", "")
    if suffix not in ("", JSON, CSV):
        raise NotThere("There is no such page.")
    return suffix


def number_in(request: Request, name: str) -> int:
    """The number of a row in an address; 0 for none.

    Raises:
        BadAddress: It is none.
    """
    text = request.query_params.get(name, "") or "0"
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise BadAddress(f"{name} must be the number of a row.")
    return int(text)


def query_in(request: Request, kind: type[Q]) -> Q:
    """The filters, the order and the place in an address.

    Raises:
        BadAddress: A parameter makes no sense.
    """
    try:
        return kind.of(request.query_params.multi_items())
    except ConfigError as error:
        raise BadAddress(error) from None
