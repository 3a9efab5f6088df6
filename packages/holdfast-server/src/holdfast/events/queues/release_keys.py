"""The public keys of release tokens, at their address."""

from collections.abc import Mapping
from typing import Any

from holdfast.events.queues import release_tokens
from holdfast.events.resources import Database
from holdfast.kit.http.index import Route
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.process.discovery import keys_document

JWKS = "/.well-known/queue-jwks.json"


def route(database: Database, limits: Limits) -> Route:
    """The route of the keys."""

    async def jwks() -> Mapping[str, Any]:
        return (await database.transact(release_tokens.RELEASE_SIGNING_KEYS.read_or_create)).jwks()

    return keys_document(JWKS, "list_queue_keys", limits, jwks)
