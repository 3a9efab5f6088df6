"""What waits to be sealed into logs, as tests compare it, and commitments."""

import datetime as dt
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Any
from uuid import UUID

from holdfast.events.seats import intake
from tests.helpers.events_service import Service


async def pending_entries(
    service: Service, event_id: int | None = None, queue_id: int | None = None
) -> list[dict[str, Any]]:
    """The entries of the logs of an event or a queue, in order, without the fields that are empty."""
    rows = await service.run_sql(
        """
        select kind, details, first_number, received_at, user_ids, visitor_ids, nonces::text[], outcomes::text[], cut
          from log_pending join logs on logs.id = log_id
         where event_id = %(event_id)s or queue_id = %(queue_id)s order by log_pending.id
        """,
        event_id=event_id,
        queue_id=queue_id,
    )
    names = ("first_number", "received_at", "user_ids", "visitor_ids", "nonces", "outcomes", "cut")
    return [
        {
            "kind": kind,
            **(details or {}),
            **{name: value for name, value in zip(names, arrays, strict=True) if value is not None},
        }
        for kind, details, *arrays in rows
    ]


async def take_pending_entries(
    service: Service, event_id: int | None = None, queue_id: int | None = None
) -> list[dict[str, Any]]:
    """As `pending_entries`, and delete the entries."""
    entries = await pending_entries(service, event_id, queue_id)
    await service.run_sql("delete from log_pending")
    return entries


def commitment(subject: str, person: str, nonce: str) -> str:
    """The commitment to a person, as its format is documented."""
    digest = sha256(f"holdfast/person/v1\n{subject}\n{person}\n".encode() + UUID(nonce).bytes).digest()
    return urlsafe_b64encode(digest).decode().rstrip("=")


def moment(at: dt.datetime) -> str:
    """A time as entries have it."""
    return at.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def accept(service: Service, event_id: int, *names: str) -> list[intake.IntakeResult]:
    requests = [intake.IntakeRequest(None, event_id, email=f"{name}@example.com") for name in names]
    return await service.database.transact(lambda tx: intake.store_pending(tx, requests))


def change(number: int, before: str, after: str, by: str, **more: Any) -> dict[str, Any]:
    return {"kind": "change", "number": number, "from": before, "to": after, "by": by, **more}
