"""An event is handed over at once; its registrations follow in portions."""

import asyncio
from functools import partial
from typing import Any

import pytest

from holdfast.events.events import hand_over_filing
from holdfast.events.mails import operations
from holdfast.events.mails.operations import ListMails
from holdfast.kit.contract.caller import api_key
from holdfast.kit.operations.steps import Steps
from tests.helpers.events_service import Client, Service

COUNT = 600
BATCH_SIZE = 20


class HandOverScene:
    """Ada's event with hundreds of registrations and mails, of which most have a seat; another of hers; and Eve."""

    def __init__(self, service: Service, ada: Client, eve: Client, admin: Client, event: int, other: int) -> None:
        self.service = service
        self.ada = ada
        self.eve = eve
        self.admin = admin
        self.event = event
        self.other = other

    async def hand_over(self, to: Client) -> None:
        answer = await self.admin.patch(f"/api/events/{self.event}", {"event": {"organizer_id": to.id}})
        assert answer.status_code == 200, answer.text
        assert answer.json()["data"]["organizer_id"] == to.id

    async def file(self, batches: int | None = None) -> None:
        """Let the job run, to its end or until it is killed after this many transactions."""
        try:
            await hand_over_filing.file_again(Killed(self.service, batches))
        except asyncio.CancelledError:
            assert batches is not None

    async def filed(self) -> dict[int, int]:
        """How many registrations of the event are filed under each organizer."""
        rows = await self.service.run_sql(
            "select organizer_id, count(*) from registrations where event_id = %(id)s group by 1", id=self.event
        )
        return dict(rows)

    async def unfinished(self) -> list[tuple[Any, ...]]:
        return await self.service.run_sql("select organizer_id, handed_to from event_hand_overs")

    async def listed(self, client: Client, path: str = "/api/registrations", **query: Any) -> list[str]:
        """Everything in a list, page by page: who it is of."""
        addresses: list[str] = []
        while True:
            answer = await client.get(path, params={"limit": 100, "offset": len(addresses), **query})
            assert answer.status_code == 200, answer.text
            addresses += [registration["email"] for registration in answer.json()["data"]]
            if not answer.json()["pagination"]["has_more"]:
                return addresses

    async def mails(self, client: Client) -> int:
        """How many mails of the event an organizer sees."""
        count, before = 0, None
        while True:
            command = ListMails(limit=100, before=before)
            page = await self.service.database.read(partial(operations.list, caller=caller(client), command=command))
            count += sum(registration.event_id == self.event for registration in page)
            if len(page) < 100:
                return count
            before = page[-1].id

    async def assert_all_is_of(self, owner: Client, former: Client) -> None:
        """Everything of the event is the one's and nothing is the other's, in every list and each in order."""
        people = [f"p{number}@example.com" for number in range(1, COUNT + 1)]
        assert [email for email in await self.listed(owner) if email.startswith("p")] == people
        assert await self.listed(owner, event_id=self.event) == people
        assert {*people} < {*await self.listed(owner, "/api/users")}
        assert await self.mails(owner) == COUNT
        assert not {*people} & {*await self.listed(former)}
        assert not {*people} & {*await self.listed(former, "/api/users")}
        assert await self.mails(former) == 0
        for path in (f"/api/registrations?event_id={self.event}", f"/api/registrations/{self.event}/{handle(1)}"):
            assert (await former.get(path)).status_code == 403
            assert (await owner.get(path)).status_code == 200


class Killed(Steps[Any]):
    """Steps that a process does not survive: after this many transactions it is killed."""

    def __init__(self, service: Service, left: int | None) -> None:
        super().__init__(service.database)
        self._left = left

    async def transact(self, work: Any) -> Any:
        if self._left == 0:
            raise asyncio.CancelledError
        self._left = None if self._left is None else self._left - 1
        return await super().transact(work)


def caller(client: Client) -> Any:
    return api_key(0, client.id, frozenset({"read_events"}))


def handle(number: int) -> str:
    return str(number).zfill(8).translate(str.maketrans("0123456789", "abcdefghij"))


