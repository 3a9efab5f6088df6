"""The start page of the inventory service says what it is, and where people and agents begin."""

import json
import re

from holdfast.inventory.pages.part import EXAMPLE_ANSWER
from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import SIX_PACK, Inventory

PRINTED_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
"""The headers of the request on the page, beside its key."""


async def test_the_start_page_leads_people_and_agents_on(inventory: Inventory) -> None:
    page = await inventory.http.get("/")
    developers = await inventory.http.get("/developers")

    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    links = {*re.findall(r'href="(/[\w.-]+)(?:#\w+)?"', page.text)}
    assert {"/sign-in", "/agents", "/developers"} <= links
    more = {*re.findall(r'href="(/[\w.]+)"', developers.text)}
    assert {"/auth.md", "/llms.txt"} <= more
    for link in links | more:
        assert (await inventory.http.get(link)).status_code == 200


async def test_the_request_on_the_page_for_developers_answers_what_is_left(inventory: Inventory) -> None:
    shop = await inventory.create_shop()
    await shop.create_golden_pool()
    page = main_text(await inventory.http.get("/developers"))
    [body] = re.findall(r"-d '(\{.*?\})'", page)

    headers = PRINTED_HEADERS | {"Authorization": f"Bearer {shop.key}"}
    answer = await shop.http.post("/mcp", content=body, headers=headers)

    content = json.loads(answer.json()["result"]["content"][0]["text"])
    assert content.keys() == json.loads(EXAMPLE_ANSWER).keys()
    assert content["variants"][SIX_PACK] == 8
    for name, value in PRINTED_HEADERS.items():
        assert f"-H '{name}: {value}'" in page


async def test_the_address_of_documentation_leads_to_the_page_for_developers(inventory: Inventory) -> None:
    answer = await inventory.http.get("/docs")

    assert (answer.status_code, answer.headers["location"]) == (303, "/developers")


async def test_the_start_page_speaks_the_language_of_the_browser(inventory: Inventory) -> None:
    german = await inventory.http.get("/", headers={"Accept-Language": "de"})

    assert "Sie betreiben einen Shop" in german.text
    assert german.headers["content-language"] == "de"


async def test_browsers_get_errors_as_pages_and_programs_as_json(inventory: Inventory) -> None:
    browser = await inventory.http.get("/nothing", headers={"Accept": "text/html"})
    program = await inventory.http.get("/nothing")

    assert (browser.status_code, "There is no such page." in browser.text) == (404, True)
    assert (program.status_code, program.headers["content-type"]) == (404, "application/json")


async def test_robots_txt_allows_every_page(inventory: Inventory) -> None:
    assert (await inventory.http.get("/robots.txt")).text == "User-agent: *\nDisallow:\n"
