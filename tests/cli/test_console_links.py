"""An operator prints a link to the console of an organizer, as for a shop."""

import re

import httpx2

from tests.helpers.command_line import run_events_command, run_holdfast
from tests.helpers.events_service import Service

LINK = re.compile(r"http://events\.test(/sign-in/[0-9]+-[0-9a-f]{64})\n")


async def link_of(service: Service, slug: str) -> str:
    """The path of a link that the command prints with the secret of a service that runs here."""
    secret = service.database.resources.secret.value.decode()
    printed = await run_events_command(
        service, "console-link", slug, "--base-url=http://events.test/", EVENTS_SECRET_KEY=secret
    )
    link = LINK.fullmatch(printed.stdout)
    assert link, printed
    return link[1]


async def use(service: Service, path: str) -> httpx2.Response:
    """The answer to a press of the button on the page of a link."""
    [token] = re.findall(r'name="token" value="(.+?)"', (await service.http.get(path)).text)
    return await service.http.post(path, data={"token": token})


async def test_a_console_link_signs_the_organizer_in_once(service: Service) -> None:
    ada = await service.organizer()
    path = await link_of(service, str(ada.slug))

    answer = await use(service, path)

    assert (answer.status_code, answer.headers["location"]) == (303, "/console")
    assert (await service.http.get("/console")).status_code == 200
    service.http.cookies.clear()
    again = (await service.http.get(path)).text
    assert "This link has already been used." in again
    assert "holdfast events console-link SLUG" in again


async def test_a_console_link_is_new_each_time_it_is_printed(service: Service) -> None:
    ada = await service.organizer()

    assert await link_of(service, str(ada.slug)) != await link_of(service, str(ada.slug))


async def test_an_unknown_slug_is_refused_in_one_line(service: Service) -> None:
    refusal = await run_events_command(service, "console-link", "nobody")

    assert (refusal.returncode, refusal.stdout) == (1, "")
    assert refusal.stderr.startswith(
        "No organizer has the slug nobody. See: holdfast events organizer list This was looked for in "
    )


def test_the_command_console_link_has_the_same_options_in_both_services() -> None:
    helps = [run_holdfast(service, "console-link", "--help").stdout for service in ("events", "inventory")]

    assert len({re.sub(r".*?\n  --base-url", "", text, flags=re.DOTALL) for text in helps}) == 1
