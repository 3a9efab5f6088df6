"""Statements on photos."""

from collections.abc import Sequence
from typing import LiteralString

from holdfast.events.photos.model import MAX_IDLE_PHOTOS, UPLOAD_LIFETIME_SECONDS, PhotoRow
from holdfast.events.photos.unproved_quotas import UPLOAD_HOURS
from holdfast.events.resources import Reader, Tx
from holdfast.kit.background.leases import LEASE_INTERVAL, LeasedRow, RowTable

COUNT: LiteralString = "select count(*) from photos where organizer_id = %(organizer_id)s"


async def insert_photo(tx: Tx, photo: PhotoRow, networks: Sequence[str] | None, *, upload: bool) -> bool:
    """Store the row of a photo in the state `awaited`. False when its owner has too many that no event shows.

    networks    those whose shares it takes from, if its organizer is unproved
    """
    theirs: LiteralString = "is null" if photo.organizer_id is None else "= %(organizer_id)s"
    is_inserted = await tx.value(
        f"""
        insert into photos (key, organizer_id, content_type, content_length, upload_ends, networks)
        select %(key)s, %(organizer_id)s, %(content_type)s, %(content_length)s,
               case when %(upload)s then now() + %(seconds)s * interval '1 second' end, %(networks)s
         where (select count(*) from photos
                 where organizer_id {theirs} and idle_since is not null) < %(limit)s
        returning true
        """,
        {
            "key": photo.key,
            "organizer_id": photo.organizer_id,
            "content_type": photo.content_type,
            "content_length": photo.content_length,
            "upload": upload,
            "seconds": UPLOAD_LIFETIME_SECONDS,
            "limit": MAX_IDLE_PHOTOS,
            "networks": None if networks is None else list(networks),
        },
    )
    return bool(is_inserted)


async def find_awaited(reader: Reader, keys: Sequence[str], organizer_id: int | None) -> set[str]:
    """The keys of photos that are not accepted yet, of one organizer or of all with None."""
    rows = await reader.tuples(
        """
        select key from photos
         where key = any(%(keys)s) and state = 'awaited'
           and (%(organizer_id)s::bigint is null or organizer_id = %(organizer_id)s)
        """,
        {"keys": list(keys), "organizer_id": organizer_id},
    )
    return {key for (key,) in rows}


async def find_owners(reader: Reader, keys: Sequence[str]) -> dict[str, int | None]:
    """The owners of the photos and uploads with these keys."""
    rows = await reader.tuples(
        "select key, organizer_id from photos where key = any(%(keys)s) and state in ('awaited', 'accepted')",
        {"keys": list(keys)},
    )
    return dict(rows)


async def claim_awaited(tx: Tx, key: str) -> PhotoRow | None:
    """Keep the photo with a key for a day, if it is not accepted yet. Returns it."""
    return await tx.row(
        PhotoRow,
        """
        update photos set idle_since = now() where key = %(key)s and state = 'awaited'
        returning key, organizer_id, content_type, content_length
        """,
        {"key": key},
    )


async def mark_accepted(tx: Tx, keys: Sequence[str]) -> None:
    """Mark photos as accepted: events can show them from now on."""
    await tx.run(
        """
        update photos set state = 'accepted', idle_since = now() where key = any(%(keys)s) and state = 'awaited'
        """,
        {"keys": list(keys)},
    )


# A photo that no event has shown for an hour is not leased, since it is deleted after a day. When an event shows it
# again, a poll finds it. After three leases of which nothing came, a photo is left alone for minutes. The latest photo
# of an organizer is leased first.
UNSCALED = RowTable(
    "photos",
    "key",
    "state = 'accepted' and scaling_due is not null and (idle_since is null or idle_since > now() - interval '1 hour')",
    order="coalesce(organizer_id, 0), scaling_due desc",
    due_at="scaling_due",
    attempts="scaling_tried",
    lease_id=None,
    lease_interval=f"""
        case when scaling_tried < 3 then {LEASE_INTERVAL}
             else interval '2 minutes' * 2 ^ least(scaling_tried - 3, 5) end
    """,
    owner="coalesce(organizer_id, 0)",
)
"""The photos whose sizes are to be made. The owner is the organizer; 0: it is of an admin."""


async def store_sizes(tx: Tx, row: LeasedRow, width: int, height: int, widths: Sequence[int]) -> bool:
    """Store a photo's width, height and sizes, unless another process makes them now. False: it is not accepted now."""
    return await tx.value(
        """
        with stored_photo as (
            update photos set width = %(width)s, height = %(height)s, widths = %(widths)s, scaling_due = null
             where key = %(key)s and state = 'accepted' and scaling_tried = %(claim)s)
        select exists (select from photos where key = %(key)s and state = 'accepted')
        """,
        {"key": row.key, "claim": row.lease_id, "width": width, "height": height, "widths": list(widths)},
    )


async def leave_unscaled(tx: Tx, key: str) -> None:
    """Store that the sizes of a photo cannot be made."""
    await tx.run("update photos set scaling_due = null where key = %(key)s", {"key": key})


async def lock_accepted(tx: Tx, keys: Sequence[str]) -> dict[str, int | None]:
    """Lock the accepted photos: they cannot be deleted until the transaction ends. Returns their owners by key."""
    rows = await tx.tuples(
        """
        select key, organizer_id from photos
         where key = any(%(keys)s) and state = 'accepted' order by key for key share
        """,
        {"keys": list(keys)},
    )
    return dict(rows)


async def mark_idle(tx: Tx, limit: int) -> list[str]:
    """Mark photos and uploads that no event has shown for a day for deletion; skip rows that others lock.

    Uploads of unproved organizers that are no photos are marked after an hour. The address of an upload does not last
    as long, so nothing is uploaded after its row is deleted.
    """
    rows = await tx.tuples(
        """
        with idle as (
            select key from photos where idle_since < now() - interval '1 day'
             order by idle_since limit %(limit)s for update skip locked),
        idle_upload as (
            select key from photos
             where networks is not null and state = 'awaited' and idle_since < now() - make_interval(hours => %(hours)s)
             order by idle_since limit %(limit)s for update skip locked)
        update photos set state = 'doomed' where key in (select key from idle union select key from idle_upload)
        returning key
        """,
        {"limit": limit, "hours": UPLOAD_HOURS},
    )
    return [key for (key,) in rows]


async def delete_marked(tx: Tx, keys: Sequence[str]) -> None:
    """Delete the rows of marked photos; skip rows that others lock."""
    await tx.run(
        """
        delete from photos
         where key in (select key from photos where key = any(%(keys)s) and state = 'doomed' for update skip locked)
        """,
        {"keys": list(keys)},
    )


async def find_ended_uploads(reader: Reader, limit: int) -> list[str]:
    """The keys of accepted photos whose upload address has expired: their uploaded files can be deleted."""
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
