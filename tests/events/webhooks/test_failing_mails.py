"""An endpoint that is switched off after days of failures is told to its organizer by mail, once."""

from typing import Any

import pytest

from holdfast.events.mails import sending
from holdfast.events.mails.writing import write
from holdfast.kit.mail.message import Envelope
from tests.helpers.events_service import Service
from tests.helpers.webhook_programs import OrganizerProgram, OrganizerPrograms, change
from tests.helpers.webhook_receiver import ReceiverAnswer
from tests.kit.mail.posting import all_due, text_of


async def endpoint_mails(service: Service) -> list[str]:
    """The texts of the mails about endpoints, as they are sent when they are due."""

    async def writer(batch: Any) -> list[bytes]:
        return write(batch)

    mails = [mail for mail in await all_due(service.database) if mail.kind == "webhook_failing"]
    rendered = await sending.render(writer, service.database, mails)
    return [text_of(envelope) for envelope in rendered if isinstance(envelope, Envelope)]


async def switch_off(service: Service, programs: OrganizerPrograms, **fields: Any) -> OrganizerProgram:
    """A program that was switched off a moment ago."""
    ada = await service.organizer("Ada Events", email="ada@example.com")
    await service.run_sql("update users set proved_at = now() where id = %(id)s", id=ada.id)
    program = await programs.add(ada, **fields)
    program.receiver.answer = lambda _: ReceiverAnswer(500)
    for _ in range(2):
        await ada.create_event()
    await program.deliver()
    await service.run_sql("update webhook_endpoints set failing_since = now() - interval '5 days 1 minute'")
    await program.pass_pauses()
    await program.deliver()
    return program


@pytest.fixture
async def failing_program(service: Service, programs: OrganizerPrograms) -> OrganizerProgram:
    return await switch_off(service, programs)


async def test_an_organizer_gets_a_mail_when_an_endpoint_is_switched_off(
    service: Service, failing_program: OrganizerProgram
) -> None:
    await failing_program.pass_pauses()
    await failing_program.deliver()

    [mail] = await endpoint_mails(service)

    assert mail.startswith("ada@example.com: Your webhook to 127.0.0.1 is switched off\n")
    assert f"/console/webhooks/{failing_program.endpoint['id']}" in mail


async def test_an_organizer_is_told_in_the_language_of_the_endpoint(
    service: Service, programs: OrganizerPrograms
) -> None:
    await switch_off(service, programs, language="de")

    [mail] = await endpoint_mails(service)

    assert mail.startswith("ada@example.com: Ihr Webhook ")


async def test_an_endpoint_that_was_activated_again_is_not_mailed(
    service: Service, failing_program: OrganizerProgram
) -> None:
    await change(failing_program.organizer, failing_program.path, active=True)

    assert await endpoint_mails(service) == []


async def test_an_address_that_is_no_longer_that_of_the_organizer_gets_no_mail(
    service: Service, failing_program: OrganizerProgram
) -> None:
    await service.run_sql(
        "update users set email = 'eva@example.com' where id = %(id)s", id=failing_program.organizer.id
    )

    assert await endpoint_mails(service) == []


async def test_an_organizer_with_an_address_that_was_not_proved_gets_no_mail(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada = await service.organizer("Ada Events", email="ada@example.com")
    program = await programs.add(ada)
    await service.run_sql("update users set proved_at = null where id = %(id)s", id=ada.id)

    await service.run_sql(
        "update webhook_endpoints set status = 'failing' where id = %(id)s", id=program.endpoint["id"]
    )

    assert await service.run_sql("select count(*) from mails where kind = 'webhook_failing'") == [(0,)]
