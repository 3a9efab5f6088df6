"""Shards of the outbox: one process at a time sends the mails to a mailbox."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from prometheus_client import REGISTRY
from psycopg.errors import LockNotAvailable

from holdfast.events.settings import Settings
from holdfast.kit.background.leases import LeaseLost
from holdfast.kit.contract.addresses import NoAddress, identity, mailbox
from holdfast.kit.mail import sender, shards, transport, turns
from holdfast.kit.mail.message import Envelope, UnwritableMail
from holdfast.kit.mail.outbox import Mail
from holdfast.kit.mail.shards import ShardLease, ShardLeases, sender_session
from holdfast.kit.postgres.database import Database
from tests.helpers.events_service import Service, eventually, running_events
from tests.helpers.smtp import NEVER, MailServer
from tests.kit.mail import posting
from tests.kit.mail.posting import PEOPLE, has_received, post_mails, run_senders, wait_until_all_ended

MANY = [f"person{number}@example.com" for number in range(400)]


async def lease(
    service: Service,
    limit: int = 4,
    connections: int = 64,
    first: str = turns.FIRST_OWNER,
    *,
    max_shards: int = 1,
    no_owner_first: bool = True,
) -> list[ShardLease]:
    return await service.database.autocommit(
        lambda writer: ShardLeases().lease(writer, limit, max_shards, connections, first, no_owner_first=no_owner_first)
    )


def numbers_of(leases: Iterable[ShardLease]) -> list[int]:
    return [shard.number for lease in leases for shard in lease.shards]


def owners_of(leases: Iterable[ShardLease]) -> list[str]:
    return [shard.owner for lease in leases for shard in lease.shards]


async def shard_of(service: Service, recipient: str) -> int:
    [(share,)] = await service.run_sql("select mail_share(%(recipient)s)", recipient=recipient)
    return share


@pytest.fixture
async def other_services(settings: Settings, server: MailServer) -> AsyncGenerator[list[Service]]:
    """Two more services on the same database, each as in a process of its shard_number."""
    mailing = settings.model_copy(update=server.settings)
    async with running_events(mailing) as first, running_events(mailing) as second:
        yield [first, second]


LOCALS = st.text("abAB.+-!1", min_size=1, max_size=8)
DOMAINS = st.sampled_from(
    [
        *("example.com", "Example.COM", "example.com.", "\uff45xample.com", "gmail.com", "googlemail.com", "GMail.com"),
        *("müller.de", "MÜLLER.de", "xn--mller-kva.de", "mail.müller.de", "straße.de", "example.org", "a.example.com"),
    ]
)


@examples(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(addresses=st.lists(st.builds("{}@{}".format, LOCALS, DOMAINS), min_size=1, max_size=30))
async def test_all_mails_to_one_mailbox_are_always_in_one_shard(service: Service, addresses: list[str]) -> None:
    stored: list[str] = []
    for address in addresses:
        try:
            stored.append(identity(address))
        except NoAddress:
            continue
    texts = [*stored, *map(mailbox, stored)]
    rows = await service.run_sql(
        "select mail_share(text) from json_array_elements_text(%(texts)s::json) with ordinality as row (text, place)"
        " order by place",
        texts=json.dumps(texts),
    )
    numbers = [share for (share,) in rows]

    assert all(0 <= share < 64 for share in numbers)
    assert numbers[: len(stored)] == numbers[len(stored) :]


async def test_mailboxes_are_spread_over_all_shards(service: Service) -> None:
    rows = await service.run_sql(
        "select mail_share(text) from json_array_elements_text(%(texts)s::json) as text", texts=json.dumps(MANY)
    )
    sizes = Counter(share for (share,) in rows)

    assert len(sizes) == 64
    assert max(sizes.values()) < 4 * len(MANY) / 64


async def test_a_process_leases_again_at_once_the_shards_of_a_lease_that_was_cancelled(service: Service) -> None:
    await post_mails(service, *MANY)
    leases = ShardLeases()

    async def lease_all() -> list[ShardLease]:
        return await service.database.autocommit(
            lambda writer: leases.lease(writer, 8, 8, 64, turns.FIRST_OWNER, no_owner_first=True)
        )

    for tenths in range(40):  # from before the statement is sent until after it has committed
        leasing = asyncio.create_task(lease_all())
        await asyncio.wait([leasing], timeout=tenths / 10_000)
        leasing.cancel()
        await asyncio.wait([leasing])
        if not leasing.cancelled():
            await service.database.autocommit(leases.give_all_back)

        assert len(numbers_of(await lease_all())) == 64
        await service.database.autocommit(leases.give_all_back)


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["lease", "lease", "renew", "give back", "give others back", "read", "let it end"]),
        st.integers(0, 2),
        st.integers(0, 5),
    ),
    max_size=40,
)


@examples(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=ACTIONS, max_shards=st.integers(1, 3))
async def test_no_two_processes_ever_send_one_shard(
    service: Service, actions: Sequence[tuple[str, int, int]], max_shards: int
) -> None:
    await service.run_sql("delete from mails")
    await service.run_sql("update mail_shares set lease_id = null, due_at = now()")
    await post_mails(service, *(f"x+{number}@example.com" for number in range(3)), *PEOPLE[:12])
    leases: list[list[ShardLease]] = [[], [], []]
    """What each process believes that it has leased."""
    leased: dict[int, ShardLease] = {}
    """The leases that have not ended, by shard."""
    async with sender_session(service.database) as session:
        for action, process, number in actions:
            if action == "lease":
                for row in await lease(service, 2, max_shards=max_shards):
                    assert 1 <= len(row.shards) <= max_shards
                    for shard in row.shards:
                        assert shard.number not in leased
                        leased[shard.number] = row
                    leases[process].append(row)
                continue
            if not leases[process]:
                continue
            row = leases[process][number % len(leases[process])]
            lasts = all(leased.get(shard.number) is row for shard in row.shards)
            if action == "renew":
                assert await service.database.autocommit(lambda writer, row=row: shards.renew(writer, row)) == lasts
            elif action == "give back":
                await service.database.autocommit(lambda writer, row=row: ShardLeases().give_back(writer, row))
                leased = {shard: other for shard, other in leased.items() if other is not row}
            elif action == "give others back":
                shard_number = row.shards[number % len(row.shards)].number
                await service.database.autocommit(
                    lambda writer, row=row, shard_number=shard_number: ShardLeases().give_others_back(
                        writer, row, shard_number
                    )
                )
                assert numbers_of([row]) == [shard_number]
                leased = {shard: other for shard, other in leased.items() if other is not row or shard == shard_number}
            elif action == "read":
                if lasts:
                    await session.check(row)
                else:
                    with pytest.raises(LeaseLost):
                        await session.check(row)
            elif lasts:
                ended = row.shards[number % len(row.shards)].number
                await service.run_sql("update mail_shares set due_at = now() where share = %(share)s", share=ended)
                del leased[ended]


@pytest.mark.parametrize("max_shards", [1, 2])
async def test_processes_that_lease_at_the_same_time_get_different_shards_and_few_enough(
    max_shards: int, service: Service
) -> None:
    await post_mails(service, *MANY)

    of_processes = await asyncio.gather(*(lease(service, 4, 18, max_shards=max_shards) for _ in range(8)))

    leases = [row for rows in of_processes for row in rows]
    assert len({row.id for row in leases}) == 18
    assert len({*numbers_of(leases)}) == len(numbers_of(leases)) == 18 * max_shards
    assert await lease(service, 4, 18, max_shards=max_shards) == []


async def test_shards_fill_one_lease_before_the_next(service: Service) -> None:
    await post_mails(service, *MANY[:6])
    count = len({await shard_of(service, person) for person in MANY[:6]})

    assert [len(row.shards) for row in await lease(service, 4, max_shards=4)] == [4, count - 4]


async def test_a_shard_without_due_mails_is_not_leased(service: Service) -> None:
    await post_mails(service, *PEOPLE)
    await service.run_sql("update mails set due_at = now() + interval '1 hour' where recipient <> '7@example.com'")

    assert numbers_of(await lease(service)) == [await shard_of(service, "7@example.com")]


async def test_shards_are_leased_in_the_turns_of_organizers(service: Service) -> None:
    for organizer in (1, 2, 3):
        await post_mails(service, *MANY[organizer * 100 - 100 : organizer * 100], arguments={"organizer_id": organizer})

    first = await lease(service, 2)
    second = await lease(service, 1, first=turns.next_owner(owners_of(first)[-1]), max_shards=4)

    assert owners_of([*first, *second]) == ["1", "2", "3", "1", "2", "3"]


async def test_an_organizer_with_many_mails_does_not_delay_the_mail_of_another(service: Service) -> None:
    await post_mails(service, *MANY, arguments={"organizer_id": 7})
    leased = await lease(service, 4)
    await post_mails(service, "late@example.net", arguments={"organizer_id": 8})

    [row] = await lease(service, 1, first=turns.next_owner(owners_of(leased)[-1]))

    assert row.shards == [(await shard_of(service, "late@example.net"), "8")]


async def test_mails_of_no_organizer_have_every_other_turn_and_mails_to_many_people_come_last(
    service: Service,
) -> None:
    await post_mails(service, *MANY[:100], bulk=True, arguments={"organizer_id": 9})
    await post_mails(service, *MANY[100:200], arguments={"organizer_id": 7})
    await post_mails(service, *MANY[200:300])

    leases = [await lease(service, 1, no_owner_first=number % 2 == 0) for number in range(6)]

    assert [owners_of(leased) for leased in leases] == [[""], ["7"]] * 3


@pytest.mark.parametrize(
    "loss",
    [
        "lease_id = gen_random_uuid(), due_at = now() + interval '1 hour'",
        "due_at = now() - interval '1 second'",
        "due_at = now() + interval '4 seconds'",
    ],
    ids=["another process has leased it", "it has ended", "it lasts for less than five seconds"],
)
async def test_a_process_whose_lease_does_not_last_sends_nothing(
    loss: str, service: Service, server: MailServer
) -> None:
    async def render(database: Database[Any], mails: Sequence[Mail]) -> list[Envelope | UnwritableMail | None]:
        await service.run_sql(f"update mail_shares set {loss} where lease_id is not null")
        return await posting.render(database, mails)

    def lost() -> float:
        return REGISTRY.get_sample_value("holdfast_due_work_lost_total", {"work": "mails"}) or 0

    before = lost()
    await post_mails(service, "ann@example.com")
    async with run_senders(service, render=render):
        await eventually(lambda: lost() > before)
        assert server.received == []
    await service.run_sql("update mail_shares set lease_id = null, due_at = now()")
    async with run_senders(service):
        await wait_until_all_ended(service)
    assert server.recipients() == ["ann@example.com"]


async def test_mails_that_a_killed_process_had_leased_are_sent_when_the_lease_ends(
    service: Service, server: MailServer
) -> None:
    await post_mails(service, *PEOPLE)
    assert len(await lease(service)) == 4
    await service.run_sql("update mail_shares set due_at = now() + interval '1 second' where lease_id is not null")

    async with run_senders(service):
        await wait_until_all_ended(service)

    assert sorted(server.recipients()) == sorted(PEOPLE)


async def test_a_mail_at_which_the_server_stalls_does_not_stop_other_shards(
    service: Service, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "COMMAND_TIMEOUT_SECONDS", 600)
    monkeypatch.setattr(sender, "STOP_TIMEOUT_SECONDS", 0.1)
    server.answers["RCPT stalled@example.com"] = [NEVER]
    shard = await shard_of(service, "stalled@example.com")
    other_people = [person for person in PEOPLE if await shard_of(service, person) != shard]

    async with run_senders(service):
        await post_mails(service, "stalled@example.com", *other_people)
        await eventually(lambda: has_received(server, len(other_people)))

    assert sorted(server.recipients()) == sorted(other_people)


async def test_three_processes_send_each_mail_once_and_each_thread_in_order(
    service: Service, other_services: list[Service], server: MailServer
) -> None:
    # A person may change the address: then the mails of a thread are in different shards.
    for number in range(5):
        for thread in range(20):
            await post_mails(service, f"{thread}.{number // 2}@example.com", thread=f"thread {thread}")

    async with run_senders(service, *other_services):
        await wait_until_all_ended(service, 60)

    threads = await service.run_sql("select array_agg(id order by id) from mails group by thread")
    order = [int(received.message_id.partition(".")[0]) for received in server.received]
    assert len(order) == 100
    for (ids,) in threads:
        assert [id for id in order if id in ids] == ids


async def test_all_processes_together_have_no_more_connections_than_the_setting_says(
    settings: Settings, server: MailServer
) -> None:
    few = settings.model_copy(update={**server.settings, "smtp_max_connections": 2})
    leased = list[int]()

    async def render(database: Database[Any], mails: Sequence[Mail]) -> list[Envelope | UnwritableMail | None]:
        [(count,)] = await one.run_sql(
            "select count(distinct lease_id) from mail_shares where due_at > clock_timestamp()"
        )
        leased.append(count)
        return await posting.render(database, mails)

    async with running_events(few) as one, running_events(few) as another, run_senders(one, another, render=render):
        await post_mails(one, *MANY[:100])
        await wait_until_all_ended(one)

    assert sorted(server.recipients()) == sorted(MANY[:100])
    assert max(leased) == 2


async def test_a_sender_of_the_version_before_and_this_one_do_not_send_at_the_same_time(
    service: Service, server: MailServer
) -> None:
    async def waits() -> bool:
        rows = await service.run_sql(
            "select backend_xmin is null from pg_stat_activity where wait_event_type = 'Lock'"
            " and query like 'lock table mail_sender%%' and datname = current_database()"
        )
        return rows == [(True,)]

    with psycopg.connect(service.database.url) as old:
        old.execute("lock table mail_sender in exclusive mode")
        await post_mails(service, *PEOPLE)
        async with run_senders(service):
            # A process that waits for long must hold no snapshot: VACUUM could remove nothing meanwhile.
            await eventually(waits)
            assert server.received == []
            old.commit()
            await wait_until_all_ended(service)
            with pytest.raises(LockNotAvailable):
                old.execute("lock table mail_sender in exclusive mode nowait")
            old.rollback()
        old.execute("lock table mail_sender in exclusive mode nowait")

    assert sorted(server.recipients()) == sorted(PEOPLE)
