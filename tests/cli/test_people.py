"""One person's data on the command line."""

import json

from tests.helpers.command_line import run_events_command
from tests.helpers.events_service import Service
from tests.helpers.people import end_event, list_registrations, read_all_text, sign_up


async def test_a_person_is_exported_as_json(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(title="Zeichnen\x9b2J \u202e für alle")
    await sign_up(service, event, "ann")

    result = await run_events_command(service, "person", "export", " Ann@Example.com ")

    exported = json.loads(result.stdout)
    assert exported["account"]["email"] == "ann@example.com"
    assert exported["registrations"][0]["event"] == "Zeichnen\x9b2J \u202e für alle"
    assert [character for character in result.stdout if not character.isprintable() and character != "\n"] == []
    assert result.stderr.startswith("Looked in ")


async def test_the_command_to_erase_says_first_what_would_happen(service: Service) -> None:
    ada = await service.organizer()
    past, coming = await ada.create_event(), await ada.create_event(title="Life\tdrawing \x1b[2J")
    for event in (past, coming):
        await sign_up(service, event, "ann")
    await end_event(service, past)
    before = await read_all_text(service)

    result = await run_events_command(service, "person", "erase", "ann@example.com")

    account, cancelled, event, registrations, mails, nothing = result.stdout.splitlines()
    assert account.startswith("Account: ")
    assert cancelled == "Registrations for events to come that would be cancelled: 1"
    assert event.split("\t")[:2] == [f"  {coming['id']}", r"Life drawing \x1b[2J"]
    assert registrations == "Other registrations that would be kept without address and name: 1"
    assert mails == "Mails that would be deleted: 2"
    assert nothing == "Nothing was changed. Say --yes to do it."
    assert await read_all_text(service) == before


async def test_a_person_is_erased_when_the_operator_says_yes(service: Service) -> None:
    ada = await service.organizer()
    past, coming = await ada.create_event(), await ada.create_event(capacity=1, waitinglist_capacity=1)
    for event in (past, coming):
        await sign_up(service, event, "ann", "bob")
    await end_event(service, past)

    result = await run_events_command(service, "person", "erase", "ann@example.com", "--yes")

    assert "were cancelled: 1\n" in result.stdout
    assert "Erased." in result.stdout
    assert "ann@" not in await read_all_text(service)
    assert [
        (registration["email"], registration["status"]) for registration in await list_registrations(ada, coming)
    ] == [("bob@example.com", "registered")]


async def test_an_account_may_be_named_by_its_number(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await sign_up(service, event, "ann")
    [(number,)] = await service.run_sql("select id from users where email = 'ann@example.com'")

    assert (await run_events_command(service, "person", "erase", str(number), "--yes")).returncode == 0
    again = await run_events_command(service, "person", "erase", str(number), "--yes")

    assert "ann@" not in await read_all_text(service)
    assert again.returncode == 1
    assert again.stderr.startswith("No account has this number, or its data was erased.")


async def test_organizers_and_strangers_are_refused_in_a_line(service: Service) -> None:
    ada = await service.organizer(email="ada@example.com")

    for command in (["export"], ["erase"], ["erase", "--yes"]):
        organizer = await run_events_command(service, "person", *command, "ada@example.com")
        stranger = await run_events_command(service, "person", *command, "nobody@example.com")
        assert (organizer.returncode, organizer.stdout) == (stranger.returncode, stranger.stdout) == (1, "")
        assert organizer.stderr.startswith(f"This account is that of the organizer {ada.slug}: ")
        assert "Instead, cancel its events" in organizer.stderr
        assert stranger.stderr.startswith("Nothing is stored about nobody@example.com.")
