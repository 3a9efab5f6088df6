"""Mails of the outbox become mails that can be sent: each is addressed, and written in a process of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import structlog

from holdfast.kit import sender
from holdfast.kit.database import Database
from holdfast.kit.elsewhere import Elsewhere
from holdfast.kit.mail import Envelope, NoAddress, Unwritable, envelope_address
from holdfast.kit.outbox import Mail


class Order(Protocol):
    """A mail that is to be written, for somebody, with a name without angle brackets."""

    recipient: str
    message_id: str


OrderT = TypeVar("OrderT", bound=Order)
P = TypeVar("P")

Writer = Callable[[P], Awaitable[Sequence[bytes]]]
"""Writes mails, a portion at a time."""

Rendered = list[Envelope | Unwritable | None]
"""What became of mails, in their order; None for those that are no longer true."""

log = structlog.get_logger()


async def run(
    database: Database[Any],
    write: Callable[[P], list[bytes]],
    render: Callable[[Writer[P], Database[Any], Sequence[Mail]], Awaitable[Rendered]],
) -> None:
    """Send mails until cancelled. A process that does not know the public address of the service sends none.

    write    writes a portion; it runs in a process that starts often, so its module imports little
    """
    settings = database.resources.settings
    if not settings.base_url:
        name = settings.variable("base_url")
        log.warning(f"this process sends no mails: set {name}, since mails have links to the service")
        await asyncio.Event().wait()
    async with Elsewhere(write) as writer:
        await sender.run(database, partial(render, writer))


async def render(
    mails: Sequence[Mail],
    orders: Mapping[int, OrderT],
    write: Callable[[list[OrderT]], Awaitable[Sequence[bytes]]],
) -> Rendered:
    """The mails as they are sent, written together.

    orders    of those that are still true, by their ids; recipients are as the outbox has them
    """
    rendered: dict[int, Envelope | Unwritable] = {}
    addressed: dict[int, OrderT] = {}
    for id, order in orders.items():
        try:
            order.recipient = envelope_address(order.recipient)
            addressed[id] = order
        except NoAddress as error:
            rendered[id] = Unwritable(str(error))
    if addressed:
        for (id, order), content in zip(addressed.items(), await write([*addressed.values()]), strict=True):
            rendered[id] = Envelope(order.recipient, order.message_id, content)
    return [rendered.get(each.id) for each in mails]
