"""Shops with endpoints of webhooks, and programs that receive what is sent to them."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

from tests.helpers.inventory_service import Inventory, Shop
from tests.helpers.webhook_receiver import ReceivedMessage, Receiver, Receivers, deliver, receivers_of


@dataclass
class ShopProgram:
    """A program of a shop, and its endpoint."""

    inventory: Inventory
    endpoint: dict[str, Any]
    receiver: Receiver

    async def messages(self) -> list[ReceivedMessage]:
        """What the program has received, after all that is due was sent, the oldest message first."""
        await deliver(self.inventory.database)
        # Different subjects have no order among each other.
        return sorted(self.receiver.received, key=lambda message: int(message.id.removeprefix("msg_")))

    async def contents(self) -> list[tuple[str, str, dict[str, Any]]]:
        """The type, the subject and the data of each message."""
        contents = [message.content for message in await self.messages()]
        return [(content["type"], content["subject"], content["data"]) for content in contents]


class ShopPrograms:
    """Makes programs for shops."""

    def __init__(self, inventory: Inventory, receivers: Receivers) -> None:
        self.inventory = inventory
        self._receivers = receivers

    async def add(self, shop: Shop, *types: str) -> ShopProgram:
        """A program of a shop that gets messages of these types; of all types, if none is named."""
        receiver = await self._receivers.add()
        change = await shop.call("set_webhook", url="https://program.example/hooks", types=[*types])
        endpoint = change["endpoint"]
        # The service sends to public addresses at their default ports only, so nobody could name this one.
        await self.inventory.sql(
            "update webhook_endpoints set url = %(url)s where id = %(id)s", url=receiver.url, id=endpoint["id"]
        )
        return ShopProgram(self.inventory, endpoint, receiver)


async def programs_of(inventory: Inventory) -> AsyncGenerator[ShopPrograms]:
    """Programs for shops of a service, as a fixture."""
    async with receivers_of(inventory.database) as receivers:
        yield ShopPrograms(inventory, receivers)
