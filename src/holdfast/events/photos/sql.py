"""Statements on photos."""

from collections.abc import Sequence
from typing import LiteralString

from holdfast.events.photos.model import MOST_IDLE, UPLOAD_SECONDS, PhotoRow, Shown
from holdfast.events.settings import Tx

SHOWN: LiteralString = "select id as event_id, organizer_id, image_keys from events where id = %(id)s"


async def find_shown(tx: Tx, event_id: int) -> Shown | None:
    return await tx.row(Shown, SHOWN, {"id": event_id})


async def lock_shown(tx: Tx, event_id: int) -> Shown | None:
    """The photos of an event, which nobody else can change until the transaction ends."""
    return await tx.row(Shown, f"{SHOWN} for no key update", {"id": event_id})


async def show(tx: Tx, event_id: int, keys: Sequence[str]) -> None:
    await tx.run("update events set image_keys = %(keys)s where id = %(id)s", {"id": event_id, "keys": list(keys)})


async def insert_photo(tx: Tx, photo: PhotoRow, *, upload: bool) -> bool:
    """Await a photo, by upload or from elsewhere. False when its owner has too many that no event shows."""
    inserted = await tx.value(
        """
        insert into photos (key, organizer_id, content_type, content_length, upload_ends)
        select %(key)s, %(organizer_id)s, %(content_type)s, %(content_length)s,
               case when %(upload)s then now() + %(seconds)s * interval '1 second' end
         where (select count(*) from photos
                 where organizer_id is not distinct from %(organizer_id)s::bigint and idle_since is not null) < %(most)s
        returning true
        """,
        {
            "key": photo.key,
            "organizer_id": photo.organizer_id,
            "content_type": photo.content_type,
            "content_length": photo.content_length,
            "upload": upload,
            "seconds": UPLOAD_SECONDS,
            "most": MOST_IDLE,
        },
    )
    return bool(inserted)


async def claim_awaited(tx: Tx, keys: Sequence[str], organizer_id: int | None) -> list[PhotoRow]:
    """Those of an organizer's photos, or with None of anybody's, not accepted yet; they are kept a day more."""
    return await tx.rows(
        PhotoRow,
        """
        update photos set idle_since = now()
         where key = any(%(keys)s) and state = 'awaited'
           and (%(organizer_id)s::bigint is null or organizer_id = %(organizer_id)s)
        returning key, organizer_id, content_type, content_length
        """,
        {"keys": list(keys), "organizer_id": organizer_id},
    )


async def accept(tx: Tx, keys: Sequence[str]) -> None:
    """From now on these are photos, which events can show."""
    await tx.run(
        """
        update photos set state = 'accepted', idle_since = now() where key = any(%(keys)s) and state = 'awaited'
        """,
        {"keys": list(keys)},
    )


async def lock_accepted(tx: Tx, keys: Sequence[str]) -> dict[str, int | None]:
    """Whose the accepted ones among the photos are. None of them goes before the transaction ends."""
    rows = await tx.tuples(
        """
        select key, organizer_id from photos
         where key = any(%(keys)s) and state = 'accepted' order by key for key share
        """,
        {"keys": list(keys)},
    )
    return dict(rows)


async def doom_idle(tx: Tx, limit: int) -> list[str]:
    """Give up photos and uploads that no event has shown for a day, but for those being attached right now."""
    rows = await tx.tuples(
        """
        update photos set state = 'doomed'
         where key in (select key from photos where idle_since < now() - interval '1 day'
                        order by idle_since limit %(limit)s for update skip locked)
        returning key
        """,
        {"limit": limit},
    )
    return [key for (key,) in rows]


async def delete_doomed(tx: Tx, keys: Sequence[str]) -> None:
    await tx.run("delete from photos where key = any(%(keys)s) and state = 'doomed'", {"keys": list(keys)})


async def find_ended_uploads(tx: Tx, limit: int) -> list[str]:
    """Accepted photos whose upload can no longer be written, and may lie there still."""
    rows = await tx.tuples(
        """
        select key from photos where state = 'accepted' and upload_ends < now() - interval '1 hour'
         order by upload_ends limit %(limit)s
        """,
        {"limit": limit},
    )
    return [key for (key,) in rows]


async def forget_uploads(tx: Tx, keys: Sequence[str]) -> None:
    await tx.run("update photos set upload_ends = null where key = any(%(keys)s)", {"keys": list(keys)})
