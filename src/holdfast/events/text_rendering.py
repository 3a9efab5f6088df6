"""Renders the Markdown of strangers in subprocesses at low priority, so that no other request waits for it.

Short texts are rendered in this process, since a call of a subprocess would take longer.
"""

import asyncio
import signal

from holdfast.events.markdown import RenderedText, TextLimitExceeded, render, render_or_end
from holdfast.kit.background.subprocess_call import SubprocessCall, SubprocessCrash, SubprocessStartError
from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE
from holdfast.kit.running.slots import MAX_WAITING, Slots

MAX_INLINE_CHARACTERS = 1_000
"""The most characters of a text that is rendered in this process: the worst text of this length takes 15 ms."""

MAX_SHORT_CHARACTERS = 10_000
"""The most characters of a text that does not wait for longer ones: the worst text of this length takes 0.13 s."""

TIMEOUT_SECONDS = 10
"""The most seconds for one text, with its wait for other texts, also on a busy machine. `markdown.py` limits its CPU
time."""

NICENESS = 10
"""A tenth of the CPU share of the process that answers requests. It is not less, since a request waits for the text."""

TEXTS = Bound(
    name="Texts that are rendered outside the process",
    service="events",
    total=f"1 up to {MAX_SHORT_CHARACTERS} characters, and 1 longer one",
    tenant=f"1 at a time; {MAX_WAITING} wait",
    address="none: only organizers have texts",
    reserved="-",
    stranger="One text before each text of others.",
)


class TextRenderer:
    """Renders texts, one at a time for each tenant; the tenant of admins is None."""

    def __init__(self) -> None:
        self._usual, self._long = [
            SubprocessCall(render_or_end, seconds=TIMEOUT_SECONDS, tries=1, niceness=NICENESS) for _ in range(2)
        ]
        self._slots = Slots(TEXTS, 1, timeout=TIMEOUT_SECONDS)

    async def render(self, tenant: int | None, source: str) -> RenderedText | None:
        """A text of a tenant as HTML; None if it exceeds a limit. Raises `service_unavailable` for other failures."""
        if len(source) <= MAX_INLINE_CHARACTERS:
            try:
                return render(source)
            except TextLimitExceeded:
                return None
        subprocess_call = self._usual if len(source) <= MAX_SHORT_CHARACTERS else self._long
        try:
            async with self._slots.of((tenant,)), asyncio.timeout(TIMEOUT_SECONDS):
                return await subprocess_call(source)
        except SubprocessCrash as error:
            if error.status == -signal.SIGPROF:
                return None
            raise SERVICE_UNAVAILABLE("The text could not be laid out.", retry_after=5) from error
        except (SubprocessStartError, TimeoutError) as error:
            raise SERVICE_UNAVAILABLE("Too many texts wait to be laid out.", retry_after=5) from error

    async def close(self) -> None:
        """End the subprocesses. The next text starts them again."""
        await self._usual.close()
        await self._long.close()
