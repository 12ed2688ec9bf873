"""The host names under which a receiver on loopback accepts requests.

A page of another site can have its own name resolve to 127.0.0.1 (DNS rebinding), and a browser then sends its requests
here. They have the name of the site in `Host`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from evalstone._core.display import excerpt

_LOCAL = ("localhost", "127.0.0.1", "::1")
_PORT = re.compile(r":\d*$")


def allowed(host: str, addresses: Iterable[str]) -> frozenset[str]:
    """The accepted names in `Host` for a receiver on this host with these addresses. Empty accepts any name: an address
    that other machines reach can have names that are unknown here."""
    addresses = list(addresses)
    if not all(ipaddress.ip_address(each).is_loopback for each in addresses):
        return frozenset()
    return frozenset({*_LOCAL, *addresses, host.lower()})


def refused(hosts: Iterable[str], names: frozenset[str]) -> str:
    """Why a request with this `Host` is refused; "" if it is accepted. Browsers always send the header."""
    for host in hosts if names else ():
        if _PORT.sub("", host).strip("[]").rstrip(".").lower() not in names:
            return (
                f"Host is {excerpt(host)}, but this receiver listens on loopback only, as {', '.join(sorted(names))}; "
                "to be called by another name, start it with this name as --host"
            )
    return ""
