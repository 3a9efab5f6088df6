"""Commands of the tools on endpoints of webhooks. The rest is done in the console: secrets, tests, deliveries."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.kit.contract.command import Id, Repeatable, rule
from holdfast.kit.webhooks.model import Types, Url, WebhookEndpoint


class SetEndpoint(Repeatable, kw_only=True):
    """`SetWebhook` with a dry run and an idempotency key."""

    endpoint_id: Annotated[Id, Meta(description="Absent: a new one.")] | None = None
    url: Annotated[Url, Meta(description="Begins with https://.")] | UnsetType = UNSET
    types: Annotated[Types, Meta(description="Such as stock.low; empty: all.")] | UnsetType = UNSET
    active: Annotated[bool, Meta(description="False pauses it.")] | UnsetType = UNSET

    @rule("endpoint_id", "url")
    def _has_address(self) -> str | None:
        return "is required, or a url for a new endpoint" if self.endpoint_id is None and not self.url else None


class ChangedEndpoint(Struct):
    """An endpoint as it is after the call. A dry run of a new one has no secret."""

    dry_run: bool
    endpoint: WebhookEndpoint
