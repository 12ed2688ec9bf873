"""Who may ask for the pages, and what a browser may do with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstone.view.security import POLICY, Guard
from tests.view.conftest import Client, client_of


@pytest.fixture
def client(tmp_path: Path) -> Client:
    return client_of(None, tmp_path)


def guarded(client: Client, **settings: object) -> Client:
    """The same pages behind another guard."""
    assert isinstance(client.app, Guard)
    return Client(Guard(client.app.app, **settings))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("localhost:7700", 200),
        ("LOCALHOST:1", 200),
        ("127.0.0.1:7700", 200),
        ("[::1]:7700", 200),
        ("evil.example", 421),
        ("evil.example:7700", 421),
        ("localhost.evil.example", 421),
        ("localhost@evil.example", 421),
        ("evil.example@localhost", 421),
        ("localhost/evil", 421),
        ("192.168.0.7", 421),
        ("localhost:port", 421),
        ("local\thost", 421),
        ("localhost#.evil.example", 421),
        ("localhost?evil.example", 421),
        ("[::1", 421),
        ("", 421),
    ],
)
def test_a_name_that_only_resolves_to_this_machine_is_refused(client: Client, host: str, status: int) -> None:
    assert client.get("/", host=host).status == status


def test_a_request_with_two_hosts_is_refused(client: Client) -> None:
    assert client.get("/", Host="evil.example").status == 421


def test_a_request_of_two_sites_is_refused(client: Client) -> None:
    assert client.get("/", sec_fetch_site="same-origin", Sec_Fetch_Site="cross-site").status == 403


def test_what_never_changes_may_be_kept_by_browsers(client: Client) -> None:
    [address] = client.get("/").links("/view.css")
    assert client.get(address).headers["cache-control"] == "private, max-age=31536000, immutable"


def test_a_wildcard_answers_to_addresses_but_not_to_names(client: Client) -> None:
    client = guarded(client, any_address=True)
    assert [client.get("/", host=host).status for host in ("192.168.0.7:80", "[fe80::1]", "evil.example")] == [
        200,
        200,
        421,
    ]
    named = guarded(client, hosts=["build-7"])
    assert [named.get("/", host=host).status for host in ("build-7:80", "build-8")] == [200, 421]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_nothing_is_changed_by_a_request(client: Client, method: str) -> None:
    reply = client.get("/", method=method, origin="http://localhost:7700")
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD, POST")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://localhost:7700"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://localhost:8888"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://[::1"}, 403),
        ({"origin": "localhost:7700"}, 403),
        ({"sec_fetch_site": "same-origin", "sec_fetch_mode": "no-cors"}, 200),
        ({"sec_fetch_site": "none", "sec_fetch_mode": "navigate"}, 200),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors", "sec_fetch_dest": "image"}, 403),
        ({"sec_fetch_site": "same-site", "sec_fetch_mode": "cors"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}, 200),
    ],
)
def test_pages_of_other_sites_may_link_here_and_nothing_else(
    client: Client, headers: dict[str, str], status: int
) -> None:
    assert client.get("/", **headers).status == status


@pytest.mark.parametrize(
    "address",
    [
        "/", "/runs.json", "/nothing", "/runs/x", "/favicon.ico", "/live", "/live/x", "/live/", "/datasets",
        "/datasets.csv", "/datasets/x", "/experiments/x", "/scorers", "/scorers.json", "/scorers/faithfulness",
    ],
)  # fmt: skip
def test_every_response_has_the_policy_which_allows_nothing_inline(client: Client, address: str) -> None:
    reply = client.get(address)
    assert reply.headers["content-security-policy"] == POLICY
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["cross-origin-resource-policy"] == "same-origin"
    assert reply.headers["cache-control"] == "no-store"
    assert "unsafe" not in POLICY
    assert POLICY.startswith(
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'"
    )
    assert "style=" not in reply.text
    assert client.get("/", host="evil.example").headers["content-security-policy"] == POLICY


def test_a_token_is_given_once_and_then_a_cookie_has_what_it_takes(client: Client) -> None:
    client = guarded(client, token="open sesame")
    for address in ("/", "/?token=wrong", "/?token=", "/runs.json", "/assets/0/page.css"):
        assert client.get(address).status == 401
    admitted = client.get("/runs/a%2Fb?q=x&token=open+sesame")
    assert (admitted.status, admitted.headers["location"]) == (303, "/runs/a%2Fb?q=x")
    cookie = admitted.headers["set-cookie"]
    assert cookie.endswith("; Path=/; HttpOnly; SameSite=Lax")
    assert "sesame" not in cookie
    value = cookie.partition(";")[0]
    assert client.get("/", cookie=value).status == 200
    assert client.get("/", cookie=f"other=1; {value}").status == 200
    assert client.get("/", cookie=value[:-1]).status == 401
    assert Client(client.app, ("127.0.0.1", 7701)).get("/", cookie=value).status == 401
    assert client.get("//evil.example/?token=open+sesame").headers["location"] == "/evil.example/"


def test_a_file_beside_the_assets_is_not_served(client: Client) -> None:
    for name in ("..%2Fapp.py", "app.py", "%2e%2e%2f%2e%2e%2fapi.py", "page.css%00"):
        assert client.get(f"/assets/0/{name}").status == 404
