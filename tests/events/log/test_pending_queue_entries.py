"""The pending log entries of a queue: each transaction writes its changes in order, and nothing else."""

import secrets
from typing import Any

import pytest

from holdfast.events.queues import joining, release
from holdfast.events.queues.joining import JoinRequest, JoinResult
from tests.events.log.pending import moment, pending_entries, take_pending_entries
from tests.helpers.events_service import Client, Service


async def join(service: Service, *visitors: tuple[int, str]) -> list[JoinResult]:
    requests = [JoinRequest(index, None, queue_id, visitor_id) for index, (queue_id, visitor_id) in enumerate(visitors)]
    return await service.database.transact(lambda tx: joining.give_tickets(tx, requests))


async def change(ada: Client, queue_id: int, **fields: Any) -> None:
    assert (await ada.patch(f"/api/queues/{queue_id}", {"queue_event": fields})).status_code == 200


async def test_joins_are_logged_with_the_tickets_of_each_queue_in_order(service: Service) -> None:
    ada = await service.organizer()
    first, second, unlogged = [(await ada.create_queue(**fields))["id"] for fields in ({}, {}, {"public_log": False})]

    ann, bob, cal, repeated, dan = await join(
        service, (first, "ann"), (second, "bob"), (first, "cal"), (first, "ann"), (unlogged, "dan")
    )
    [again] = await join(service, (first, "cal"))

    assert await take_pending_entries(service, queue_id=first) == [
        {"kind": "open", "of": "queue", "first_number": 1, "released": 0},
        {
            "kind": "arrivals",
            "first_number": 1,
            "received_at": [ann.joined_at, cal.joined_at],
            "visitor_ids": ["ann", "cal"],
            "nonces": [ann.nonce, cal.nonce],
        },
    ]
    assert [result.ticket for result in (ann, bob, cal, repeated, dan, again)] == [1, 1, 2, 1, 1, 2]
    assert (repeated.joined_at, repeated.nonce) == (ann.joined_at, ann.nonce)
    assert (again.joined_at, again.nonce) == (cal.joined_at, cal.nonce)
    assert None not in (ann.nonce, bob.nonce, cal.nonce)
    assert dan.joined_at
    assert dan.nonce is None
    assert await pending_entries(service, queue_id=unlogged) == []
    assert await service.run_sql("select joined_at, nonce::text from queue_visitors where visitor_id = 'cal'") == [
        (cal.joined_at, cal.nonce)
    ]


async def test_a_visitor_who_joins_again_gets_a_new_ticket_and_nonce(service: Service) -> None:
    ada = await service.organizer()
    queue_id = (await ada.create_queue())["id"]
    [before] = await join(service, (queue_id, "ann"))
    await service.run_sql("update queues set serving = 1")

    [after] = await join(service, (queue_id, "ann"))

    assert (before.ticket, after.ticket) == (1, 2)
    assert after.nonce not in (None, before.nonce)
    arrived = (await pending_entries(service, queue_id=queue_id))[-1]
    assert (arrived["first_number"], arrived["nonces"]) == (2, [after.nonce])


async def test_releases_changes_and_the_end_of_a_queue_are_logged(service: Service) -> None:
    ada = await service.organizer()
    queue_id = (await ada.create_queue(release_rate=1000))["id"]
    await join(service, *[(queue_id, f"visitor {number}") for number in range(3)])
    await take_pending_entries(service, queue_id=queue_id)

    await service.run_sql("update queues set paced_at = now() - interval '1 second'")
    assert await release.release_due(service.database) == 3
    assert await take_pending_entries(service, queue_id=queue_id) == [{"kind": "release", "from": 1, "to": 3}]
    await change(ada, queue_id, title="Another")
    assert await take_pending_entries(service, queue_id=queue_id) == []
    await change(ada, queue_id, active=False, ends_at="2099-01-31T18:00:00Z")
    [(ends_at,)] = await service.run_sql("select ends_at from queues")
    assert await take_pending_entries(service, queue_id=queue_id) == [
        {"kind": "change", "active": False, "release_rate": 1000, "ends_at": moment(ends_at), "by": "organizer"}
    ]
    await change(ada, queue_id, public_log=False)
    await change(ada, queue_id, public_log=True)
    await ada.delete(f"/api/queues/{queue_id}")

    assert await take_pending_entries(service, queue_id=queue_id) == [
        {"kind": "close", "reason": "switched_off"},
        {"kind": "open", "of": "queue", "first_number": 4, "released": 3},
        {"kind": "close", "reason": "deleted"},
    ]
    assert await service.run_sql("select generation from logs order by id") == [(1,), (2,)]


async def test_a_ticket_given_out_by_an_older_version_is_logged_without_its_visitor(service: Service) -> None:
    ada = await service.organizer()
    queue_id = (await ada.create_queue())["id"]
    await take_pending_entries(service, queue_id=queue_id)
    visitor_id = secrets.token_hex(8)

    await service.run_sql("update queues set tickets = 1")
    await service.run_sql(
        "insert into queue_visitors (queue_id, visitor_id, ticket) values (%(id)s, %(visitor)s, 1)",
        id=queue_id,
        visitor=visitor_id,
    )

    [arrived] = await take_pending_entries(service, queue_id=queue_id)
    assert (arrived["first_number"], arrived["visitor_ids"], arrived["nonces"]) == (1, [None], [None])
    assert (await join(service, (queue_id, visitor_id)))[0].nonce is None


async def test_a_release_by_an_older_version_is_logged_by_a_trigger(service: Service) -> None:
    ada = await service.organizer()
    queue_id = (await ada.create_queue())["id"]
    await take_pending_entries(service, queue_id=queue_id)

    await service.run_sql(
        "insert into queue_releases (queue_id, first_ticket, last_ticket, released_at) values (%(id)s, 1, 2, now())",
        id=queue_id,
    )

    assert await take_pending_entries(service, queue_id=queue_id) == [{"kind": "release", "from": 1, "to": 2}]


@pytest.mark.usefixtures("own_service")
async def test_a_release_is_logged_without_the_trigger_for_older_versions_too(service: Service) -> None:
    await service.run_sql("alter table queue_releases disable trigger user")
    ada = await service.organizer()
    queue_ids = [(await ada.create_queue(release_rate=1000, public_log=log))["id"] for log in (True, True, False)]
    await join(service, *[(queue_id, f"visitor {number}") for queue_id in queue_ids for number in range(3)])
    await service.run_sql("delete from log_pending")

    await service.run_sql("update queues set paced_at = now() - interval '1 second'")
    assert await release.release_due(service.database) == 9

    for queue_id, entries in zip(queue_ids, (1, 1, 0), strict=True):
        assert await pending_entries(service, queue_id=queue_id) == entries * [{"kind": "release", "from": 1, "to": 3}]
