"""Who may ask: this machine's browser for these pages, and nobody else.

A page of another site can send requests to loopback, and can have its own name resolve to it. So the names that a
request may be sent to are few, a request of another site's page is refused unless it follows a link, and a form is
taken from a page of this very address alone. A browser runs, loads and embeds only what these pages bring with them.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("localhost", "127.0.0.1", "::1")
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
METHODS = ("GET", "HEAD", "POST")
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""On every response, unless it has its own."""
COOKIE = "evalstone_view"
_HOST = re.compile(r"[\w.:\[\]%-]*", re.ASCII)
"""What names of hosts are made of: a parser of addresses would drop or cut off some other characters."""


class Guard:
    """Refuses what isn't asked by this machine's user, and adds the headers.

    Args:
        app: The pages.
        hosts: Names that requests may be sent to, besides those of loopback.
        any_address: Whether requests may be sent to any IP address. A page of another site has a name.
        token: What a browser must have been given once; "" for none.
    """

    def __init__(self, app: App, hosts: Collection[str] = (), *, any_address: bool = False, token: str = "") -> None:
        self.app, self.hosts, self.any_address, self.token = app, {*LOOPBACK, *hosts}, any_address, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        headers = _headers(scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            return await _answer(send, *refusal)
        if self.token and not self._has_cookie(scope, headers):
            query = scope["query_string"].decode("latin-1")
            pairs = parse_qsl(query, keep_blank_values=True)
            given = next((value for name, value in pairs if name == "token"), "")
            if not hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode()):
                return await _answer(
                    send, 401, "These pages need a token. Open the address that `evalstone view` printed."
                )
            return await _answer(send, 303, "", self._admitted(scope, [pair for pair in pairs if pair[0] != "token"]))

        async def sending(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message.get("headers", ())}
                added = [(n.encode(), v.encode()) for n, v in HEADERS.items() if n.encode() not in own]
                message = {**message, "headers": [*message.get("headers", ()), *added]}
            await send(message)

        return await self.app(scope, receive, sending)

    def _refusal(self, scope: Scope, headers: dict[str, list[str]]) -> tuple[int, str] | None:
        """Why a request is refused; None if it isn't."""
        hosts = headers.get("host", [])
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            return 421, "This address is not one of these pages. Open them as localhost."
        if scope["method"] not in METHODS:
            return 405, "These pages are read, and their forms are sent."
        sends, origins = scope["method"] == "POST", headers.get("origin", [])
        if any(origin.partition("://")[2] != hosts[0] for origin in origins):
            return 403, "A page of another site asked for this."
        sites = {*headers.get("sec-fetch-site", ())}
        follows = headers.get("sec-fetch-mode", [""])[0] == "navigate" and not sends
        follows = follows and headers.get("sec-fetch-dest", [""])[0] == "document"
        if sites - {"none", "same-origin"} and not follows:
            return 403, "A page of another site asked for this."
        if sends and not origins:
            return 403, "A form is sent by a page of these, and a browser says so."
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
            _ = urlsplit(f"//{host}").port
        except ValueError:
            return False
        if not _HOST.fullmatch(host):
            return False
        return name in self.hosts or (self.any_address and _is_address(name))

    def _has_cookie(self, scope: Scope, headers: dict[str, list[str]]) -> bool:
        try:
            cookie = SimpleCookie("; ".join(headers.get("cookie", []))).get(_cookie_name(scope))
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(cookie.value.encode("utf-8", "replace"), self._pass.encode())

    @property
    def _pass(self) -> str:
        """What the cookie has, from which the token can't be told."""
        return hashlib.sha256(f"evalstone view {self.token}".encode()).hexdigest()

    def _admitted(self, scope: Scope, pairs: list[tuple[str, str]]) -> dict[str, str]:
        """The headers that send a browser to the address without the token."""
        path = scope["raw_path"].decode("latin-1")
        query = f"?{urlencode(pairs)}" if pairs else ""
        cookie = f"{_cookie_name(scope)}={self._pass}; Path=/; HttpOnly; SameSite=Lax"
        # Two slashes at the start would name another host.
        return {"location": f"/{path.lstrip('/')}{query}", "set-cookie": cookie}


def _cookie_name(scope: Scope) -> str:
    """Browsers share cookies between the ports of a host."""
    return f"{COOKIE}_{(scope.get('server') or ('', 0))[1]}"


def _headers(scope: Scope) -> dict[str, list[str]]:
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return headers


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


async def _answer(send: Send, status: int, text: str, more: dict[str, str] | None = None) -> None:
    headers = {"content-type": "text/plain; charset=utf-8", **HEADERS, **(more or {})}
    if status == 405:
        headers["allow"] = ", ".join(METHODS)
    body = f"{text}\n".encode() if text else b""
    headers["content-length"] = str(len(body))
    rows = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": rows})
    await send({"type": "http.response.body", "body": body})
