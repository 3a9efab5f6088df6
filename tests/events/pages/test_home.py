"""The start page says what the service is, and where people and agents begin."""

import json
import re

from holdfast.kit.http.answers import LIVE
from tests.helpers.events_service import Service


async def test_the_start_page_leads_people_and_agents_on(service: Service) -> None:
    page = await service.http.get("/")

    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    developers = await service.http.get("/developers")
    links = {*re.findall(r'href="(/[\w.]+)"', page.text)}
    assert {"/agents", "/developers", "/console"} <= links
    more = {*re.findall(r'href="(/[\w.]+)"', developers.text)}
    assert {"/agents.md", "/llms.txt", "/docs", "/api"} <= more
    for link in links | more:
        assert (await service.http.get(link, follow_redirects=True)).status_code == 200
    assert "http://events.test/mcp" in developers.text


async def test_the_three_example_requests_for_programs_lead_to_a_registration(service: Service) -> None:
    page = await service.http.get("/developers")
    register, publish, person = (json.loads(body) for body in re.findall(r"-d '([^']+)'</code>", page.text))

    organizer = await service.anonymous.post("/api/organizers/register", register)
    key = {"X-API-Key": organizer.json()["data"]["api_key"]["key"]}
    event = await service.anonymous.post("/api/events", publish, headers=key)
    person["registration"]["event_id"] = event.json()["data"]["id"]
    answer = await service.anonymous.post("/api/registrations", person, headers=key)

    assert [organizer.status_code, event.status_code, answer.status_code] == [201, 201, 202]


async def test_the_start_page_speaks_the_language_of_the_browser(service: Service) -> None:
    german = await service.http.get("/", headers={"Accept-Language": "fr, de;q=0.8, en;q=0.5"})
    english = await service.http.get("/?lang=en", headers={"Accept-Language": "de"})

    assert '<html lang="de">' in german.text
    assert "Für Veranstalter" in german.text
    assert '<html lang="en">' in english.text
    assert german.headers["vary"] == "accept-language"


async def test_robots_txt_excludes_pages_of_registrations(service: Service) -> None:
    robots = await service.http.get("/robots.txt")

    assert robots.headers["content-type"].startswith("text/plain")
    assert robots.text == "User-agent: *\nDisallow: /registrations/\nDisallow: /people/\n"
    assert 'name="robots"' not in (await service.http.get("/")).text


async def test_an_unchanged_start_page_is_answered_with_304(service: Service) -> None:
    page = await service.http.get("/")

    again = await service.http.get("/", headers={"If-None-Match": f'"other", {page.headers["etag"]}'})

    assert page.headers["cache-control"].encode() == LIVE[1]
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["content-security-policy"] == page.headers["content-security-policy"]
