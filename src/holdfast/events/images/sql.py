"""Statements on photos."""

from collections.abc import Sequence
from typing import LiteralString

from msgspec import Struct

from holdfast.events.images.model import MOST_IDLE, UPLOAD_SECONDS, PhotoRow, Sizes
from holdfast.events.resources import Reader, Tx

COUNT: LiteralString = "select count(*) from photos where organizer_id = %(organizer_id)s"


async def insert_photo(tx: Tx, photo: PhotoRow, *, upload: bool) -> bool:
    """Store the row of a photo in the state `awaited`. False when its owner has too many that no event shows."""
    theirs: LiteralString = "is null" if photo.organizer_id is None else "= %(organizer_id)s"
    inserted = await tx.value(
        f"""
        insert into photos (key, organizer_id, content_type, content_length, upload_ends)
        select %(key)s, %(organizer_id)s, %(content_type)s, %(content_length)s,
               case when %(upload)s then now() + %(seconds)s * interval '1 second' end
         where (select count(*) from photos
                 where organizer_id {theirs} and idle_since is not null) < %(most)s
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
    """The photos with these keys that are not accepted yet, of one organizer, or of all with None. Keeps them a day."""
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
    """Mark photos as accepted: events can show them from now on."""
    await tx.run(
        """
        update photos set state = 'accepted', idle_since = now() where key = any(%(keys)s) and state = 'awaited'
        """,
        {"keys": list(keys)},
    )


DUE: LiteralString = """
    state = 'accepted' and scaling_due <= now() and (idle_since is null or idle_since > now() - interval '1 hour')
"""
"""Of photos whose sizes are to be made."""


class Unscaled(Struct):
    """A photo whose sizes are to be made; `again`: that was begun before, and may have left files."""

    key: str
    again: bool


async def claim_unscaled(tx: Tx) -> Unscaled | None:
    """Claim an accepted photo without sizes, the latest first. Nobody else claims it for some minutes.

    It is not deleted within the next 22 hours: a photo that no event has shown for an hour is not claimed.
    """
    return await tx.row(
        Unscaled,
        f"""
        update photos
           set scaling_tried = scaling_tried + 1,
               scaling_due = now() + interval '2 minutes' * 2 ^ least(scaling_tried, 5)
         where key = (select key from photos where {DUE}
                       order by scaling_due desc limit 1 for no key update skip locked)
        returning key, scaling_tried > 1 as again
        """,
    )


async def has_unscaled(reader: Reader) -> bool:
    """Whether the sizes of a photo are to be made. Such a photo that cannot be claimed is locked."""
    return await reader.value(f"select exists (select from photos where {DUE})")


async def store_sizes(tx: Tx, key: str, width: int, height: int, widths: Sequence[int]) -> bool:
    """Note a photo's width, height and sizes. False when it is no longer accepted."""
    stored = await tx.value(
        """
        update photos set width = %(width)s, height = %(height)s, widths = %(widths)s, scaling_due = null
         where key = %(key)s and state = 'accepted'
        returning true
        """,
        {"key": key, "width": width, "height": height, "widths": list(widths)},
    )
    return bool(stored)


async def leave_unscaled(tx: Tx, key: str) -> None:
    """Note that the sizes of a photo cannot be made."""
    await tx.run("update photos set scaling_due = null where key = %(key)s", {"key": key})


async def find_sizes(reader: Reader, keys: Sequence[str]) -> dict[str, Sizes]:
    """The sizes of those photos that have some, by key."""
    rows = await reader.rows(
        Sizes,
        "select key, width, height, widths from photos where key = any(%(keys)s) and cardinality(widths) > 0",
        {"keys": list(keys)},
    )
    return {each.key: each for each in rows}


async def lock_accepted(tx: Tx, keys: Sequence[str]) -> dict[str, int | None]:
    """The owners of those photos that are accepted, by key. They cannot be deleted until the transaction ends."""
    rows = await tx.tuples(
        """
        select key, organizer_id from photos
         where key = any(%(keys)s) and state = 'accepted' order by key for key share
        """,
        {"keys": list(keys)},
    )
    return dict(rows)


async def mark_idle(tx: Tx, limit: int) -> list[str]:
    """Mark photos and uploads that no event has shown for a day for deletion; skip those that others lock."""
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


async def delete_marked(tx: Tx, keys: Sequence[str]) -> None:
    """Delete the rows of photos that are marked; skip those that others lock."""
    await tx.run(
        """
        delete from photos
         where key in (select key from photos where key = any(%(keys)s) and state = 'doomed' for update skip locked)
        """,
        {"keys": list(keys)},
    )


async def find_ended_uploads(reader: Reader, limit: int) -> list[str]:
    """Accepted photos whose upload address has expired, so that the uploaded file can be deleted."""
    rows = await reader.tuples(
        """
        select key from photos where state = 'accepted' and upload_ends < now() - interval '1 hour'
         order by upload_ends limit %(limit)s
        """,
        {"limit": limit},
    )
    return [key for (key,) in rows]


async def forget_uploads(tx: Tx, keys: Sequence[str]) -> None:
    await tx.run("update photos set upload_ends = null where key = any(%(keys)s)", {"keys": list(keys)})
