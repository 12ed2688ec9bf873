"""HTTP proxies and certificates: which proxy a request goes through, and errors that name it."""

from __future__ import annotations

import ipaddress
import ssl
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from evalstone._core.redaction import masked_url, register_url
from evalstone.errors import ConfigError

_CUT_OFF = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""TLS errors of connections that broke; another attempt may succeed."""


def proxy_for(url: str) -> str | None:
    """The proxy for a URL from the environment; None if there is none, or if NO_PROXY exempts the host.

    NO_PROXY has host names, addresses, and ranges of addresses such as 10.0.0.0/8.
    """
    parts, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(parts.scheme)
    if proxy is None or proxy_bypass(parts.netloc.rpartition("@")[2]) or _in_range(parts.hostname, proxies.get("no")):
        return None
    register_url(proxy)
    return proxy


def _in_range(host: str | None, exempt: str | None) -> bool:
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return False
    for entry in (exempt or "").split(","):
        try:
            if address in ipaddress.ip_network(entry.strip(" []"), strict=False):
                return True
        except ValueError:
            continue  # a name
    return False


def proxy_hint(url: str, proxy: str) -> str:
    """How to connect to a URL without the proxy, for errors."""
    host = urlsplit(url).hostname
    return f"the proxy {masked_url(proxy)} is from the environment; to connect without it, add {host} to NO_PROXY"


def proxy_refusal(url: str, proxy: str, status: int) -> ConfigError:
    """The error for a proxy that refuses to connect to a URL."""
    hint = "; its URL may have a user and a password" if status == 407 else ""
    return ConfigError(f"the proxy refused the request (HTTP {status}){hint}; {proxy_hint(url, proxy)}")


def tls_error(error: BaseException, host: str) -> ConfigError | None:
    """The error to raise if no TLS connection can be set up, which another attempt wouldn't change; None for others."""
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    if not isinstance(cause, ssl.SSLError) or isinstance(cause, _CUT_OFF):
        return None
    if isinstance(cause, ssl.SSLCertVerificationError):
        reason = getattr(cause, "verify_message", "") or str(cause)
        hint = "set SSL_CERT_FILE to a file with the certificate of the authority that signed it"
        return ConfigError(f"the certificate of {host} is not trusted ({reason}); {hint}")
    reason = cause.reason or str(cause)
    hint = "; does it speak http:// instead of https://?" if reason == "WRONG_VERSION_NUMBER" else ""
    return ConfigError(f"no TLS connection to {host} ({reason}){hint}")
