"""Search by a part of a name or address among many registrations, before and after a job has indexed them."""

import asyncio
import random
from functools import partial
from typing import Any

import pytest

from holdfast.events.check_in.model import FindPeople
from holdfast.events.check_in.operations import FIND_PEOPLE
from holdfast.events.console.people.registrations_pages import SEARCH
from holdfast.events.people.model import AccountSelector
from holdfast.events.registrations import substring_search
from holdfast.events.registrations.model import RegistrationStatus
from holdfast.events.registrations.search import SearchRegistrations
from holdfast.events.registrations.substring_search import IndexArguments
from holdfast.events.service import IDEMPOTENCY
from holdfast.kit.contract.caller import person
from holdfast.kit.operations.runner import Runner
from holdfast.kit.operations.steps import Steps
from tests.helpers.event_visitor import Visitor
from tests.helpers.events_service import Client, Service, eventually
from tests.helpers.people import end_event, erase, sign_up

NAMES = ("ann", "anna", "hannah", "bob", "cleo", "dan", "eve", "joanna")


class SearchedEvent:
    """An event of Ada's whose registrations go into the index when it is searched."""

    def __init__(self, service: Service, ada: Client, event: dict[str, Any]) -> None:
        self.service = service
        self.event = event
        self._caller = person(1, ada.id)
        self._run = Runner((SEARCH, FIND_PEOPLE), service.database, IDEMPOTENCY)

    async def search(
        self, text: str, status: RegistrationStatus | None = None, *, newest_first: bool = True
    ) -> list[str]:
        """The names of those whom a search in the console finds, part by part; each is `ann` for ann@example.com."""
        command = SearchRegistrations(
            event_id=self.event["id"], text=text, status=status, newest_first=newest_first, limit=2
        )
        names: list[str] = []
        while True:
            result = await self._run.run_of(SEARCH)(self._caller, command)
            names += [str(registration.email).partition("@")[0] for registration in result.registrations]
            if result.next_key is None:
                return names
            command.after = result.next_key

    async def at_the_door(self, text: str) -> list[str]:
        rows = await self._run.run_of(FIND_PEOPLE)(self._caller, FindPeople(event_id=self.event["id"], text=text))
        return [row.email.partition("@")[0] for row in rows]

    async def job_count(self) -> int:
        """How many jobs were enqueued."""
        [(count,)] = await self.service.run_sql(
            "select count(*) from procrastinate_jobs where task_name = 'index_registrations'"
        )
        return count

    async def index(self) -> None:
        """What the job does."""
        await substring_search.index(Steps(self.service.database), IndexArguments(self.event["id"]))

    async def indexed(self) -> int:
        """How many registrations the index has."""
        [(count,)] = await self.service.run_sql("select count(*) from searched_registrations")
        return count

    async def a_minute_later(self) -> None:
        await self.service.run_sql("update searched_events set touched_at = touched_at - interval '1 minute'")


@pytest.fixture
async def crowd(service: Service, monkeypatch: pytest.MonkeyPatch) -> SearchedEvent:
    """Few are many here, and the index is always searched."""
    monkeypatch.setattr(substring_search, "REINDEX_THRESHOLD", len(NAMES))
    monkeypatch.setattr(substring_search, "INDEX_BATCH_SIZE", 3)
    monkeypatch.setattr(substring_search, "MAX_SCANNED_ROWS", "0")
    ada = await service.organizer()
    return SearchedEvent(service, ada, await ada.create_event(capacity=6, waitinglist_capacity=100))


async def test_the_search_index_is_built_when_many_registrations_are_searched(crowd: SearchedEvent) -> None:
    await sign_up(crowd.service, crowd.event, *NAMES[:-1])
    few = await crowd.search("ann"), await crowd.job_count()
    await sign_up(crowd.service, crowd.event, *NAMES[-1:])
    many = await crowd.search("ann"), await crowd.job_count()
    again = await crowd.search("ann"), await crowd.job_count()

    assert few == (["hannah", "anna", "ann"], 0)
    assert many == again == (["joanna", "hannah", "anna", "ann"], 1)
    assert await crowd.indexed() == 0


async def test_listing_without_a_search_builds_no_index(crowd: SearchedEvent) -> None:
    await sign_up(crowd.service, crowd.event, *NAMES)

    assert len(await crowd.search("")) == len(NAMES)
    assert await crowd.search("ann@example.com") == ["ann"]
    assert await crowd.job_count() == 0


