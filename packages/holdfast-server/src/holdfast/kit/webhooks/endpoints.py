"""The operations on endpoints of webhooks: their addresses, their secrets, a test, and what was sent to them."""

import datetime as dt
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, LiteralString

import msgspec
from msgspec import UNSET

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, VALIDATION_FAILED, invalid, refuses
from holdfast.kit.outbound.refusals import FetchRefusal
from holdfast.kit.outbound.requests import OutboundClient
from holdfast.kit.postgres.database import Reader, Tx
from holdfast.kit.postgres.pagination import Page, offset_page
from holdfast.kit.webhooks import sql
from holdfast.kit.webhooks.model import (
    CreateWebhookEndpoint,
    DeleteWebhookEndpoint,
    EndpointRow,
    GetWebhookEndpoint,
    ListWebhookAttempts,
    ListWebhookDeliveries,
    ListWebhookEndpoints,
    ListWebhooks,
    MessageCounts,
    MessageType,
    PingWebhookEndpoint,
    ResendWebhookMessage,
    ResendWebhookMessages,
    ResentMessages,
    RotateWebhookSecret,
    SetWebhook,
    SigningSecret,
    UpdateWebhookEndpoint,
    WebhookAttempt,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookFailure,
    id_of,
)
from holdfast.kit.webhooks.signing import new_secret, public_key, scheme_of

MESSAGES_CHANNEL = "webhook_messages"

PING = "ping"
"""The type of a test message."""

OVERLAP = dt.timedelta(hours=24)
"""How long the secret before a rotation signs too."""


COUNT_ENDPOINTS: LiteralString = "select count(*) from webhook_endpoints where tenant_id = %(tenant_id)s"
"""The endpoints of a tenant, for quotas."""

MUST_BE_HTTPS = message("must begin with https://, as https://shop.example/webhooks does")

DELETE_BATCH_SIZE = 5_000
"""Rows that one statement deletes."""

MAX_RESENT = 10_000
"""The most messages that one call sends again."""

RETENTION_DAYS = 30
"""Days for which messages and their attempts are kept."""


