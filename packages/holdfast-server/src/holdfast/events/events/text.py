"""The text of an event as HTML, which is stored when the text is written.

Stored HTML is used if the text and the renderer are still the same: a process of another version may have changed them.
If not, the text is rendered when the event is shown.
"""

from hashlib import sha256
from typing import LiteralString

from holdfast.events.events.model import EventRow
from holdfast.events.resources import Database, Steps, Tx
from holdfast.events.texts.rendered_text import VERSION, RenderedText, plain
from holdfast.events.texts.rendering import MAX_INLINE_CHARACTERS
from holdfast.events.users.quotas import organizer_share, share_of
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import invalid

TOO_MUCH_TEXT = message(
    "takes too long to be laid out as Markdown, or becomes too long: shorten it, or use fewer signs of Markdown"
)


def takes_long(body: str) -> bool:
    """Whether a text is rendered outside this process."""
    return len(body) > MAX_INLINE_CHARACTERS


async def render(steps: Steps, caller: Caller, body: str) -> RenderedText:
    """Render the text of an organizer for a caller. Raises `validation_failed`, and `service_unavailable`."""
    owner = await share_of(steps, caller) if takes_long(body) else caller.owner
    text = await steps.resources.texts.render(owner, body)
    if text is None:
        raise invalid({"body": [TOO_MUCH_TEXT]})
    return text


async def find_or_render(
    database: Database, event: EventRow, stored_text: RenderedText | None, *, is_proved: bool
) -> RenderedText:
    """The text that a page shows: the stored one, or one that is rendered and stored now, plain if it is too long.

    is_proved    whether the organizer of the event has confirmed its address

    Raises `service_unavailable`.
    """
    if stored_text:
        return stored_text
    owner = organizer_share(event.organizer_id, is_proved=is_proved)
    text = await database.resources.texts.render(owner, event.body) or plain(event.body)
    await database.transact(lambda tx: store(tx, event.id, event.body, text))
    return text


STORED_TEXT: LiteralString = """
    left join event_texts as stored_text
           on stored_text.event_id = events.id and stored_text.version = %(text_version)s
              and stored_text.digest = sha256(convert_to(events.body, 'UTF8'))"""
"""SQL for FROM: the stored text of an event, if it is of its present body, and of the parameter `text_version`."""


async def store(tx: Tx, event_id: int, body: str, text: RenderedText) -> None:
    await tx.run(
        """
        insert into event_texts (event_id, version, digest, html, summary)
        values (%(event_id)s, %(version)s, %(digest)s, %(html)s, %(summary)s)
            on conflict (event_id) do update
           set version = excluded.version, digest = excluded.digest, html = excluded.html, summary = excluded.summary
        """,
        {
            "event_id": event_id,
            "version": VERSION,
            "digest": sha256(body.encode()).digest(),
            "html": text.html,
            "summary": text.summary,
        },
    )
