"""Which requests our HTTP servers answer: those whose Host is ours, and whose Origin is, if any.

A browser can be made to send requests here: a foreign page lets its own name resolve to this
machine (DNS rebinding), or posts across sites. Both show in headers that a page cannot change.
Every server of ours asks `Hosts.refusal` before anything else looks at a request.

The answers are those of HTTP's own documents: 400 for a Host that is missing, doubled or broken
(RFC 9112, 3.2), 421 for one that is somebody else's (RFC 9110, 15.5.20: the server is not the one
that was meant), 403 for an Origin that may not change anything here.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from fogline.common.errors import UsageError

_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{0,5}))?")
_LONGEST = 262
"""Of a name, a colon and a port."""
_EVERYWHERE = {"0.0.0.0", "::"}
"""No address that is asked for: who listens there is reached at each address of the machine."""
_READ_ONLY = ("GET", "HEAD", "OPTIONS")
_HINT = "use an address of this server, or name it under hosts: in its configuration"


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    error: str
    hint: str = ""

    @property
    def body(self) -> str:
        """One line of JSON, like all errors."""
        return json.dumps({"error": self.error, "hint": self.hint})


class Hosts:
    """The names and addresses of one server: loopback, where it listens, and what is configured."""

    def __init__(self, listens: str, others: Iterable[str] = ()) -> None:
        """`others` are names, addresses or URLs, without regard to their port; empty ones do not
        count. Raises `UsageError` for one that cannot be."""
        named = {_normalise_host(listens), *(_normalise_host(other) for other in others if other)}
        self._known = named - _EVERYWHERE

    def refusal(
        self,
        method: str,
        target: str,
        hosts: Sequence[bytes],
        origins: Sequence[bytes],
        arrived: str,
    ) -> Refusal | None:
        """Why a request is not answered. `hosts` and `origins` are the values of these headers,
        `arrived` is the address of this machine at which the request came."""
        if not target.startswith("/") and target != "*":
            return Refusal(400, "the target of a request must be a path")
        if len(hosts) != 1:
            return Refusal(400, "a request needs one Host header", _HINT)
        host = _host(hosts[0].decode("latin-1"))
        if not host:
            return Refusal(400, "the Host header is no name or address, with or without port")
        if not self._is_ours(host, arrived):
            return Refusal(421, f"this server is not {host:.100}", _HINT)
        if method not in _READ_ONLY and not all(self._may_change(one, arrived) for one in origins):
            return Refusal(403, "a page of another origin may change nothing here", _HINT)
        return None

    def _may_change(self, origin: bytes, arrived: str) -> bool:
        scheme, sign, rest = origin.decode("latin-1").partition("://")
        host = _host(rest)
        return scheme in ("http", "https") and bool(sign and host) and self._is_ours(host, arrived)

    def _is_ours(self, host: str, arrived: str) -> bool:
        if host == "localhost" or host in self._known:
            return True
        try:
            address = _address(host)
            # An address in numbers cannot be made to lead elsewhere than it says.
            return address.is_loopback or address == _address(arrived)
        except ValueError:
            return False


def _normalise_host(text: str) -> str:
    """A host of the configuration as it is compared."""
    try:
        given = (urlsplit(text).hostname or "") if "://" in text else text
    except ValueError:
        given = ""
    host = _host(f"[{given}]" if ":" in given and not given.startswith("[") else given)
    if not host:
        raise UsageError(
            f"invalid host {text!r:.100}", "write a name or an address, for example fog.example.org"
        )
    return host


def _host(authority: str) -> str:
    """Without port, as it is compared; empty for one that is broken."""
    found = _AUTHORITY.fullmatch(authority) if len(authority) <= _LONGEST else None
    if found is None or int(found[2] or 0) > 65535:
        return ""
    name = found[1].lower().removesuffix(".")
    if not name.startswith("["):
        return name
    try:
        return str(_address(name[1:-1]))
    except ValueError:
        return ""


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    found = ipaddress.ip_address(text)
    return getattr(found, "ipv4_mapped", None) or found