@pytest.fixture
async def scene(service: Service, monkeypatch: pytest.MonkeyPatch) -> HandOverScene:
    monkeypatch.setattr(hand_over_filing, "FILING_BATCH_SIZE", BATCH_SIZE)
    ada, eve = await service.organizer(), await service.organizer("Eve Events")
    event = (await ada.create_event(capacity=COUNT * 9 // 10, waitinglist_capacity=COUNT))["id"]
    other = (await ada.create_event())["id"]
    await service.run_sql(
        """
        insert into users (public_id, email)
        select translate(lpad(g::text, 8, '0'), '0123456789', 'abcdefghij'), 'p' || g || '@example.com'
          from generate_series(1, %(count)s) as g
        """,
        count=COUNT,
    )
    await service.run_sql(
        """
        with stored as (
            insert into registrations (event_id, organizer_id, user_id, arrival, status, amount_paid, received_at,
                                       settled_at)
            select %(event)s, %(ada)s, id, nextval('registration_arrivals'),
                   case when substr(email, 2, position('@' in email) - 2)::int %% 10 = 0 then 'waitlisted'
                        else 'registered' end::registration_status, 0,
                   now() - interval '1 hour' + substr(email, 2, position('@' in email) - 2)::int * interval '1 ms',
                   now()
              from users where email ~ '^p[0-9]+@' returning *)
        insert into mails (kind, thread, recipient, arguments, outcome, ended_at)
        select 'seat', 'registration ' || event_id || ' ' || public_id, email,
               jsonb_build_object('organizer_id', organizer_id, 'event_id', event_id, 'user_id', public_id,
                                  'arrival', arrival),
               case when arrival %% 2 = 0 then 'sent' end, case when arrival %% 2 = 0 then now() end
          from stored join users on users.id = user_id
        """,
        event=event,
        ada=ada.id,
    )
    await ada.register(other, email="ann@example.com")
    await service.settle()
    return HandOverScene(service, ada, eve, await service.admin(), event, other)


async def test_an_event_is_handed_over_at_once_and_its_registrations_follow_in_batches(scene: HandOverScene) -> None:
    await scene.assert_all_is_of(scene.ada, scene.eve)

    await scene.hand_over(scene.eve)

    assert await scene.filed() == {scene.ada.id: COUNT}
    await scene.assert_all_is_of(scene.eve, scene.ada)
    assert await scene.listed(scene.ada) == ["ann@example.com"]
    await scene.file()
    assert await scene.filed() == {scene.eve.id: COUNT}
    assert await scene.unfinished() == []
    await scene.assert_all_is_of(scene.eve, scene.ada)
    assert await scene.listed(scene.ada) == ["ann@example.com"]


@pytest.mark.parametrize("batches", [1, COUNT // BATCH_SIZE // 2, COUNT // BATCH_SIZE + 5])
async def test_a_handover_that_is_killed_in_the_middle_continues_where_it_was(
    scene: HandOverScene, batches: int
) -> None:
    await scene.hand_over(scene.eve)

    await scene.file(batches)

    moved = min(batches * BATCH_SIZE, COUNT)
    left = COUNT - moved
    assert await scene.filed() == {scene.eve.id: moved} | ({scene.ada.id: left} if left else {})
    assert await scene.unfinished() == [(scene.ada.id, scene.eve.id)]
    await scene.assert_all_is_of(scene.eve, scene.ada)
    await scene.file()
    assert await scene.filed() == {scene.eve.id: COUNT}
    assert await scene.unfinished() == []
    await scene.assert_all_is_of(scene.eve, scene.ada)


async def test_people_who_register_or_move_during_a_handover_belong_to_the_new_organizer(scene: HandOverScene) -> None:
    await scene.hand_over(scene.eve)
    await scene.file(3)

    body = {"registration": {"event_id": scene.event, "email": "x@example.com"}}
    refusal = await scene.ada.post("/api/registrations", body)
    await scene.eve.register(scene.event, email="late@example.com")
    # The last is not filed yet under the new organizer, but a mail about it already names that organizer.
    last = f"/api/registrations/{scene.event}/{handle(COUNT)}"
    assert (await scene.eve.delete(f"/api/registrations/{scene.event}/{handle(COUNT - 1)}")).status_code == 204
    await scene.service.settle()

    assert refusal.status_code == 403
    assert (await scene.ada.get(last)).status_code == 403
    mails = await scene.service.run_sql(
        "select kind, (arguments ->> 'organizer_id')::bigint from mails order by id desc limit 3"
    )
    assert {organizer for _, organizer in mails} == {scene.eve.id}
    assert {kind for kind, _ in mails} >= {"removed", "waitlisted"}
    assert (await scene.listed(scene.eve))[-1] == "late@example.com"
    await scene.file()
    assert await scene.filed() == {scene.eve.id: COUNT}
    assert await scene.listed(scene.ada) == ["ann@example.com"]


async def test_an_event_handed_over_several_times_belongs_to_the_last_organizer(scene: HandOverScene) -> None:
    cal = await scene.service.organizer("Cal Events")
    await scene.hand_over(scene.eve)
    await scene.file(4)
    await scene.hand_over(cal)
    await scene.file(3)
    await scene.assert_all_is_of(cal, scene.eve)
    await scene.assert_all_is_of(cal, scene.ada)

    await scene.hand_over(scene.ada)

    await scene.assert_all_is_of(scene.ada, scene.eve)
    await scene.assert_all_is_of(scene.ada, cal)
    await scene.file()
    assert await scene.filed() == {scene.ada.id: COUNT}
    assert await scene.unfinished() == []
    assert await scene.service.run_sql(
        "select organizer_id from event_owners where event_id = %(id)s", id=scene.event
    ) == [(scene.ada.id,)]


async def test_a_registration_that_changes_its_account_during_a_handover_is_moved_too(scene: HandOverScene) -> None:
    [(low,)] = await scene.service.run_sql("select min(id) from users")
    await scene.hand_over(scene.eve)
    await scene.file(5)
    # The owner of an address is given the registrations of another account, whose number is less.
    await scene.service.run_sql(
        "update registrations set user_id = %(low)s where event_id = %(event)s and user_id = "
        "(select id from users where public_id = %(handle)s)",
        low=low,
        event=scene.event,
        handle=handle(COUNT),
    )

    await scene.file()

    assert await scene.filed() == {scene.eve.id: COUNT}
    assert await scene.unfinished() == []


async def test_a_person_of_an_event_that_is_handed_over_is_known_to_the_new_organizer_only(
    scene: HandOverScene,
) -> None:
    of_eve = (await scene.eve.create_event())["id"]
    await scene.hand_over(scene.eve)

    async def register(client: Client, event: int) -> int:
        body = {"registration": {"event_id": event, "user_id": handle(7)}}
        return (await client.post("/api/registrations", body)).status_code

    assert await register(scene.eve, of_eve) == 202
    assert await register(scene.ada, scene.other) == 422
    await scene.file()
    assert await register(scene.ada, scene.other) == 422


async def test_no_registration_is_filed_under_an_organizer_who_never_had_the_event(scene: HandOverScene) -> None:
    with pytest.raises(Exception, match="who never owned the event"):
        await scene.service.run_sql(
            "update registrations set organizer_id = %(eve)s where event_id = %(event)s",
            eve=scene.eve.id,
            event=scene.event,
        )
