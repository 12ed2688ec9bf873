"""What changes something: forms that are sent, each answered by a redirect to the page that shows the change.

A form is taken from these pages alone: `security.py` refuses what a browser sends for another site, and each form has a
token that only a page of this process can have. What is written goes to the ledger, which is opened for writing for
that moment only. Where it can't be written, pages have no forms.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import parse_qsl

from evalstone.errors import EvalstoneError, invalid
from evalstone.view.addresses import query_of
from evalstone.view.library import Library
from evalstone.view.responses import BadAddress, redirect
from evalstone.view.shelf import ReadOnly

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

TOKEN = "token"  # noqa: S105 - the name of a field
MOST_BYTES = 1 << 18
"""The most bytes of a form."""
MOST_FIELDS = 100
LONGEST = 20_000
"""The most characters of a text that is written."""
_KIND = "application/x-www-form-urlencoded"


class Refused(EvalstoneError):
    """A form that these pages didn't make."""


class TooLarge(EvalstoneError):
    """A form with more than these pages take."""


@dataclass(frozen=True)
class Form:
    """The fields of a form that was sent."""

    fields: Mapping[str, str]

    def text(self, name: str, longest: int = LONGEST) -> str:
        """A field, without spaces around it; "" if it is missing. Line breaks are those of texts.

        Raises:
            BadAddress: It has more than `longest` characters.
        """
        text = self.fields.get(name, "").replace("\r\n", "\n").strip()
        if len(text) > longest:
            raise BadAddress(invalid(name, f"at most {longest:,} characters long", text, f"{len(text):,}"))
        return text

    def needed(self, name: str, longest: int = LONGEST) -> str:
        """A field that must be there. Raises BadAddress if it isn't, and as `text`."""
        if text := self.text(name, longest):
            return text
        raise BadAddress(f"The form lacks {name}.")

    def query(self, name: str, longest: int = LONGEST) -> dict[str, str]:
        """The parameters in a field that is the query of an address: fields lose line breaks and invisible characters,
        which IDs may have. Errors as for `needed`."""
        try:
            return query_of(self.needed(name, longest))
        except UnicodeDecodeError:
            raise BadAddress("The form can't be read.") from None

    def back(self, otherwise: str = "/") -> str:
        """The address on these pages that the form leads to."""
        address = self.fields.get("back", "")
        here = address.startswith("/") and not address.startswith("//")
        return address if here and address.isascii() and address.isprintable() and "\\" not in address else otherwise


Write: TypeAlias = Callable[[Library, Form], str]
"""Writes what a form says, and returns the address of the page that shows it."""


async def sent(
    library: Library, write: Write, request: Request, *, most_bytes: int = MOST_BYTES, most_fields: int = MOST_FIELDS
) -> Response:
    """Write what a form says, and lead to the page that shows it.

    most_bytes, most_fields: what a form may have at most.

    Raises:
        Refused: It isn't a form of these pages.
        ReadOnly: Nothing can be written.
        TooLarge: The form has too much in it.
        BadAddress: A field makes no sense.
    """
    from starlette.concurrency import run_in_threadpool  # noqa: PLC0415 - an extra

    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _KIND:
        raise Refused(f"This is not a form of these pages: its type must be {_KIND}.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most_bytes:
            raise TooLarge(f"This form has at most {most_bytes:,} bytes.")
    if refusal := library.shelf.refusal:
        raise ReadOnly(refusal)
    form = _form(bytes(body), most_fields)
    if not hmac.compare_digest(form.fields.get(TOKEN, "").encode("utf-8", "replace"), library.token.encode()):
        raise Refused(
            "This form is from before evalstone view was started again. Go back, reload the page, and send it again."
        )
    address = await run_in_threadpool(write, library, form)
    return redirect(address)


def _form(body: bytes, most_fields: int) -> Form:
    try:
        text = body.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=most_fields, errors="strict")
    except ValueError:
        raise BadAddress("The form can't be read.") from None
    return Form(dict(pairs))
