"""How much space photos may take whose organizers have not proved their address: any visitor can become an organizer.

Each has a share, each network from which they were registered has one, and all of them together have a total.
Organizers who have proved their address count for none of these.
"""

from collections.abc import Sequence
from typing import LiteralString

from msgspec import Struct

from holdfast.events.problems import TOO_MANY_UPLOADS
from holdfast.events.resources import Tx
from holdfast.events.users.model import IS_UNPROVED
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import Problem

MAX_IDLE_FILES = 20
MAX_IDLE_BYTES = 50_000_000
"""The most photos and uploads of one unproved organizer that no event shows, and their bytes."""

MAX_NETWORK_FILES = 500
MAX_NETWORK_BYTES = 250_000_000
"""The most photos and uploads of the unproved organizers of one network, also those that events show."""

MAX_TOTAL_FILES = 20_000
MAX_TOTAL_BYTES = 5_000_000_000
"""The most photos and uploads of all unproved organizers. One network can take a twentieth of it."""

UPLOAD_HOURS = 1
"""Hours after which an upload of an unproved organizer is deleted that was not made a photo."""

ADVISORY_LOCK_ID = 0x73747267
"""The lock ("strg") of a transaction that adds a photo of an unproved organizer: they are counted one by one."""


class UsedShares(Struct):
    """What is stored already: by the organizer and shown by no event, by its fullest network, by all of them."""

    idle_files: int
    idle_bytes: int
    network_files: int
    network_bytes: int
    total_files: int
    total_bytes: int


async def require_share(tx: Tx, organizer_id: int, size: int) -> Sequence[str] | None:
    """The networks whose shares a new photo of `size` bytes takes from; None: the organizer has proved its address.

    The caller has locked the organizer. Raises `too_many_uploads`.
    """
    rows = await tx.tuples(
        f"select registered_from from users where id = %(id)s and {IS_UNPROVED} and erased_at is null",
        {"id": organizer_id},
    )
    if not rows:
        return None
    # Earlier organizers, and those that an operator has made, have a share each.
    [(registered_from,)] = rows
    networks: Sequence[str] = registered_from or [f"organizer {organizer_id}"]
    await tx.run("select pg_advisory_xact_lock(%(lock)s)", {"lock": ADVISORY_LOCK_ID})
    used_shares = await tx.row(UsedShares, _USED, {"organizer_id": organizer_id, "networks": list(networks)})
    assert used_shares
    if problem := _refusal(used_shares, size):
        raise problem
    return networks


def _refusal(used_shares: UsedShares, size: int) -> Problem | None:
    """Why a file of `size` bytes is too much; None if it is not."""
    if used_shares.idle_files >= MAX_IDLE_FILES or used_shares.idle_bytes + size > MAX_IDLE_BYTES:
        text = message(
            "Until you confirm your e-mail address, at most %(files)s photos and uploads of yours, of %(megabytes)s MB "
            "together, may be shown by no event.",
            files=MAX_IDLE_FILES,
            megabytes=MAX_IDLE_BYTES // 1_000_000,
        )
    elif used_shares.network_files >= MAX_NETWORK_FILES or used_shares.network_bytes + size > MAX_NETWORK_BYTES:
        text = message(
            "Organizers of your network that have not confirmed their e-mail address have %(files)s photos and "
            "uploads, or %(megabytes)s MB of them. That is the most for all of them together.",
            files=MAX_NETWORK_FILES,
            megabytes=MAX_NETWORK_BYTES // 1_000_000,
        )
    elif used_shares.total_files >= MAX_TOTAL_FILES or used_shares.total_bytes + size > MAX_TOTAL_BYTES:
        text = message("Organizers that have not confirmed their e-mail address have no room for more photos now.")
    else:
        return None
    return TOO_MANY_UPLOADS(text, hint=CONFIRM_HINT)


CONFIRM_HINT = "Confirm your e-mail address: sign in at /sign-in with a mailed link. Then this limit ends."

_USED: LiteralString = """
    with strangers as materialized (
        select organizer_id, idle_since, networks, content_length::bigint as size from photos
         where networks is not null),
    of_network as (
        select count(*) as files, sum(size) as bytes
          from unnest(%(networks)s::text[]) as network join strangers on network = any(networks)
         group by network)
    select (select count(*) from strangers where organizer_id = %(organizer_id)s and idle_since is not null)
               as idle_files,
           (select coalesce(sum(size), 0)::bigint from strangers
             where organizer_id = %(organizer_id)s and idle_since is not null) as idle_bytes,
           (select coalesce(max(files), 0) from of_network) as network_files,
           (select coalesce(max(bytes), 0)::bigint from of_network) as network_bytes,
           (select count(*) from strangers) as total_files,
           (select coalesce(sum(size), 0)::bigint from strangers) as total_bytes
"""
"""There are at most `MAX_TOTAL_FILES` rows to count, whatever else is stored."""