class EndpointOperations:
    """The operations on the endpoints of the tenants of one service.

    types           the types of messages that the service sends
    require_quota   locks a tenant, and raises a problem if it has as many endpoints as it may have
    has_approvals   whether the console of the service shows requests to approve. If not, agents that ask first cannot
                    change endpoints.
    """

    def __init__(
        self,
        types: Collection[MessageType],
        require_quota: Callable[[Tx[Any], int], Awaitable[None]],
        *,
        has_approvals: bool,
    ) -> None:
        self._types = [type.name for type in types]
        self._require_quota = require_quota
        self._has_approvals = has_approvals

    @refuses(FORBIDDEN)
    async def list(
        self, reader: Reader[Any], caller: Caller, command: ListWebhookEndpoints
    ) -> Sequence[WebhookEndpoint]:
        """List the addresses at which programs are told what happened."""
        rows = await sql.list_endpoints(reader, _tenant_of(caller))
        counts = await sql.count_messages(reader, [row.id for row in rows])
        return [_endpoint(row, secrets_of(reader, row), counts[row.id]) for row in rows]

    @refuses(FORBIDDEN)
    async def list_webhooks(
        self, reader: Reader[Any], caller: Caller, command: ListWebhooks
    ) -> Sequence[WebhookEndpoint]:
        """List or get webhook endpoints."""
        # The tool has `list` and `get` in one, because each further tool costs agents tokens.
        endpoints = await self.list(reader, caller, ListWebhookEndpoints())
        return [endpoint for endpoint in endpoints if command.endpoint_id in {None, endpoint.id}]

    @refuses(NOT_FOUND, FORBIDDEN)
    async def get(self, reader: Reader[Any], caller: Caller, command: GetWebhookEndpoint) -> WebhookEndpoint:
        """Get one endpoint."""
        row = await self._find(reader, caller, command.endpoint_id)
        return await _counted(reader, row)

    @refuses(VALIDATION_FAILED, FORBIDDEN)
    async def create(self, tx: Tx[Any], caller: Caller, command: CreateWebhookEndpoint) -> WebhookEndpoint:
        """Have messages sent to an address. The answer shows the secret, once."""
        self._require_right(caller)
        self._check(tx, command.url, command.types)
        await self._require_quota(tx, _tenant_of(caller))
        secrets = [SigningSecret(new_secret(command.signature))]
        row = await sql.insert_endpoint(tx, _tenant_of(caller), command, _sealed(tx, secrets))
        return _endpoint(row, secrets, MessageCounts(), shows_secret=True)

    @refuses(NOT_FOUND, VALIDATION_FAILED, FORBIDDEN)
    async def update(self, tx: Tx[Any], caller: Caller, command: UpdateWebhookEndpoint) -> WebhookEndpoint:
        """Change an endpoint. One that is activated again gets what waited, the oldest first."""
        self._check(tx, command.url or "", command.types or [])
        row = await self._lock(tx, caller, command.endpoint_id)
        if command.url is not UNSET:
            row.url = command.url
        if command.types is not UNSET:
            row.types = command.types
        status = row.status if command.active is UNSET else "active" if command.active else "paused"
        if status != row.status:
            row.status, row.failing_since = status, None
        unordered = row.is_ordered and command.ordered is False
        if command.ordered is not UNSET:
            row.is_ordered = command.ordered
        await sql.update_endpoint(tx, row)
        if unordered:
            await sql.make_all_due(tx, row.id)
        row.waits_until = None
        await tx.notify(MESSAGES_CHANNEL)
        return await _counted(tx, row)

    @refuses(NOT_FOUND, VALIDATION_FAILED, FORBIDDEN)
    async def set(self, tx: Tx[Any], caller: Caller, command: SetWebhook) -> WebhookEndpoint:
        """Have what happens posted to an address. A new endpoint's secret is shown once (Standard Webhooks)."""
        endpoint_id, secret = command.endpoint_id, UNSET
        if endpoint_id is None:
            created = await self.create(tx, caller, CreateWebhookEndpoint(command.url or "", command.types or []))
            endpoint_id, secret = created.id, created.secret
        changes = UpdateWebhookEndpoint(
            endpoint_id=endpoint_id, url=command.url, types=command.types, active=command.active
        )
        endpoint = await self.update(tx, caller, changes)
        endpoint.secret = secret
        return endpoint

    @refuses(NOT_FOUND, FORBIDDEN)
    async def delete(self, tx: Tx[Any], caller: Caller, command: DeleteWebhookEndpoint) -> None:
        """Delete an endpoint, and what waits for it."""
        row = await self._lock(tx, caller, command.endpoint_id)
        await sql.delete_endpoint(tx, row.id)

    @refuses(NOT_FOUND, FORBIDDEN)
    async def rotate(self, tx: Tx[Any], caller: Caller, command: RotateWebhookSecret) -> WebhookEndpoint:
        """Give an endpoint a new secret, which the answer shows once. For 24 hours the one before signs too."""
        row = await self._lock(tx, caller, command.endpoint_id)
        now: dt.datetime = await tx.value("select now()")
        present = secrets_of(tx, row)[0]
        secrets = [SigningSecret(new_secret(scheme_of(present.value))), SigningSecret(present.value, now + OVERLAP)]
        await sql.store_secrets(tx, row.id, _sealed(tx, secrets))
        counts = await sql.count_messages(tx, [row.id])
        return _endpoint(row, secrets, counts[row.id], shows_secret=True)

    @refuses(NOT_FOUND, FORBIDDEN)
    async def ping(self, tx: Tx[Any], caller: Caller, command: PingWebhookEndpoint) -> None:
        """Send a test message of the type ping."""
        row = await self._lock(tx, caller, command.endpoint_id)
        await sql.insert_ping(tx, row, PING)
        await tx.notify(MESSAGES_CHANNEL)

    @refuses(NOT_FOUND, FORBIDDEN)
    async def list_deliveries(
        self, reader: Reader[Any], caller: Caller, command: ListWebhookDeliveries
    ) -> Page[WebhookDelivery]:
        """List the messages for an endpoint, the newest first. They are kept for 30 days."""
        row = await self._find(reader, caller, command.endpoint_id)
        return offset_page(await sql.list_deliveries(reader, row.id, command), command)

    @refuses(NOT_FOUND, FORBIDDEN)
    async def list_attempts(
        self, reader: Reader[Any], caller: Caller, command: ListWebhookAttempts
    ) -> Sequence[WebhookAttempt]:
        """List the attempts to send a message, with answers."""
        row = await self._find(reader, caller, command.endpoint_id)
        return await sql.list_attempts(reader, row.id, id_of(command.message_id))

    async def find_failure(
        self, reader: Reader[Any], caller: Caller, command: GetWebhookEndpoint
    ) -> WebhookFailure | None:
        """Find the newest attempt at an endpoint of the caller that failed."""
        return await sql.find_failure(reader, caller.tenant_id, command.endpoint_id)

    @refuses(NOT_FOUND, FORBIDDEN)
    async def resend(self, tx: Tx[Any], caller: Caller, command: ResendWebhookMessage) -> ResentMessages:
        """Send one message again, with the same id."""
        row = await self._lock(tx, caller, command.endpoint_id)
        count = await sql.resend_message(tx, row.id, id_of(command.message_id))
        if not count:
            raise NOT_FOUND(f"No message {command.message_id} was for this endpoint in the last 30 days.")
        await tx.notify(MESSAGES_CHANNEL)
        return ResentMessages(count)

    @refuses(NOT_FOUND, FORBIDDEN)
    async def resend_range(self, tx: Tx[Any], caller: Caller, command: ResendWebhookMessages) -> ResentMessages:
        """Send messages again, each with the same id: at most 10,000, the oldest first."""
        if command.dry_run:
            row = await self._find(tx, caller, command.endpoint_id)
            count, last = await sql.count_range(tx, row, command, MAX_RESENT)
        else:
            row = await self._lock(tx, caller, command.endpoint_id)
            count, last = await sql.resend_range(tx, row, command, MAX_RESENT)
            await tx.notify(MESSAGES_CHANNEL)
        return ResentMessages(count, f"msg_{last}" if last else UNSET)

    def _check(self, tx: Tx[Any], url: str, types: Sequence[str]) -> None:
        """Raises `validation_failed`."""
        errors: dict[str, list[str]] = {}
        if url:
            try:
                client: OutboundClient = tx.resources.webhooks
                parsed = client.checked(url)
                is_possible = parsed.scheme == "https" or client.is_exempt(parsed)
                reason = MUST_BE_HTTPS
            except FetchRefusal as refusal:
                is_possible = False
                reason = refusal.args[0] if url.lower().startswith("https://") else MUST_BE_HTTPS
            if not is_possible:
                errors["url"] = [reason]
        if unknown := [type for type in types if type not in self._types]:
            errors["types"] = [
                message(
                    "%(type)s is not a type of message; choose from %(types)s",
                    type=unknown[0],
                    types=", ".join(self._types),
                )
            ]
        if errors:
            raise invalid(errors)

    def _require_right(self, caller: Caller) -> None:
        """Raises `forbidden`."""
        if caller.asks_first and not self._has_approvals:
            raise FORBIDDEN(
                "An agent that asks before each change cannot change webhooks.",
                hint="Change them in the console, or use a key that does not ask.",
            )

    async def _find(self, reader: Reader[Any], caller: Caller, id: int) -> EndpointRow:
        return _known_endpoint(id, await sql.find_endpoint_of_tenant(reader, _tenant_of(caller), id))

    async def _lock(self, tx: Tx[Any], caller: Caller, id: int) -> EndpointRow:
        self._require_right(caller)
        return _known_endpoint(id, await sql.lock_endpoint(tx, _tenant_of(caller), id))


