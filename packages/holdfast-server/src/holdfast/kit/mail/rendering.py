"""Renders mails of the outbox: checks their addresses, and renders their contents in a subprocess."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import structlog

from holdfast.kit.background.subprocess_call import SubprocessCall
from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.contract.addresses import NoAddress, envelope_address
from holdfast.kit.mail.message import Envelope, UnwritableMail
from holdfast.kit.mail.outbox import HeldMailResult, Mail
from holdfast.kit.mail.sender import run
from holdfast.kit.postgres.database import Database

log = structlog.get_logger()

RENDERER_IDLE_SECONDS = 300
"""Seconds after which the subprocess that renders is ended. To start it takes a third of a second."""


class MailContent(Protocol):
    """A mail to be rendered. Its `message_id` has no angle brackets."""

    recipient: str
    message_id: str


ContentT = TypeVar("ContentT", bound=MailContent)

P = TypeVar("P")

ContentRenderer = Callable[[P], Awaitable[Sequence[bytes]]]
"""Renders the contents of mails, one batch at a time."""

RenderedMails = list[Envelope | UnwritableMail | HeldMailResult | None]
"""The results of rendering mails, in their order; None for outdated mails, which are not sent."""


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
    async with SubprocessCall(render_contents) as call:
        renderer = _Renderer(call)
        ending = asyncio.create_task(renderer.end_when_idle(), name="mails: renderer")
        try:
            await run(database, partial(render, renderer))
        finally:
            await end_tasks([ending])


class _Renderer(Generic[P]):
    """Renders contents in a subprocess, which ends when it was not used for `RENDERER_IDLE_SECONDS`.

    Each process that sends mails has such a subprocess, and most have no mails for long.
    """

    def __init__(self, call: SubprocessCall[P, list[bytes]]) -> None:
        self._call = call
        self._using = asyncio.Lock()
        self._used_at = time.monotonic()

    async def __call__(self, contents: P) -> list[bytes]:
        async with self._using:
            try:
                return await self._call(contents)
            finally:
                self._used_at = time.monotonic()

    async def end_when_idle(self) -> None:
        """End the subprocess whenever it is idle for long, until cancelled."""
        while True:
            await asyncio.sleep(max(1.0, self._used_at + RENDERER_IDLE_SECONDS - time.monotonic()))
            async with self._using:
                if time.monotonic() >= self._used_at + RENDERER_IDLE_SECONDS:
                    await self._call.close()


async def render(
    mails: Sequence[Mail],
    contents: Mapping[int, ContentT],
    render_contents: Callable[[list[ContentT]], Awaitable[Sequence[bytes]]],
    *,
    held_ids: Collection[int] = (),
) -> RenderedMails:
    """Render mails together.

    contents    the mails that are not outdated, by id, with recipients as in the outbox
    held_ids    the ids of the mails that may not be sent yet
    """
    rendered: dict[int, Envelope | UnwritableMail | HeldMailResult] = {id: HeldMailResult() for id in held_ids}
    addressed: dict[int, ContentT] = {}
    for id, content in contents.items():
        try:
            content.recipient = envelope_address(content.recipient)
            addressed[id] = content
        except NoAddress as error:
            rendered[id] = UnwritableMail(str(error))
    if addressed:
        for (id, content), body in zip(addressed.items(), await render_contents([*addressed.values()]), strict=True):
            rendered[id] = Envelope(content.recipient, content.message_id, body)
    return [rendered.get(mail.id) for mail in mails]
