"""Client ID metadata documents: a client whose id is the https address at which it describes itself.

Such a client needs no registration. The document is fetched without redirects from a public address, and kept for as
long as its headers allow, at most a day.
"""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec

from holdfast.accounts.oauth.model import LONGEST_ID, Client, client
from holdfast.accounts.oauth.problems import INVALID_CLIENT
from holdfast.kit.outbound import Outbound, Refused

LARGEST = 10_240
"""The most bytes of a document."""

LONGEST_KEPT = 86_400
"""The most seconds that a document is kept."""

UNSAID = 300
"""Seconds that a document is kept whose headers say nothing about it."""

_ADDRESS = re.compile(r"https://[a-z0-9.-]+(:[0-9]{1,5})?/[A-Za-z0-9._~:/?@!$&'()*+,;=%-]+")
_DOTS = re.compile(r"/(\.|%2e){1,2}(/|\?|$)", re.IGNORECASE)


def is_address(client_id: str) -> bool:
    """Whether a client id is the address of a document: https, with a path, and nothing that has two meanings."""
    if len(client_id) > LONGEST_ID or not _ADDRESS.fullmatch(client_id) or _DOTS.search(client_id):
        return False
    host = urlsplit(client_id).hostname or ""
    return "." in host and not host.replace(".", "").isdigit()


async def fetch(outbound: Outbound, address: str) -> tuple[Client, int]:
    """The client that a document describes, and for how many seconds it may be kept. Raises `invalid_client`."""
    try:
        fetched = await outbound.get(address, limit=LARGEST, accept="application/json", redirects=0)
    except Refused as refused:
        raise INVALID_CLIENT(f"The client's metadata document {refused}.") from refused
    if not _is_json(fetched.content_type):
        raise INVALID_CLIENT("The client's metadata document is not declared as JSON.")
    try:
        document = msgspec.json.decode(fetched.content, type=dict[str, Any])
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise INVALID_CLIENT("The client's metadata document is not a JSON object.") from error
    return described(document, address), freshness(fetched.headers)


def described(document: Mapping[str, Any], address: str) -> Client:
    """The client in a document that was read at an address. Raises `invalid_client`."""
    if document.get("client_id") != address:
        raise INVALID_CLIENT("The client's metadata document has another client_id than its own address.")
    if "client_secret" in document or document.get("token_endpoint_auth_method", "none") != "none":
        raise INVALID_CLIENT(
            "The client's metadata document wants a secret or a key.",
            hint='Clients are public here: publish "token_endpoint_auth_method": "none".',
        )
    return client(address, document, INVALID_CLIENT)


def freshness(headers: Mapping[str, str]) -> int:
    """For how many seconds an answer with these headers may be kept (RFC 9111)."""
    directives: dict[str, str] = {}
    for each in headers.get("cache-control", "").lower().split(","):
        name, _, value = each.strip().partition("=")
        directives[name] = value.strip('"')
    if directives.keys() & {"no-store", "no-cache"}:
        return 0
    if "max-age" in directives:
        lasts = _seconds(directives["max-age"]) - _seconds(headers.get("age", "0"))
    elif "expires" in headers:
        lasts = _between(headers.get("date", ""), headers["expires"])
    else:
        lasts = UNSAID
    return min(max(lasts, 0), LONGEST_KEPT)


def _seconds(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0


def _between(since: str, until: str) -> int:
    try:
        return int((parsedate_to_datetime(until) - parsedate_to_datetime(since)).total_seconds())
    except (ValueError, TypeError):
        return 0


def _is_json(content_type: str) -> bool:
    return content_type == "application/json" or (
        content_type.startswith("application/") and content_type.endswith("+json")
    )
