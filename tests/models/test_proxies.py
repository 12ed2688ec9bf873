from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from evalstone.errors import ConfigError, EvalstoneError, ProviderTimeout
from evalstone.judges.model import ModelJudge
from evalstone.models.proxies import tls_error
from evalstone.questions.claims import ListClaims
from tests.serving import Response, serving

QUESTION = ListClaims(text="Ada was born in 1815.")


def ask(url: str, **settings: Any) -> None:
    asyncio.run(ModelJudge("vllm/x", base_url=url, total_timeout=5.0, **settings).answer(QUESTION))


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.slow
def test_a_proxy_that_cannot_be_reached_is_named(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    proxy = f"127.0.0.1:{closed_port()}"
    monkeypatch.setenv(f"{scheme}_proxy", f"http://ada:pass-0c1d2e3f4a5b@{proxy}")
    with pytest.raises(ProviderTimeout) as raised:
        ask(f"{scheme}://models.example:8000/v1")
    assert f"proxy http://ada:***@{proxy} " in str(raised.value)
    assert "models.example to" in str(raised.value)
    assert str(raised.value).endswith("NO_PROXY")


@pytest.mark.parametrize(("status", "scheme"), [(407, "http"), (407, "https"), (403, "https")])
def test_a_proxy_that_refuses_is_named_and_not_asked_again(
    monkeypatch: pytest.MonkeyPatch, status: int, scheme: str
) -> None:
    class Refusing(BaseHTTPRequestHandler):
        asked = 0

        def do_POST(self) -> None:
            Refusing.asked += 1
            self.send_error(status)

        do_CONNECT = do_POST

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv(f"{scheme}_proxy", f"http://127.0.0.1:{server.server_port}")
        problem = rf"the proxy refused the request \(HTTP {status}\).*add models.example"
        with pytest.raises(ConfigError, match=problem):
            ask(f"{scheme}://models.example/v1")
        server.shutdown()
    assert Refusing.asked == 1


@pytest.mark.slow
def test_an_error_that_the_proxy_may_have_sent_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda _, number: Response(503, {"error": {"message": "upstream"}})) as server:
        monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
        with pytest.raises(EvalstoneError, match="503: upstream; the proxy"):
            ask("http://models.example/v1")


def test_https_at_a_server_without_it_is_not_tried_again() -> None:
    problem = r"no TLS connection to .* does it speak http:// instead of https://\?"
    with serving(lambda _, number: Response(500, {})) as server, pytest.raises(ConfigError, match=problem):
        ask(server.url.replace("http:", "https:"))


def ignored(*_: object) -> None:
    """Print no refused handshake."""


def test_a_certificate_that_is_not_trusted_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    made = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=127.0.0.1"
    subprocess.run(["openssl", *made.split()], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        monkeypatch.setattr(server, "handle_error", ignored)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(ConfigError, match=r"self-signed .*CERT"):
            ask(f"https://127.0.0.1:{server.server_port}/v1")
        server.shutdown()


def test_a_tls_connection_that_breaks_off_may_be_tried_again() -> None:
    assert tls_error(ssl.SSLEOFError("eof"), "h") is None
    assert tls_error(ConnectionResetError(), "h") is None
