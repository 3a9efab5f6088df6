"""The order of mails: organizers take turns, and mails of no organizer go first."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.kit.mail import sender, turns
from holdfast.kit.mail.outbox import Mail
from tests.helpers.events_service import Service, eventually
from tests.helpers.smtp import MailServer
from tests.kit.mail.posting import post_mails, run_senders


async def due_mails(service: Service, limit: int = 8, first: str = "") -> list[Mail]:
    [(share,)] = await service.run_sql("select mail_share('ann@example.com')")
    return await service.database.read(lambda reader: turns.due_mails(reader, [(share, first)], limit))


async def post_of(service: Service, organizer: int, count: int, *, bulk: bool = False) -> list[int]:
    """Mails of an organizer, all of them in one shard."""
    recipients = [f"ann+{number}.{organizer}.{bulk}@example.com" for number in range(count)]
    return await post_mails(service, *recipients, bulk=bulk, arguments={"organizer_id": organizer})


async def test_a_mail_does_not_wait_for_all_mails_of_another_organizer(service: Service, server: MailServer) -> None:
    await post_of(service, 7, 100)
    await post_of(service, 8, 1)
    [recipient] = await service.run_sql("select recipient from mails order by id desc limit 1")
    async with run_senders(service):
        await eventually(lambda: recipient[0] in server.recipients())
        before = server.recipients().index(recipient[0])

    assert before <= 2 * sender.MAX_CONNECTIONS


async def test_organizers_take_turns_in_one_batch(service: Service) -> None:
    [first, second, third, *_] = await post_of(service, 7, 20)
    [other, next_other] = await post_of(service, 8, 2)

    assert [mail.id for mail in await due_mails(service, 5)] == [first, other, second, next_other, third]


async def test_the_next_batch_begins_after_the_last_organizer(service: Service) -> None:
    mails = [id for organizer in (1, 2, 3) for id in await post_of(service, organizer, 1)]
    [first, second] = await due_mails(service, 2)
    [third, fourth] = await due_mails(service, 2, turns.next_owner(second.owner))

    assert [mail.id for mail in (first, second, third, fourth)] == [*mails, first.id]


async def test_links_to_sign_in_get_half_of_a_batch(service: Service) -> None:
    await post_of(service, 7, 20)
    await post_mails(service, *(f"ann+{number}@example.com" for number in range(20)))

    owners = [mail.owner for mail in await due_mails(service)]

    assert owners == [""] * 4 + ["7"] * 4


async def test_mails_to_many_people_go_last_in_turns_of_organizers(service: Service) -> None:
    await post_of(service, 7, 20, bulk=True)
    await post_of(service, 8, 1, bulk=True)
    [urgent, *_] = await post_of(service, 9, 3)

    mails = await due_mails(service)

    assert mails[0].id == urgent
    assert [mail.owner for mail in mails] == ["9", "9", "9", "7", "8", "7", "7", "7"]


async def test_organizers_whose_mails_wait_for_earlier_ones_do_not_block_others(service: Service) -> None:
    for organizer in range(1, 20):
        await post_mails(service, *2 * [f"ann+{organizer}@example.com"], arguments={"organizer_id": organizer})
    await service.run_sql(
        """
        update mails set due_at = now() + interval '1 hour'
         where id in (select min(id) from mails group by thread)
        """
    )
    [last] = await post_of(service, 99, 1)

    assert [mail.id for mail in await due_mails(service)] == [last]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(counts=st.lists(st.integers(1, 30), min_size=1, max_size=12), limit=st.integers(1, 8))
async def test_every_other_organizer_has_a_turn_between_two_mails_of_one(
    service: Service, counts: list[int], limit: int
) -> None:
    await service.run_sql("delete from mails")
    left = {str(organizer): count for organizer, count in enumerate(counts, 1)}
    for organizer, count in left.items():
        await post_of(service, int(organizer), count)
    order: list[str] = []
    first = ""
    while mails := await due_mails(service, limit, first):
        order += [mail.owner for mail in mails]
        first = turns.next_owner(mails[-1].owner)
        await service.run_sql(
            "update mails set ended_at = now(), outcome = 'sent' where id = any(%(ids)s)",
            ids=[mail.id for mail in mails],
        )

    assert len(order) == sum(counts)
    for place, owner in enumerate(order):
        since = order[:place][::-1]
        between = set(since[: since.index(owner)] if owner in since else since)
        left[owner] -= 1
        waiting = {other for other, count in left.items() if count and other != owner}
        # An organizer who still waits has had a turn since the last one of this organizer, or this is the first turn of
        # both.
        assert owner not in since or waiting <= between
