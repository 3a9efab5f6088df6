"""Renders the Markdown of strangers in subprocesses at low priority, so that no other request waits for it.

Short texts are rendered in this process, since a call of a subprocess would take longer. Longer ones have turns, by
organizer. A text that was refused, or took long, is remembered: the same organizer may send it again and again.

The libraries that render take 4 MB. A process imports them for the first text that it renders.
"""

import asyncio
import signal
import time
from hashlib import sha256
from typing import NamedTuple

from cachetools import LRUCache

from holdfast.events.texts.rendered_text import RenderedText
from holdfast.kit.background.subprocess_call import SubprocessCall, SubprocessCrash, SubprocessStartError
from holdfast.kit.contract.bounds import Bound, cache_bound
from holdfast.kit.contract.caller import Owner
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE
from holdfast.kit.operations.slots import Slots

MAX_INLINE_CHARACTERS = 1_000
"""The most characters of a text that is rendered in this process: the worst text of this length takes 15 ms."""

MAX_SHORT_CHARACTERS = 10_000
"""The most characters of a text that does not wait for longer ones: the worst text of this length takes 0.13 s."""

TIMEOUT_SECONDS = 10
"""The most seconds for one text, also on a busy machine. `markdown.py` limits its CPU time."""

WAIT_SECONDS = 30
"""The most seconds that a text waits for others."""

MAX_WAITING = 20
"""The most texts of one organizer that wait, or of unconfirmed organizers together."""

MAX_WAITING_TOGETHER = 200
"""The most texts that wait. For more, the organizers with the most waiting texts give way."""

NICENESS = 10
"""A tenth of the CPU share of the process that answers requests. It is not less, since a request waits for the text."""

SLOW_SECONDS = 0.2
"""A text that takes this many seconds is remembered with its result."""

MAX_REMEMBERED_CHARACTERS = 4_000_000
"""The most characters of the results that are remembered."""

TEXTS = Bound(
    name="Texts that are rendered outside the process",
    service="events",
    total=f"1 up to {MAX_SHORT_CHARACTERS:,} characters and 1 longer one; {MAX_WAITING_TOGETHER} wait for each",
    tenant=f"1 of each, in turns; {MAX_WAITING} wait",
    address=f"all unconfirmed organizers together: 1 of each, in turns; {MAX_WAITING} wait",
    reserved="-",
    stranger="Each text of others waits one turn, about a second.",
)

REMEMBERED = cache_bound(
    "Results of texts that were refused or took long",
    "events",
    f"{MAX_REMEMBERED_CHARACTERS // 1_000_000} million characters",
    lost="is rendered again",
)


class _RememberedText(NamedTuple):
    """The result of a text that was refused, or took long."""

    text: RenderedText | None

    @property
    def size(self) -> int:
        return 200 + (len(self.text.html) if self.text else 0)


class _Renderer:
    """A subprocess, and the texts that wait for it."""

    def __init__(self) -> None:
        self._call: SubprocessCall[str, RenderedText | None] | None = None
        self.slots = Slots(
            TEXTS,
            1,
            timeout=WAIT_SECONDS,
            max_waiting=MAX_WAITING,
            max_waiting_together=MAX_WAITING_TOGETHER,
            retry_after=lambda: 5,
        )

    async def call(self, source: str) -> RenderedText | None:
        from holdfast.events.texts.markdown import render_or_end

        if self._call is None:
            self._call = SubprocessCall(render_or_end, seconds=TIMEOUT_SECONDS, tries=1, niceness=NICENESS)
        return await self._call(source)

    async def close(self) -> None:
        if self._call:
            await self._call.close()


class TextRenderer:
    """Renders texts, in turns of organizers (`events/users/quotas.py`)."""

    def __init__(self) -> None:
        self._usual, self._long = _Renderer(), _Renderer()
        self._remembered: LRUCache[object, _RememberedText] = LRUCache(
            MAX_REMEMBERED_CHARACTERS, lambda remembered: remembered.size
        )

    async def render(self, owner: Owner, source: str) -> RenderedText | None:
        """A text of an owner as HTML; None if it exceeds a limit.

        Raises `client_gone`, and `service_unavailable` for other failures.
        """
        if len(source) <= MAX_INLINE_CHARACTERS:
            return _render_here(source)
        renderer = self._usual if len(source) <= MAX_SHORT_CHARACTERS else self._long
        key = owner[-1], sha256(source.encode()).digest()
        if remembered_text := self._remembered.get(key):
            return remembered_text.text
        async with renderer.slots.slot_of(owner):
            # The first of several requests with one text has it rendered.
            if remembered_text := self._remembered.get(key):
                return remembered_text.text
            began = time.monotonic()
            text = await self._render_in_subprocess(renderer, source)
            if text is None or time.monotonic() - began >= SLOW_SECONDS:
                self._remembered[key] = _RememberedText(text)
            return text

    async def _render_in_subprocess(self, renderer: _Renderer, source: str) -> RenderedText | None:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await renderer.call(source)
        except SubprocessCrash as error:
            if error.status == -signal.SIGPROF:
                return None
            raise SERVICE_UNAVAILABLE("The text could not be laid out.", retry_after=5) from error
        except (SubprocessStartError, TimeoutError) as error:
            raise SERVICE_UNAVAILABLE("The text could not be laid out in time.", retry_after=5) from error

    async def close(self) -> None:
        """End the subprocesses. The next text starts them again."""
        await self._usual.close()
        await self._long.close()


def _render_here(source: str) -> RenderedText | None:
    from holdfast.events.texts.markdown import TextLimitExceeded, render

    try:
        return render(source)
    except TextLimitExceeded:
        return None
