"""Links as people pass them on lead to their pages, through the whole service."""

import asyncio
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.accounts.signin.links import create_unbound_link, link_url
from holdfast.accounts.stopped_mails import mailboxes
from tests.events.pages.own_registration import own_path
from tests.helpers.events_service import Service
from tests.helpers.serving import bind_port, running_already, serve_app
from tests.kit.http.link_ends import END_MARKS, ENDS

BROWSER = {"Accept": "text/html"}
PREVIEW = {"Accept": "*/*"}


async def pages_of(service: Service) -> Mapping[str, str]:
    """Paths that answer with a page, by what they show."""
    ada = await service.organizer("Ada Events")
    event = await ada.create_event()
    await ada.register(event["id"], email="ann@example.com")
    await service.settle()
    secret = service.database.resources.secret
    registration = urlsplit(await own_path(service, event["id"], "ann@example.com")).path
    link = await service.database.transact(lambda tx: create_unbound_link(tx, "ann@example.com", "/console"))
    return {
        "start": "/",
        "organizer": f"/organizers/{ada.slug}",
        "event": f"/organizers/{ada.slug}/events/{event['id']}",
        "form": f"/events/{event['id']}/embed",
        "calendar": f"/events/{event['id']}/calendar.ics",
        "own registration": registration,
        "unsubscribe": f"{registration}/unsubscribe",
        "sign in": "/sign-in",
        "sign-in link": urlsplit(link_url(secret, "", link)).path,
        "stopped mails": mailboxes.path(secret, mailboxes.digest("ann@example.com")),
        "verify": "/verify",
        "docs": "/docs",
    }


async def follow(service: Service, path: str, headers: Mapping[str, str] = BROWSER) -> tuple[str, int]:
    """Where a link leads, and the status of the page there."""
    for _ in range(4):
        answer = await service.http.get(f"http://events.test{path}", headers=headers)
        location = answer.headers.get("location")
        if location is None or "sign-in?" in location:
            # The client resolves a dot, and the router leaves out a line break at the end.
            return answer.url.path.rstrip("\n"), answer.status_code
        assert answer.status_code in {301, 303, 308}
        path = location
    raise AssertionError(f"{path} is redirected on and on")


async def test_a_link_with_characters_appended_leads_to_its_page(service: Service) -> None:
    for name, path in (await pages_of(service)).items():
        assert await follow(service, path) == (path, 200), name
        for glue in ENDS if path != "/" else (")", "”", "\u200b", ").", "?x"):
            link = path + quote(glue, safe="/?#&=%")
            assert await follow(service, link.replace("?", "%3F").replace("#", "%23")) == (path, 200), (name, glue)


async def test_a_query_that_programs_add_to_a_link_changes_nothing(service: Service) -> None:
    for name, path in (await pages_of(service)).items():
        for added in (
            "?utm_source=a&utm_source=b",
            "?fbclid=x",
            "?lang=en)",
            "?utm_source=x%29",
            "?utm_campaign=%FC",
            "?gclid",
            "?&",
        ):
            assert (await service.http.get(path + added, headers=BROWSER)).status_code == 200, (name, added)


async def test_capital_letters_extra_slashes_and_singular_words_of_a_link_lead_to_the_page(service: Service) -> None:
    pages = await pages_of(service)
    organizer, event = pages["organizer"], pages["event"]
    number = event.rpartition("/")[2]

    for link, page in {
        event.upper(): event,
        organizer.title(): organizer,
        f"/{event}": event,
        event.replace("/events", "//Events"): event,
        event.replace("events", "event").replace("organizers", "organizer"): event,
        f"/events/{number}": event,
        f"/event/{number}).": event,
        f"/Events/{number}/": event,
        f"{organizer}/events": organizer,
        f"{organizer}/events/": organizer,
        pages["own registration"].replace("registrations", "Registration"): pages["own registration"],
    }.items():
        assert await follow(service, link) == (page, 200), link
        assert await follow(service, link, PREVIEW) == (page, 200), link
    for link in ("/console/", "//console", "/Console)"):
        path, status = await follow(service, link)
        assert (path, status) == ("/console", 303), link


@pytest.mark.parametrize("path", ["/api/events/1)", "/api/events)", "/API/events)", "/mcp)", "/.well-known/jwks.json)"])
async def test_a_repaired_link_is_for_pages_only_and_never_for_addresses_of_programs(
    service: Service, path: str
) -> None:
    for headers in (BROWSER, PREVIEW, {"Accept": "application/json"}):
        answer = await service.http.get(quote(path), headers=headers)

        assert answer.status_code in {401, 404, 422}
        assert "location" not in answer.headers


async def test_only_reads_are_redirected_to_a_repaired_link(service: Service) -> None:
    pages = await pages_of(service)

    for path in (pages["event"], pages["own registration"]):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            answer = await service.http.request(method, f"{path})", headers=BROWSER)
            assert answer.status_code in {404, 405}
        assert (await service.http.head(f"{path})", headers=BROWSER)).headers["location"] == path


async def test_the_redirect_of_a_link_with_a_secret_tells_it_to_no_other_site_and_no_cache(service: Service) -> None:
    path = (await pages_of(service))["own registration"]

    moved = await service.http.get(f"{path})?lang=de&token=x", headers=BROWSER)

    assert moved.headers["location"] == f"{path}?lang=de"
    assert moved.headers.get_list("referrer-policy") == ["no-referrer"]
    assert moved.headers["cache-control"] == "no-store"
    assert moved.content == b""


async def test_a_wrong_link_counts_towards_the_limit_with_any_characters_appended(own_service: Service) -> None:
    path = "/registrations/7-abcdefgh-9-0123456789abcdef0123456789abcdef"
    statuses = {(await own_service.http.get(path + quote(")" * n), headers=BROWSER)).status_code for n in range(200)}

    assert statuses <= {301, 404, 429}


async def test_a_link_with_any_punctuation_appended_leads_to_its_page(service: Service) -> None:
    pages = await pages_of(service)
    links = st.tuples(st.sampled_from(sorted(pages)), st.lists(st.sampled_from(END_MARKS), min_size=1, max_size=4))

    examples: list[tuple[str, str]] = []

    @settings(max_examples=40, database=None, suppress_health_check=[HealthCheck.too_slow])
    @given(links)
    def choose(link: tuple[str, list[str]]) -> None:
        examples.append((pages[link[0]], quote("".join(link[1]), safe="/")))

    choose()
    for path, glue in examples:
        assert await follow(service, path + glue) == (path, 200), glue


async def test_a_link_with_two_slashes_or_a_percent_sign_leads_to_its_page_through_a_server(service: Service) -> None:
    event = (await pages_of(service))["event"]
    port = bind_port()
    async with serve_app(running_already(service.app), port):
        for target in (f"/{event}", f"{event})", f"{event}%", f"{event.upper()}"):
            reader, writer = await asyncio.open_connection(*port.getsockname())
            writer.write(f"GET {target} HTTP/1.1\r\nHost: events.test\r\nConnection: close\r\n\r\n".encode())
            answer = (await reader.read()).decode().lower()
            writer.close()

            assert answer.startswith("http/1.1 301 "), target
            assert f"\r\nlocation: {event}\r\n" in answer, target
