"""Organizers, shops and their keys on the command line."""

import re

from tests.helpers.command_line import run_events_command, run_holdfast
from tests.helpers.events_service import Client, Service


async def test_organizers_are_listed_oldest_first(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer("Ben\tEvents")

    listed = (await run_events_command(service, "organizer", "list")).stdout.splitlines()

    assert [line.split("\t")[:2] for line in listed] == [
        [str(organizer.id), organizer.slug] for organizer in (ada, ben)
    ]
    assert listed[1].endswith("\tBen Events")


async def test_an_organizer_who_lost_the_key_gets_a_new_one_by_slug(service: Service) -> None:
    ada, _ = await service.organizer(), await service.organizer("Ben Events")

    await assert_key_is_made_for(service, ada, ada.slug)


async def test_an_organizer_may_be_named_by_id_too(service: Service) -> None:
    _, ben = await service.organizer(), await service.organizer("Ben Events")

    await assert_key_is_made_for(service, ben, str(ben.id))


async def assert_key_is_made_for(service: Service, organizer: Client, name: str) -> None:
    """Assert that the key that is made for a name is a key of the organizer."""
    made = await run_events_command(service, "key", "create", "--organizer", name, "--name", "Again")

    key = made.stdout.splitlines()[-1]
    assert re.fullmatch(r"hf_[\w-]{43}", key)
    listed = await service.http.get("/api/keys", headers={"X-API-Key": key})
    assert {key["user_id"] for key in listed.json()["data"]} == {organizer.id}


async def test_an_unknown_slug_of_an_organizer_is_refused_in_one_line(service: Service) -> None:
    made = await run_events_command(service, "key", "create", "--organizer", "nobody", "--name", "Lost")

    assert (made.returncode, made.stdout) == (1, "")
    assert made.stderr == "No organizer has the slug nobody. See: holdfast events organizer list\n"


async def test_active_keys_are_listed_masked_with_who_they_are_for(service: Service) -> None:
    ada = await service.organizer()
    await service.admin()

    listed = (await run_events_command(service, "key", "list")).stdout

    assert re.search(rf"^\d+\t{ada.id}\thf_.{{5}}\*{{8}}\t\S+Z\tFirst key$", listed, re.MULTILINE)
    assert re.search(r"^\d+\tadmin\thf_.{5}\*{8}\t\S+Z\tTests$", listed, re.MULTILINE)
    assert ada.key
    assert ada.key not in listed


async def test_an_organizer_added_on_the_command_line_has_a_key_and_follows_the_same_rules(service: Service) -> None:
    made = await run_events_command(service, "organizer", "add", "Zoë's Events", "--email", "Zoe@example.com")
    again = await run_events_command(service, "organizer", "add", "Zoë's Events", "--email", "zoe@example.com")
    short = await run_events_command(service, "organizer", "add", "Zoë", "--email", "zoe")

    first, signs_in, *_, key = made.stdout.splitlines()
    assert re.fullmatch(r"Organizer \d+, Zoë's Events: http://127.0.0.1:8002/organizers/zoe-s-events", first)
    assert signs_in.startswith("zoe@example.com signs in at http://127.0.0.1:8002/sign-in")
    listed = await service.http.get("/api/keys", headers={"X-API-Key": key})
    assert [row["name"] for row in listed.json()["data"]] == ["First key"]
    assert again.returncode == short.returncode == 1
    assert "email: is already taken. slug: is already taken." in again.stderr
    assert "name: " in short.stderr
    assert "email: " in short.stderr


async def test_a_key_is_revoked_by_the_id_that_the_list_shows(service: Service) -> None:
    ada = await service.organizer()
    [id, owner, *_] = (await run_events_command(service, "key", "list")).stdout.split("\t")
    assert owner == str(ada.id)

    revoked = await run_events_command(service, "key", "revoke", id)
    unknown = await run_events_command(service, "key", "revoke", "4711")

    assert revoked.stdout == f"Key {id} is revoked.\n"
    assert (await ada.get("/api/keys")).status_code == 401
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert unknown.stderr.startswith("No API key has the id 4711. This was looked for in ")


def test_a_field_that_is_refused_is_named_in_plain_words(database_url: str) -> None:
    made = run_holdfast("events", "key", "create", "--admin", "--name", " ", EVENTS_DATABASE_URL=database_url)

    assert made.returncode == 1
    assert made.stderr.startswith("Not acceptable: name. name: ")
    assert not {*"{}[]"} & {*made.stderr}