async def test_the_index_is_brought_up_to_date_when_as_many_have_come_again(crowd: SearchedEvent) -> None:
    await sign_up(crowd.service, crowd.event, *NAMES)
    await crowd.search("ann")
    await crowd.index()
    await crowd.a_minute_later()
    await crowd.search("ann")
    before = await crowd.job_count()
    await sign_up(crowd.service, crowd.event, *(f"late-{name}" for name in NAMES))
    await crowd.search("ann")

    assert (before, await crowd.job_count()) == (1, 2)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ann", ["joanna", "hannah", "anna", "ann"]),
        ("nna", ["joanna", "hannah", "anna"]),
        ("NNA EX", ["joanna", "hannah", "anna"]),
        ("ex nna", ["joanna", "hannah", "anna"]),
        ("anna@exa", ["joanna", "anna"]),
        ("eo", ["cleo"]),
        ("b@example", ["bob"]),
        ("b@example.com bob", ["bob"]),
        ("bo b@", ["bob"]),
        ("bob cleo", []),
        ("%nn", []),
        ("_nn", []),
        ("zzz", []),
        ("'; drop table users; --", []),
    ],
)
async def test_the_search_index_finds_what_a_search_without_it_finds(
    crowd: SearchedEvent, text: str, names: list[str]
) -> None:
    await sign_up(crowd.service, crowd.event, *NAMES)
    before = await crowd.search(text)
    await crowd.search("ann")
    await crowd.index()

    assert await crowd.indexed() == len(NAMES)
    assert before == await crowd.search(text) == names
    assert await crowd.search(text, newest_first=False) == names[::-1]
    assert sorted(await crowd.at_the_door(text)) == sorted(names)


async def test_a_search_at_check_in_lists_people_with_a_seat_first(crowd: SearchedEvent) -> None:
    await sign_up(crowd.service, crowd.event, *NAMES)
    await crowd.at_the_door("ann")
    await crowd.index()

    assert (await crowd.job_count(), await crowd.indexed()) == (1, len(NAMES))
    assert await crowd.at_the_door("ann") == ["ann", "anna", "hannah", "joanna"]


async def test_a_search_can_be_limited_to_one_status(crowd: SearchedEvent) -> None:
    await sign_up(crowd.service, crowd.event, *NAMES)
    await crowd.search("ann")
    await crowd.index()

    assert await crowd.search("ann", "registered") == ["hannah", "anna", "ann"]
    assert await crowd.search("ann", "waitlisted", newest_first=False) == ["joanna"]
    assert await crowd.search("ann", "pending") == []