def _tenant_of(caller: Caller) -> int:
    """The tenant of a caller. Raises `forbidden` for an admin, who has none."""
    if caller.tenant_id is None:
        raise FORBIDDEN("An admin has no webhooks.", hint="Use a key of the organizer or shop whose program gets them.")
    return caller.tenant_id


def _known_endpoint(id: int, row: EndpointRow | None) -> EndpointRow:
    if row is None:
        raise NOT_FOUND(f"You have no endpoint of webhooks with the id {id}.")
    return row


def secrets_of(reader: Reader[Any], row: EndpointRow) -> list[SigningSecret]:
    """The secrets of an endpoint, the present one first."""
    return msgspec.json.decode(reader.resources.secret.unseal(row.sealed), type=list[SigningSecret])


def _sealed(tx: Tx[Any], secrets: Sequence[SigningSecret]) -> bytes:
    return tx.resources.secret.seal(msgspec.json.encode(secrets).decode())


async def _counted(reader: Reader[Any], row: EndpointRow) -> WebhookEndpoint:
    """An endpoint with the numbers of its messages."""
    counts = await sql.count_messages(reader, [row.id])
    return _endpoint(row, secrets_of(reader, row), counts[row.id])


def _endpoint(
    row: EndpointRow, secrets: Sequence[SigningSecret], counts: MessageCounts, *, shows_secret: bool = False
) -> WebhookEndpoint:
    secret = secrets[0].value
    scheme = scheme_of(secret)
    return WebhookEndpoint(
        row.id,
        row.url,
        row.types,
        row.is_ordered,
        row.status,
        scheme,
        public_key(secret),
        row.created_at,
        row.failing_since,
        row.waits_until,
        counts.waiting,
        counts.failed,
        secret if shows_secret and scheme == "v1" else UNSET,
    )


async def pause_all(tx: Tx[Any], tenant_id: int) -> None:
    """Pause all endpoints of a tenant: nothing more is sent to them."""
    await sql.pause_endpoints(tx, tenant_id)


async def delete_all(tx: Tx[Any], tenant_id: int) -> None:
    """Delete all endpoints of a tenant, with their secrets, and all its messages."""
    await sql.delete_endpoints(tx, tenant_id)


async def forget_messages(tx: Tx[Any]) -> int:
    """Delete a batch of old messages, with their deliveries and attempts. Returns the number deleted."""
    return await sql.delete_old_messages(tx, RETENTION_DAYS, DELETE_BATCH_SIZE)
