"""The sources of requests: what limits and shares count the requests of strangers by.

A stranger with IPv6 has a network of 64 bits at least, and often one of 48 bits, with 65,536 of the smaller ones. So a
request from IPv6 is counted in both.
"""

import contextlib
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Any

LOCAL = "a local socket"

WIDE_SHARE = 16
"""How many times the limit of an IPv6 network of /64 a network of /48 has."""

WIDE_CONNECTIONS = 4
"""How many times the connections and streams of a network of /64 a network of /48 may have open."""

_WIDE = "wide network "


def address(scope: Mapping[str, Any]) -> str:
    """The source of a request over ASGI: an IPv4 address, an IPv6 network of /64, or a local socket."""
    return source(scope["client"][0]) if scope.get("client") else LOCAL


@lru_cache(10_000)
def source(host: str) -> str:
    """The source of requests from an address."""
    with contextlib.suppress(ValueError):
        ip = ip_address(host)
        if isinstance(ip, IPv6Address):
            if not ip.ipv4_mapped:
                return f"network {int(ip) >> 64:016x}"
            ip = ip.ipv4_mapped
        return f"address {ip}"
    return f"address {host}"


def wide_network(source: str) -> str | None:
    """The IPv6 network of /48 that a network of /64 is a part of; None for other sources."""
    return f"{_WIDE}{source.removeprefix('network ')[:12]}" if source.startswith("network ") else None


@lru_cache(10_000)
def path_of(source: str) -> tuple[str, ...]:
    """The networks that a source is a part of, the widest one first, and the source itself."""
    wide = wide_network(source)
    return (wide, source) if wide else (source,)


def is_source(name: str) -> bool:
    """Whether requests with this name are counted by their source."""
    return name == LOCAL or name.startswith(("address ", "network ", _WIDE))
