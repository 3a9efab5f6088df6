"""The operations on endpoints of webhooks of a shop: all of them for its console, and two tools for agents."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.inventory.problems import TOO_MANY_ENDPOINTS
from holdfast.inventory.resources import Tx
from holdfast.inventory.stock.shop_versions import lock_shop
from holdfast.inventory.webhooks.messages import MESSAGES
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Id, Repeatable, rule
from holdfast.kit.contract.problems import NOT_FOUND, VALIDATION_FAILED, refuses
from holdfast.kit.operations.operation import Operation, read, single
from holdfast.kit.webhooks.endpoints import COUNT_ENDPOINTS, EndpointOperations
from holdfast.kit.webhooks.model import SetWebhook, Types, Url, WebhookEndpoint


class SetEndpoint(Repeatable, kw_only=True):
    """`SetWebhook` with a dry run and an idempotency key."""

    endpoint_id: Annotated[Id, Meta(description="Leave it out for a new endpoint.")] | None = None
    url: Annotated[Url, Meta(description="Begins with https://.")] | UnsetType = UNSET
    types: (
        Annotated[Types, Meta(description="The types of messages that it gets, such as stock.low; empty: all.")]
        | UnsetType
    ) = UNSET
    active: Annotated[bool, Meta(description="False pauses the endpoint.")] | UnsetType = UNSET

    @rule("endpoint_id", "url")
    def _has_address(self) -> str | None:
        return "is required, or a url for a new endpoint" if self.endpoint_id is None and not self.url else None


class ChangedEndpoint(Struct):
    """An endpoint as it is after the call. A dry run of a new one has no secret."""

    dry_run: bool
    endpoint: WebhookEndpoint


MAX_ENDPOINTS = 20
"""The most endpoints of a shop."""


async def require_room_for_endpoint(tx: Tx, shop_id: int) -> None:
    """Raises `too_many_endpoints` if the shop has as many endpoints as it may have."""
    await lock_shop(tx, shop_id)
    if await tx.value(COUNT_ENDPOINTS, {"tenant_id": shop_id}) >= MAX_ENDPOINTS:
        raise TOO_MANY_ENDPOINTS(limit=MAX_ENDPOINTS)


ENDPOINTS = EndpointOperations(MESSAGES, require_room_for_endpoint, has_approvals=True)


CONSOLE_OPERATIONS = (
    Operation("list_webhook_endpoints", None, read(ENDPOINTS.list)),
    Operation("get_webhook_endpoint", None, read(ENDPOINTS.get)),
    Operation("create_webhook_endpoint", None, single(ENDPOINTS.create)),
    Operation("update_webhook_endpoint", None, single(ENDPOINTS.update)),
    Operation("delete_webhook_endpoint", None, single(ENDPOINTS.delete)),
    Operation("rotate_webhook_secret", None, single(ENDPOINTS.rotate)),
    Operation("ping_webhook_endpoint", None, single(ENDPOINTS.ping)),
    Operation("list_webhook_deliveries", None, read(ENDPOINTS.list_deliveries)),
    Operation("list_webhook_attempts", None, read(ENDPOINTS.list_attempts)),
    Operation("find_webhook_failure", None, read(ENDPOINTS.find_failure)),
    Operation("resend_webhook_message", None, single(ENDPOINTS.resend)),
    Operation("resend_webhook_messages", None, single(ENDPOINTS.resend_range)),
)
"""The operations of the console that agents do not have."""


@refuses(NOT_FOUND, VALIDATION_FAILED, TOO_MANY_ENDPOINTS)
async def set(tx: Tx, caller: Caller, command: SetEndpoint) -> ChangedEndpoint:
    """Have what happens posted to an address. A new endpoint's secret is shown once (Standard Webhooks)."""
    change = SetWebhook(endpoint_id=command.endpoint_id, url=command.url, types=command.types, active=command.active)
    endpoint = await ENDPOINTS.set(tx, caller, change)
    if command.dry_run:
        endpoint.secret = UNSET
    return ChangedEndpoint(command.dry_run, endpoint)
