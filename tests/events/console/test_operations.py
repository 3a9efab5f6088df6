"""The operations of the console check ownership themselves, whether or not a page has checked it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from holdfast.events.check_in import operations as by_hand
from holdfast.events.check_in.operations import CheckInPeople
from holdfast.events.console.account import branding_page
from holdfast.events.console.mails import mail_paragraphs_page
from holdfast.events.console.payments import event_payments_pages, payments_page
from holdfast.events.console.people import add_registration_page
from holdfast.events.console.queues import queues_pages
from holdfast.events.events.edits import EDIT_EVENT, EditEvent
from holdfast.events.events.model import CreateEvent, GetEvent, UpdateEvent
from holdfast.events.events.overview import COUNT_FIGURES, COUNT_PEOPLE
from holdfast.events.mails.event_copies import COPY_EVENT, CopyEvent
from holdfast.events.mails.paragraphs import UpdateMailParagraphs
from holdfast.events.organizers.branding import ChangeLogo
from holdfast.events.payments.operations import ListPayments, ListPersonPayments
from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.events.queues.model import GetQueue
from holdfast.events.registrations import bulk_changes
from holdfast.events.registrations.bulk_changes import BulkCommand, MoveRegistrations, RemoveRegistrations
from holdfast.events.registrations.details_mail import RESEND_MAIL, ResendMail
from holdfast.events.registrations.model import AddPerson
from holdfast.events.settings import Settings
from holdfast.events.users.model import new_public_ids
from holdfast.kit.contract.caller import person
from holdfast.kit.contract.command import check
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, VALIDATION_FAILED, Problem, ProblemType
from holdfast.kit.operations.operation import Operation
from holdfast.kit.operations.runner import Runner
from tests.helpers.events_service import Client, Service, running_events

NOWHERE = 4711


def copy(id: int, **fields: Any) -> CopyEvent:
    """Asks for a copy of an event."""
    event = {"title": "A copy", "body": "The same again.", "datetime": "2036-07-12T19:30:00Z", "capacity": 3}
    return CopyEvent(event_id=id, event=check(CreateEvent, {**event, "pricing_mode": "free", "price": 0, **fields}))


async def refusal(service: Service, operation: Operation, who: Client, command: Any) -> ProblemType:
    """What an organizer who is signed in is refused with."""
    run = Runner((operation,), service.database).run_of(operation)
    with pytest.raises(Problem) as error:
        await run(person(1, who.id), command)
    return error.value.type


async def test_an_event_of_another_organizer_or_a_missing_one_cannot_be_edited(service: Service) -> None:
    ada, bob = await service.organizer(), await service.organizer()
    event = await ada.create_event()

    def edit(id: int) -> EditEvent:
        return EditEvent(event_id=id, seen=None, changes=UpdateEvent(event_id=id, title="Taken over"))

    assert await refusal(service, EDIT_EVENT, bob, edit(event["id"])) is FORBIDDEN
    assert await refusal(service, EDIT_EVENT, bob, edit(NOWHERE)) is NOT_FOUND
    assert (await ada.get(f"/api/events/{event['id']}")).json()["data"]["title"] == event["title"]


@pytest.mark.parametrize("operation", [COUNT_PEOPLE, COUNT_FIGURES], ids=lambda it: it.name)
async def test_people_of_another_organizers_event_or_of_a_missing_one_cannot_be_counted(
    service: Service, operation: Operation
) -> None:
    ada, bob = await service.organizer(), await service.organizer()
    event = await ada.create_event()

    assert await refusal(service, operation, bob, GetEvent(event_id=event["id"])) is FORBIDDEN
    assert await refusal(service, operation, bob, GetEvent(event_id=NOWHERE)) is NOT_FOUND


@pytest.mark.parametrize(
    ("operation", "command"),
    [
        (bulk_changes.REMOVE_REGISTRATIONS, RemoveRegistrations),
        (bulk_changes.MOVE_REGISTRATIONS, MoveRegistrations),
        (by_hand.CHECK_IN_PEOPLE, partial(CheckInPeople, device="Door 1")),
    ],
    ids=["remove", "move", "check in"],
)
async def test_people_of_another_organizers_event_or_of_a_missing_one_cannot_be_changed(
    service: Service, operation: Operation, command: Callable[..., BulkCommand]
) -> None:
    ada, bob = await service.organizer(), await service.organizer()
    event = await ada.create_event()
    poll = await ada.register(event["id"], email="ann@example.com")
    await service.settle()
    people = [poll.rpartition("/")[2]]

    assert await refusal(service, operation, bob, command(event_id=event["id"], user_ids=people)) is FORBIDDEN
    assert await refusal(service, operation, bob, command(event_id=NOWHERE, user_ids=people)) is NOT_FOUND
    assert (await ada.get(poll)).json()["data"]["status"] == "registered"


async def test_a_mail_about_a_foreign_or_missing_registration_cannot_be_resent(service: Service) -> None:
    ada, bob = await service.organizer(), await service.organizer()
    event = await ada.create_event()
    poll = await ada.register(event["id"], email="ann@example.com")
    await service.settle()
    ann, [nobody] = poll.rpartition("/")[2], new_public_ids(1)

    for who, command, problem in (
        (bob, ResendMail(event_id=event["id"], user_id=ann), FORBIDDEN),
        (ada, ResendMail(event_id=NOWHERE, user_id=ann), NOT_FOUND),
        (ada, ResendMail(event_id=event["id"], user_id=nobody), NOT_FOUND),
    ):
        assert await refusal(service, RESEND_MAIL, who, command) is problem


async def test_a_queue_of_another_organizer_has_no_history_to_read(service: Service) -> None:
    ada, bob = await service.organizer(), await service.organizer()
    queue = await ada.create_queue()

    for id in (queue["id"], NOWHERE):
        assert await refusal(service, queues_pages.READ_HISTORY, bob, GetQueue(queue_id=id)) is NOT_FOUND


async def test_an_event_of_another_organizer_or_a_missing_one_cannot_be_copied(service: Service) -> None:
    ada, bob = await service.organizer(), await service.organizer()
    event = await ada.create_event()

    assert await refusal(service, COPY_EVENT, bob, copy(event["id"])) is FORBIDDEN
    assert await refusal(service, COPY_EVENT, bob, copy(NOWHERE)) is NOT_FOUND
    assert await service.run_sql("select id from events") == [(event["id"],)]


async def test_a_copy_of_an_event_takes_no_photo_of_another_organizer(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    command = copy(event["id"], image_keys=["photos/2/abcdefghijklmnopqrstuv.jpg"])

    assert await refusal(service, COPY_EVENT, ada, command) is VALIDATION_FAILED


async def test_a_photo_of_another_organizer_cannot_be_a_logo(service: Service) -> None:
    ada = await service.organizer()

    command = ChangeLogo(key="photos/2/abcdefghijklmnopqrstuv.jpg")

    assert await refusal(service, branding_page.CHANGE_LOGO, ada, command) is VALIDATION_FAILED


async def test_a_copy_counts_among_the_events_that_an_organizer_may_have(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"events_per_organizer": 1})) as service:
        ada = await service.organizer()
        event = await ada.create_event()

        assert await refusal(service, COPY_EVENT, ada, copy(event["id"])) is QUOTA_EXCEEDED


async def test_mail_paragraphs_of_a_foreign_or_missing_event_cannot_be_changed(service: Service) -> None:
    ada, bob = await service.organizer(), await service.organizer()
    event = await ada.create_event()

    def update(id: int) -> UpdateMailParagraphs:
        return UpdateMailParagraphs(event_id=id, version="", seat="Taken over")

    assert await refusal(service, mail_paragraphs_page.UPDATE, bob, update(event["id"])) is FORBIDDEN
    assert await refusal(service, mail_paragraphs_page.UPDATE, bob, update(NOWHERE)) is NOT_FOUND
    assert await service.run_sql("select * from mail_paragraphs") == []


async def test_payments_for_a_foreign_or_missing_event_cannot_be_read(service: Service) -> None:
    ada, bob = await service.organizer(), await service.organizer()
    event = await ada.create_event()

    def look(id: int) -> ListPersonPayments:
        return ListPersonPayments(event_id=id, user_id="1a2b3c4d5e6f7081")

    for operation in (payments_page.READ_PAYMENTS, payments_page.READ_PAYER):
        assert await refusal(service, operation, bob, look(event["id"])) is FORBIDDEN
        assert await refusal(service, operation, bob, look(NOWHERE)) is NOT_FOUND
    assert await refusal(service, event_payments_pages.LIST, bob, ListPayments(event["id"], 1)) is FORBIDDEN
    assert await refusal(service, event_payments_pages.LIST, bob, ListPayments(NOWHERE, 1)) is NOT_FOUND


async def test_people_can_be_added_by_hand_only_to_the_organizers_own_published_events(service: Service) -> None:
    ada, bob = await service.organizer(), await service.organizer()
    event, draft = await ada.create_event(), await ada.create_event(published=False)

    def add(id: int) -> AddPerson:
        return AddPerson(event_id=id, email="ann@example.com", name="Ann", notify=False)

    assert await refusal(service, add_registration_page.ADD_PERSON, bob, add(event["id"])) is FORBIDDEN
    assert await refusal(service, add_registration_page.ADD_PERSON, ada, add(NOWHERE)) is NOT_FOUND
    assert await refusal(service, add_registration_page.ADD_PERSON, ada, add(draft["id"])) is VALIDATION_FAILED