async def test_a_common_text_is_found_in_the_order_of_the_list(
    crowd: SearchedEvent, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sign_up(crowd.service, crowd.event, *NAMES)
    await crowd.search("ann")
    await crowd.index()
    monkeypatch.setattr(substring_search, "MAX_SCANNED_ROWS", "2000")

    assert await crowd.search("example") == [*NAMES[::-1]]


async def test_registrations_of_other_events_are_not_found_by_a_search(crowd: SearchedEvent) -> None:
    await sign_up(crowd.service, crowd.event, *NAMES)
    await crowd.search("ann")
    await crowd.index()
    ben = await crowd.service.organizer()
    other = SearchedEvent(crowd.service, ben, await ben.create_event(capacity=100))
    await sign_up(crowd.service, other.event, *(f"ben-{name}" for name in NAMES), "ann")
    await other.search("ann")
    await other.index()

    assert await other.search("ann") == ["ann", "ben-joanna", "ben-hannah", "ben-anna", "ben-ann"]
    assert await crowd.search("ann") == ["joanna", "hannah", "anna", "ann"]


async def test_an_erased_person_is_not_in_the_search_index(crowd: SearchedEvent) -> None:
    await sign_up(crowd.service, crowd.event, *NAMES)
    await crowd.search("ann")
    await crowd.index()
    await end_event(crowd.service, crowd.event)
    await erase(crowd.service)

    assert await crowd.search("ann") == ["joanna", "hannah", "anna"]
    assert await crowd.service.run_sql("select from searched_registrations where words like 'ann@%%'") == []


async def test_a_person_erased_while_the_index_is_written_is_not_in_it(crowd: SearchedEvent) -> None:
    await sign_up(crowd.service, crowd.event, *NAMES)
    await crowd.search("ann")
    await end_event(crowd.service, crowd.event)
    async with crowd.service.database.transaction() as job:
        await job.value("select true from searched_events for no key update")
        written = await job.value(substring_search.INDEX_BATCH, {"event_id": crowd.event["id"], "batch_size": 100})
        erasing = asyncio.create_task(erase(crowd.service))
        await eventually(lambda: crowd.service.run_sql("select from pg_locks where not granted"))
    await erasing

    assert written == len(NAMES)
    assert await crowd.service.run_sql("select from searched_registrations where words like 'ann@%%'") == []


async def test_a_deleted_registration_is_not_in_the_search_index(crowd: SearchedEvent) -> None:
    await sign_up(crowd.service, crowd.event, *NAMES)
    await crowd.search("ann")
    await crowd.index()
    await erase(crowd.service)  # before the event: the registration is deleted

    assert await crowd.indexed() == len(NAMES) - 1
    assert await crowd.search("ann") == ["joanna", "hannah", "anna"]


async def test_an_organizer_is_found_by_a_new_name(crowd: SearchedEvent) -> None:
    """An account gets a name when its owner becomes an organizer; the others do not know it, but an admin does."""
    await sign_up(crowd.service, crowd.event, *NAMES)
    await crowd.search("ann")
    await crowd.index()
    await crowd.service.run_sql("update registrations set name = null")
    await crowd.service.run_sql("update users set name = 'Zacharias' where email = 'eve@example.com'")

    assert await crowd.search("zach") == ["eve"]
    assert await crowd.search("eve exa zach") == ["eve"]
    assert await crowd.search("eve example example.org") == []


async def test_the_index_is_not_built_beyond_the_first_pending_registration(crowd: SearchedEvent) -> None:
    await sign_up(crowd.service, crowd.event, *NAMES)
    await Visitor(crowd.service).register(crowd.event["id"], "annabel@example.com", name="Annabel Example")
    await crowd.search("ann")
    await crowd.index()

    assert await crowd.indexed() == len(NAMES)
    assert await crowd.search("ann") == ["annabel", "joanna", "hannah", "anna", "ann"]


async def test_a_person_who_registers_again_after_a_rejection_is_found_once(crowd: SearchedEvent) -> None:
    await sign_up(crowd.service, crowd.event, *NAMES)
    await crowd.service.run_sql(
        "update registrations set status = 'rejected', reason = 'event_full' where name ~ 'Bob'"
    )
    await crowd.search("bob")
    await crowd.index()
    rejected = await crowd.search("bob")
    await sign_up(crowd.service, crowd.event, "bob")

    assert rejected == await crowd.search("bob") == ["bob"]
    await crowd.index()
    assert await crowd.search("bob") == ["bob"]


@pytest.mark.parametrize("seed", range(4))
async def test_a_search_by_the_index_always_finds_what_a_search_without_it_finds(
    crowd: SearchedEvent, seed: int
) -> None:
    """People come, are searched, and are erased, in any order, and the job runs now and then."""
    dice = random.Random(seed)
    service, names = crowd.service, [*NAMES]
    await sign_up(service, crowd.event, *NAMES)
    await crowd.search("ann")
    for number in range(12):
        match dice.choice(["come", "come", "pend", "erase", "index", "batch"]):
            case "come":
                names.append(f"{dice.choice(NAMES)}{number}")
                await sign_up(service, crowd.event, names[-1])
            case "pend":
                names.append(f"{dice.choice(NAMES)}{number}")
                await Visitor(service).register(crowd.event["id"], f"{names[-1]}@example.com", name=names[-1])
            case "erase":
                gone = names.pop(dice.randrange(len(names)))
                await erase(service, AccountSelector(email=f"{gone}@example.com"))
            case "index":
                await crowd.index()
            case _:
                await service.database.transact(partial(substring_search.index_batch, event_id=crowd.event["id"]))
        part = dice.choice(["ann", "nna", "bob", "exam", "eve", "o@e"])
        expected = [name for name in names[::-1] if part in f"{name}@example.com"]

        assert await crowd.search(part) == expected
        assert sorted(await crowd.at_the_door(part)) == sorted(expected)
