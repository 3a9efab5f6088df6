"""Renders mails of the outbox: checks their addresses, and renders their contents in a subprocess."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import structlog

from holdfast.kit.background.subprocess_call import SubprocessCall
from holdfast.kit.contract.mail_addresses import NoAddress, envelope_address
from holdfast.kit.mail import sender
from holdfast.kit.mail.held_mails import HeldMail
from holdfast.kit.mail.message import Envelope, UnwritableMail
from holdfast.kit.mail.outbox import Mail
from holdfast.kit.postgres.database import Database


class MailOrder(Protocol):
    """A mail to be rendered. Its `message_id` has no angle brackets."""

    recipient: str
    message_id: str


OrderT = TypeVar("OrderT", bound=MailOrder)
P = TypeVar("P")

ContentRenderer = Callable[[P], Awaitable[Sequence[bytes]]]
"""Renders the contents of mails, one batch at a time."""

RenderedMails = list[Envelope | UnwritableMail | HeldMail | None]
"""The results of rendering mails, in their order; None for outdated mails, which are not sent."""

log = structlog.get_logger()


async def run_sender(
    database: Database[Any],
    render_contents: Callable[[P], list[bytes]],
    render: Callable[[ContentRenderer[P], Database[Any], Sequence[Mail]], Awaitable[RenderedMails]],
) -> None:
    """Send mails until cancelled. A process that does not know the public URL of the service sends none.

    render_contents    renders a batch; it runs in a subprocess that starts often, so its module imports little
    """
    settings = database.resources.settings
    if not settings.base_url:
        name = settings.variable("base_url")
        log.warning(f"this process sends no mails: set {name}, since mails have links to the service")
        await asyncio.Event().wait()
    async with SubprocessCall(render_contents) as renderer:
        await sender.run(database, partial(render, renderer))


async def render(
    mails: Sequence[Mail],
    orders: Mapping[int, OrderT],
    render_contents: Callable[[list[OrderT]], Awaitable[Sequence[bytes]]],
    *,
    held: Collection[int] = (),
) -> RenderedMails:
    """Render mails together.

    orders    the mails that are not outdated, by id, with recipients as in the outbox
    held      the ids of the mails that may not be sent yet
    """
    rendered: dict[int, Envelope | UnwritableMail | HeldMail] = {id: HeldMail() for id in held}
    addressed: dict[int, OrderT] = {}
    for id, order in orders.items():
        try:
            order.recipient = envelope_address(order.recipient)
            addressed[id] = order
        except NoAddress as error:
            rendered[id] = UnwritableMail(str(error))
    if addressed:
        for (id, order), content in zip(addressed.items(), await render_contents([*addressed.values()]), strict=True):
            rendered[id] = Envelope(order.recipient, order.message_id, content)
    return [rendered.get(mail.id) for mail in mails]
