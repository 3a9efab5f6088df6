"""Metadata documents of clients: the id of such a client is the https address of the document that describes it.

A document is fetched without redirects from a public address, and cached for as long as its headers allow, at most a
day.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from holdfast.events.oauth_server.cache_headers import cache_seconds
from holdfast.events.oauth_server.client_keys import KeySet
from holdfast.events.oauth_server.model import MAX_ID_CHARS, AuthMethod, Client, client_of_metadata
from holdfast.events.oauth_server.oauth_problems import INVALID_CLIENT
from holdfast.kit.contract.client import path_of, request_source
from holdfast.kit.outbound.refusals import FetchRefusal
from holdfast.kit.outbound.requests import OutboundClient

MAX_DOCUMENT_BYTES = 10_240
"""The maximum size of a document."""

_ADDRESS = re.compile(r"https://[a-z0-9.-]+(:[0-9]{1,5})?/[A-Za-z0-9._~:/?@!$&'()*+,;=%-]+")
_DOTS = re.compile(r"/(\.|%2e){1,2}(/|\?|$)", re.IGNORECASE)


def is_address(client_id: str) -> bool:
    """Whether a client id is the address of a document: https, with a path, and unambiguous."""
    if len(client_id) > MAX_ID_CHARS or not _ADDRESS.fullmatch(client_id) or _DOTS.search(client_id):
        return False
    host = urlsplit(client_id).hostname or ""
    return "." in host and not host.replace(".", "").isdigit()


async def fetch(outbound: OutboundClient, address: str, account_id: int) -> tuple[Client, int]:
    """The client that a document describes, and for how many seconds it may be cached. Raises `invalid_client`.

    account_id    the account that the client asks
    """
    try:
        answer = await outbound.get(
            address,
            owner=("accounts", *path_of(request_source()), account_id),
            limit=MAX_DOCUMENT_BYTES,
            accept="application/json",
            redirects=0,
        )
    except FetchRefusal as refusal:
        raise INVALID_CLIENT(f"The client's metadata document {refusal}.") from refusal
    if not _is_json(answer.content_type):
        raise INVALID_CLIENT("The client's metadata document is not declared as JSON.")
    try:
        document = msgspec.json.decode(answer.content, type=dict[str, Any])
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise INVALID_CLIENT("The client's metadata document is not a JSON object.") from error
    return client_in_document(document, address), cache_seconds(answer.headers)


def client_in_document(document: Mapping[str, Any], address: str) -> Client:
    """The client in a document that was read at an address. Raises `invalid_client`."""
    if document.get("client_id") != address:
        raise INVALID_CLIENT("The client's metadata document has another client_id than its own address.")
    keys = _keys_of(document)
    methods = _auth_methods(document, keys)
    if "private_key_jwt" not in methods:
        keys = _ClientKeys()
    client = client_of_metadata(address, document, INVALID_CLIENT)
    return replace(client, auth_methods=methods, jwks=keys.jwks, jwks_uri=keys.jwks_uri)


class _ClientKeys(NamedTuple):
    """Where the keys of a client are: in its document, or at an address."""

    jwks: list[dict[str, Any]] | None = None
    jwks_uri: str | None = None


def _auth_methods(document: Mapping[str, Any], keys: _ClientKeys) -> Sequence[AuthMethod]:
    """The methods by which a client may prove who it is here. Raises `invalid_client` if there is none.

    A document names the method that the client prefers, and may list others that it can use.
    """
    other_methods: Any = document.get("token_endpoint_auth_methods_supported", [])
    names: list[Any] = [document.get("token_endpoint_auth_method", "none")]
    names += other_methods if isinstance(other_methods, list) else [other_methods]
    methods: list[AuthMethod] = []
    if "none" in names:
        methods.append("none")
    if "private_key_jwt" in names and keys != _ClientKeys():
        methods.append("private_key_jwt")
    if "client_secret" in document or not methods:
        raise INVALID_CLIENT(
            "The client's metadata document wants a secret, or a signature without naming its keys.",
            hint='Publish "token_endpoint_auth_method": "none", or "private_key_jwt" with one of jwks and jwks_uri.',
        )
    return methods


def _keys_of(document: Mapping[str, Any]) -> _ClientKeys:
    """Where the keys of a client are, according to its document. Raises `invalid_client`."""
    jwks, address = document.get("jwks"), document.get("jwks_uri")
    if jwks is not None and address is not None:
        raise INVALID_CLIENT("The client's metadata document has both jwks and jwks_uri.", hint="Publish one of them.")
    if address is not None and not (isinstance(address, str) and is_address(address)):
        raise INVALID_CLIENT("The client's jwks_uri must be an https address with a path.")
    try:
        return _ClientKeys(None if jwks is None else msgspec.convert(jwks, KeySet).keys, address)
    except msgspec.ValidationError as error:
        raise INVALID_CLIENT("The client's jwks is not a key set (RFC 7517).") from error


def _is_json(content_type: str) -> bool:
    return content_type == "application/json" or (
        content_type.startswith("application/") and content_type.endswith("+json")
    )
