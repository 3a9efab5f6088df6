"""The operations on endpoints of webhooks of an organizer."""

from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.events.resources import Tx
from holdfast.events.users.quotas import require_quota
from holdfast.events.webhooks.messages import MESSAGES
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, VALIDATION_FAILED, refuses
from holdfast.kit.operations.operation import Operation, read
from holdfast.kit.webhooks.endpoints import COUNT_ENDPOINTS, EndpointOperations
from holdfast.kit.webhooks.model import CreateWebhookEndpoint, SetWebhook, WebhookEndpoint

MAX_ENDPOINTS = 20
"""The most endpoints of an organizer."""


async def require_quota_of_endpoints(tx: Tx, organizer_id: int) -> None:
    """Raises `quota_exceeded` if the organizer has as many endpoints as it may have."""
    await require_quota(tx, organizer_id, message("endpoints of webhooks"), MAX_ENDPOINTS, COUNT_ENDPOINTS)


ENDPOINTS = EndpointOperations(MESSAGES, require_quota_of_endpoints, has_approvals=False)

CONSOLE_OPERATIONS = (Operation("find_webhook_failure", None, read(ENDPOINTS.find_failure)),)
"""The operations that only the console runs."""


@refuses(VALIDATION_FAILED, FORBIDDEN, QUOTA_EXCEEDED)
async def create(tx: Tx, caller: Caller, command: CreateWebhookEndpoint) -> WebhookEndpoint:
    """Have messages sent to an address. The answer shows the secret, once."""
    return await ENDPOINTS.create(tx, caller, command)


@refuses(NOT_FOUND, VALIDATION_FAILED, FORBIDDEN, QUOTA_EXCEEDED)
async def set(tx: Tx, caller: Caller, command: SetWebhook) -> WebhookEndpoint:
    """Have what happens posted to an address. A new endpoint's secret is shown once (Standard Webhooks)."""
    return await ENDPOINTS.set(tx, caller, command)
