"""Clients described by a metadata document: which ones are fetched, how, and for how long they are cached."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.events.oauth_server.cache_headers import DEFAULT_CACHE_SECONDS, MAX_CACHE_SECONDS, cache_seconds
from holdfast.events.oauth_server.client_documents import is_address
from holdfast.events.settings import Settings
from tests.events.oauth_server.oauth_server_scene import (
    App,
    ConsentingPerson,
    OAuthServerScene,
    issued_tokens,
    serve_oauth_scene,
)
from tests.events.oauth_server.published import HOST, PublishedSite, publish_site
from tests.helpers.outside_servers import raw_answer


class Publisher:
    """A client that describes itself, and the service that it asks."""

    def __init__(self, scene: OAuthServerScene, site: PublishedSite) -> None:
        self.scene = scene
        self.site = site

    @property
    def app(self) -> App:
        return App(self.scene.service.http, self.site.about, "http://events.test")

    async def refusal(self) -> None:
        """Fails unless the page for a person whom the client sends can neither allow anything nor lead anywhere."""
        response = await self.scene.person.look(self.app.query())
        assert response.status_code == 400
        assert "location" not in response.headers
        assert "<form" not in response.text


@pytest.fixture
async def publisher(with_server: Settings, tmp_path: Path) -> AsyncIterator[Publisher]:
    async with publish_site(tmp_path) as site, serve_oauth_scene(with_server, documents=site.outbound) as scene:
        yield Publisher(scene, site)


async def test_a_client_that_describes_itself_needs_no_registration(publisher: Publisher) -> None:
    scene, app = publisher.scene, publisher.app
    page = (await scene.person.look(app.query())).text
    assert f"<bdi>{HOST}</bdi>" in page
    assert "An app without a website" not in page

    answer = await scene.person.allow(app.query(redirect_uri="http://localhost:3118/callback"))
    tokens = issued_tokens(await app.redeem(answer["code"], redirect_uri="http://localhost:3118/callback"))
    assert await scene.works(tokens)
    assert (await app.refresh(tokens["refresh_token"])).status_code == 200


async def test_a_metadata_document_is_requested_as_json_without_cookies_or_credentials(publisher: Publisher) -> None:
    await publisher.scene.person.look(publisher.app.query())

    [request] = publisher.site.server.requests
    head, *lines = request.strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    assert head == "GET /client.json HTTP/1.1"
    assert headers["accept"] == "application/json"
    assert not headers.keys() & {"cookie", "authorization", "referer", "origin"}


async def test_a_metadata_document_is_not_fetched_for_a_person_who_is_not_signed_in(publisher: Publisher) -> None:
    response = await ConsentingPerson(publisher.scene.service).look(publisher.app.query())

    assert response.headers["location"].startswith("/sign-in?")
    assert publisher.site.server.requests == []


@pytest.mark.parametrize(
    ("headers", "fetches"),
    [(["Cache-Control: max-age=60"], 1), (["Cache-Control: no-store"], 3), (["Cache-Control: max-age=0"], 3), ([], 1)],
    ids=str,
)
async def test_a_metadata_document_is_cached_as_long_as_its_headers_say(
    publisher: Publisher, headers: list[str], fetches: int
) -> None:
    publisher.site.says(*headers)
    await publisher.scene.person.look(publisher.app.query())
    await publisher.scene.person.decide(publisher.app.query())

    assert len(publisher.site.server.requests) == fetches


async def test_a_changed_metadata_document_counts_once_it_is_fetched_again(publisher: Publisher) -> None:
    publisher.site.says("Cache-Control: max-age=60")
    await publisher.scene.person.look(publisher.app.query())
    publisher.site.says(redirect_uris=["https://app.example/other"])
    assert (await publisher.scene.person.look(publisher.app.query())).status_code == 200

    await publisher.scene.service.run_sql(
        "update oauth_clients set fetched_until = now() where fetched_until is not null"
    )
    await publisher.refusal()


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "https://app.example/other.json"},
        {"client_id": None},
        {"redirect_uris": None},
        {"redirect_uris": []},
        {"redirect_uris": "https://app.example/done"},
        {"redirect_uris": ["https://app.example/done", "javascript:alert(1)"]},
        {"token_endpoint_auth_method": "client_secret_basic"},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"client_secret": "hush"},
        {"grant_types": ["client_credentials"]},
        {"response_types": ["token"]},
        {"client_name": {"en": "App"}},
    ],
    ids=str,
)
async def test_a_document_that_does_not_describe_such_a_client_is_refused(
    publisher: Publisher, changes: dict[str, Any]
) -> None:
    publisher.site.says(**changes)
    await publisher.refusal()


OTHERS = {
    "a page": raw_answer("200 OK\r\nContent-Type: text/html\r\nContent-Length: 2", b"{}"),
    "a list": raw_answer("200 OK\r\nContent-Type: application/json\r\nContent-Length: 2", b"[]"),
    "half a document": raw_answer("200 OK\r\nContent-Type: application/json\r\nContent-Length: 1", b"{"),
    "no text": raw_answer("200 OK\r\nContent-Type: application/json\r\nContent-Length: 3", b'"\xff"'),
    "too much": raw_answer("200 OK\r\nContent-Type: application/json\r\nContent-Length: 10241", b"[" * 10_241),
    "nothing": raw_answer("404 Not Found\r\nContent-Length: 0"),
    "a redirect": raw_answer("302 Found\r\nLocation: https://app.example/elsewhere.json\r\nContent-Length: 0"),
    "a redirect inside": raw_answer("302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0"),
    "no HTTP": raw_answer("garbage"),
}


@pytest.mark.parametrize("answer", OTHERS)
async def test_an_invalid_metadata_document_is_refused(publisher: Publisher, answer: str) -> None:
    publisher.site.answer = OTHERS[answer]
    await publisher.refusal()

    assert len(publisher.site.server.requests) == 1


@pytest.mark.parametrize("address", ["https://127.0.0.1.nip.example/c", "https://metadata.internal/c"])
async def test_a_metadata_document_in_the_network_of_the_operator_is_not_fetched(
    scene: OAuthServerScene, address: str
) -> None:
    app = App(
        scene.service.http, {"client_id": address, "redirect_uris": ["https://app.example/"]}, "http://events.test"
    )
    response = await scene.person.look(app.query())

    assert response.status_code == 400
    assert "no public address" in response.text


async def test_an_account_causes_a_limited_number_of_fetched_documents_a_minute(publisher: Publisher) -> None:
    publisher.site.says("Cache-Control: no-store")
    statuses = [(await publisher.scene.person.look(publisher.app.query())).status_code for _ in range(21)]

    assert statuses == [200] * 20 + [429]


@pytest.mark.parametrize(
    "address",
    ["https://app.example/c", "https://app.example/a/b.json?v=1", "https://a-b.example:8443/c"],
)
def test_an_https_url_with_a_path_can_be_an_address_of_a_document(address: str) -> None:
    assert is_address(address)


@pytest.mark.parametrize(
    "address",
    [
        "http://app.example/c",
        "https://app.example",
        "https://app.example/",
        "https://APP.example/c",
        "https://user@app.example/c",
        "https://app.example/c#x",
        "https://app.example/a/../c",
        "https://app.example/a/%2e%2E/c",
        "https://app.example/./c",
        "https://app.example/..",
        "https://127.0.0.1/c",
        "https://[::1]/c",
        "https://localhost/c",
        "https://app.example/c\n",
        "https://app.example\\c",
        "https://äpp.example/c",
        "https://app.example/" + "c" * 500,
    ],
)
def test_a_url_without_https_or_path_is_no_address_of_a_document(address: str) -> None:
    assert not is_address(address)


DATE = "Sun, 22 Nov 2026 10:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, DEFAULT_CACHE_SECONDS),
        ({"cache-control": "public, Max-Age=60"}, 60),
        ({"cache-control": 'max-age="60"'}, 60),
        ({"cache-control": "max-age=60", "age": "50"}, 10),
        ({"cache-control": "max-age=60", "age": "70"}, 0),
        ({"cache-control": "max-age=99999999"}, MAX_CACHE_SECONDS),
        ({"cache-control": "max-age=" + "9" * 40}, 0),
        ({"cache-control": "max-age=-1"}, 0),
        ({"cache-control": "max-age=60, no-store"}, 0),
        ({"cache-control": "no-cache"}, 0),
        ({"cache-control": "private"}, DEFAULT_CACHE_SECONDS),
        ({"expires": "Sun, 22 Nov 2026 10:01:00 GMT", "date": DATE}, 60),
        ({"expires": "Sun, 22 Nov 2026 09:01:00 GMT", "date": DATE}, 0),
        ({"expires": "Sun, 22 Nov 2099 09:01:00 GMT", "date": DATE}, MAX_CACHE_SECONDS),
        ({"expires": "0", "date": DATE}, 0),
        ({"expires": "Sun, 22 Nov 2026 10:01:00 GMT"}, 0),
        ({"cache-control": "max-age=5", "expires": "Sun, 22 Nov 2026 10:01:00 GMT", "date": DATE}, 5),
    ],
    ids=str,
)
def test_an_answer_is_fresh_for_as_long_as_its_headers_say_and_a_day_at_most(
    headers: dict[str, str], seconds: int
) -> None:
    assert cache_seconds(headers) == seconds
