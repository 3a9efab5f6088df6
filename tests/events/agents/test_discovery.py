"""A program that knows only the address finds every endpoint, and every document is true."""

import re

import httpx2
import pytest

from holdfast.events.settings import Settings
from tests.events.agents.documents import (
    A2A,
    AI_CATALOG,
    BASE_URL,
    CARDS,
    CATALOG,
    ISSUER,
    KINDS,
    LINKSET,
    RESOURCES,
    TEXTS,
    document,
    fits,
)
from tests.events.refusal_scene import LEAKS
from tests.helpers.discovery import AGENT_CARD, CARD_SCHEMA, SERVER_CARD, addresses
from tests.helpers.events_service import running_events

every_document = pytest.mark.parametrize("path", KINDS)


@every_document
async def test_a_document_has_its_media_type(http: httpx2.AsyncClient, path: str) -> None:
    for response in (await http.get(path), await http.head(path)):
        assert (response.status_code, response.headers["content-type"]) == (200, KINDS[path])


@every_document
async def test_a_document_can_be_read_by_any_page_and_kept_for_an_hour(http: httpx2.AsyncClient, path: str) -> None:
    response, head = await http.get(path), await http.head(path)

    assert response.headers["access-control-allow-origin"] == "*"
    assert response.headers["access-control-expose-headers"] == "ETag"
    assert response.headers["cache-control"] == "public, max-age=3600"
    assert (head.status_code, head.headers["etag"]) == (200, response.headers["etag"])


@every_document
async def test_an_unchanged_document_is_answered_with_304(http: httpx2.AsyncClient, path: str) -> None:
    etag = (await http.get(path)).headers["etag"]

    for condition in (etag, f"W/{etag}", f'"x", {etag}', "*"):
        response = await http.get(path, headers={"If-None-Match": condition})
        assert (response.status_code, response.content, response.headers["etag"]) == (304, b"", etag)
        assert response.headers["access-control-allow-origin"] == "*"
    assert (await http.get(path, headers={"If-None-Match": '"x"'})).status_code == 200


@every_document
async def test_a_preflight_request_for_a_document_is_answered(http: httpx2.AsyncClient, path: str) -> None:
    response = await http.options(path, headers={"Access-Control-Request-Headers": "If-None-Match"})

    assert response.status_code == 204
    assert response.headers["access-control-allow-methods"] == "GET"
    assert "If-None-Match" in response.headers["access-control-allow-headers"]


@every_document
async def test_a_document_needs_no_key_and_minds_no_wrong_one(http: httpx2.AsyncClient, path: str) -> None:
    for headers in ({"X-API-Key": "nonsense"}, {"Authorization": "Bearer nonsense"}):
        assert (await http.get(path, headers=headers)).content == (await http.get(path)).content
    for method in ("POST", "PUT", "DELETE"):
        assert (await http.request(method, path)).status_code == 405


async def test_a_document_at_several_addresses_has_the_same_content(http: httpx2.AsyncClient) -> None:
    for places in (CARDS, A2A, RESOURCES):
        assert len({(await http.get(path)).content for path in places}) == 1


async def test_every_address_a_document_names_answers(http: httpx2.AsyncClient) -> None:
    answers = {
        "/mcp": 405,
        "/api/organizers/register": 405,
        "/api/events": 401,
        "/api/registrations": 401,
        "/console": 303,
    }
    named: set[str] = set()
    for path in KINDS:
        named |= set(addresses(await document(http, path)))
    ours = {url for url in named if url.startswith(BASE_URL)}

    assert named - ours == {CARD_SCHEMA}
    assert {f"{BASE_URL}{path}" for path in (*KINDS, *answers, "/docs", "/readyz")} - ours == {
        f"{BASE_URL}{path}" for path in ("/.well-known/mcp/server-card.json", A2A[1], RESOURCES[0])
    }
    for url in ours - {BASE_URL}:
        path = url.removeprefix(BASE_URL).partition("?")[0]
        assert (await http.get(url)).status_code == answers.get(path, 200), url


async def test_every_address_a_document_names_is_of_the_kind_it_says(http: httpx2.AsyncClient) -> None:
    links = [
        link
        for context in (await document(http, CATALOG))["linkset"]
        for relation, targets in context.items()
        if relation != "anchor"
        for link in targets
    ]
    links += [{"href": entry["url"], "type": entry["type"]} for entry in (await document(http, AI_CATALOG))["entries"]]
    assert len(links) > 8
    for link in links:
        kind = (await http.get(link["href"])).headers["content-type"]
        assert kind.partition(";")[0] == link["type"]


async def test_the_links_of_texts_lead_to_what_they_name(http: httpx2.AsyncClient) -> None:
    for path in TEXTS:
        targets = re.findall(r"\[[^\]]+\]\(([^)]*)\)", await document(http, path))
        assert targets
        for target in targets:
            assert target.startswith(f"{BASE_URL}/")
            assert (await http.get(target)).status_code == 200, target


@pytest.mark.parametrize(
    ("base_url", "name"),
    [
        ("https://events.example.com", "com.example.events"),
        ("https://events.example.com:8443", "com.example.events"),
        ("http://127.0.0.1:8002", "localhost"),
        ("http://[::1]:8002", "localhost"),
        ("http://[2001:db8::7]", "localhost"),
        ("http://localhost:8002", "localhost"),
        ("http://tickets:8002", "tickets"),
    ],
)
@pytest.mark.parametrize("issuer", ["", ISSUER])
async def test_documents_say_nothing_but_the_public_address_whatever_its_form(
    settings: Settings, base_url: str, name: str, issuer: str
) -> None:
    async with running_events(settings.model_copy(update={"base_url": base_url, "oauth_issuer": issuer})) as service:
        documents = {path: await document(service.http, path) for path in KINDS}

    fits(documents[CARDS[0]], SERVER_CARD)
    fits(documents[A2A[0]], AGENT_CARD)
    fits(documents[CATALOG], LINKSET)
    assert documents[CARDS[0]]["name"] == f"{name}/events"
    assert documents[RESOURCES[0]]["resource"] == f"{base_url}/mcp"
    for path, content in documents.items():
        text = content if isinstance(content, str) else str(content)
        for url in addresses(content):
            assert url.startswith((f"{base_url}/", CARD_SCHEMA)) or url in {base_url, issuer}, url
        assert not LEAKS.search(text), path
        assert "events.test" not in text
        for secret in (settings.database_url, str(settings.data_dir), settings.rate_limit_storage_url):
            assert secret not in text
    for path in TEXTS:
        prose = re.sub(r"^```.*?^```$|`[^`]+`|^### .+$", "", documents[path], flags=re.DOTALL | re.MULTILINE)
        assert not re.findall(r"{\w+}", prose), path
