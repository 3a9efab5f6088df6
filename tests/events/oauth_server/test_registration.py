"""Clients register themselves (RFC 7591), and are deleted if they are not used."""

from typing import Any

import pytest

from holdfast.events.oauth_server.clients import forget_clients
from holdfast.events.oauth_server.grants import forget_grants
from holdfast.events.settings import Settings
from tests.events.oauth_server.oauth_server_scene import OAuthServerScene, register_client, status_and_error
from tests.helpers.cases import in_turn
from tests.helpers.events_service import running_events

FINE = [
    "https://app.example/done",
    "https://app.example:8443/done?from=us&x=1",
    "http://localhost:8080/callback",
    "http://localhost/callback",
    "http://127.0.0.1:1/",
    "http://[::1]:33418/callback",
    "cursor://anysphere.cursor-mcp/oauth/callback",
    "vscode://vscode.github-authentication/did-authenticate",
    "com.example.app:/done",
]
UNFIT = [
    "http://app.example/done",
    "http://localhost.evil.example/",
    "http://localhost:80@evil.example/",
    "http://127.0.0.1.evil.example/",
    "http://127.0.0.2/",
    "https://user@app.example/",
    "https://app.example/#fragment",
    "https:///path",
    "https://app.example\\@evil.example/",
    "https://app.example/\nSet-Cookie: a=b",
    "https://app.example/ö",
    "https://app.example:0/",
    "https://app.example:99999/",
    "HTTPS://app.example/",
    "//app.example/",
    "/done",
    "",
    "javascript:alert(1)",
    "javascript://app.example/%0aalert(1)",
    "data:text/html,hello",
    "file:///etc/passwd",
    "ftp://app.example/",
    "mailto:ada@example.com",
    "example:done",
    "https://app.example/" + "x" * 500,
    7,
    None,
    ["https://app.example/"],
]


async def test_a_registered_client_gets_an_id_and_no_secret(scene: OAuthServerScene) -> None:
    metadata: dict[str, Any] = {
        "client_name": "Inspector",
        "grant_types": None,
        "redirect_uris": FINE,
        "token_endpoint_auth_method": "client_secret_post",
        "logo_uri": "https://app.example/logo.png",
        "scope": "everything",
    }
    response = await scene.service.http.post("/oauth/register", json=metadata)

    assert response.status_code == 201
    assert response.headers["cache-control"] == "no-store"
    about = response.json()
    assert about.pop("client_id_issued_at") > 1_700_000_000
    assert about.pop("client_id").startswith("client_")
    assert about == {
        "client_name": "Inspector",
        "redirect_uris": FINE,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }


@in_turn("address", UNFIT)
async def test_an_address_that_no_client_can_have_is_refused(scene: OAuthServerScene, address: Any) -> None:
    response = await scene.service.http.post("/oauth/register", json={"redirect_uris": [*FINE, address]})

    assert status_and_error(response) == (400, "invalid_redirect_uri")


@in_turn(
    "metadata",
    [
        {},
        {"redirect_uris": []},
        {"redirect_uris": "https://app.example/done"},
        {"redirect_uris": {}},
        {"redirect_uris": ["https://app.example/done"] * 21},
        {"redirect_uris": FINE, "client_name": 7},
        {"redirect_uris": FINE, "grant_types": ["implicit"]},
        {"redirect_uris": FINE, "grant_types": 7},
        {"redirect_uris": FINE, "response_types": ["token"]},
        ["https://app.example/done"],
        "text",
        None,
    ],
)
async def test_metadata_that_cannot_be_used_is_refused(scene: OAuthServerScene, metadata: Any) -> None:
    response = await scene.service.http.post("/oauth/register", json=metadata)

    assert status_and_error(response) == (400, "invalid_client_metadata")


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000])
async def test_a_body_that_is_no_json_is_refused(scene: OAuthServerScene, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    response = await scene.service.http.post("/oauth/register", content=body, headers=headers)

    assert status_and_error(response) == (400, "invalid_client_metadata")


async def test_the_name_of_a_client_is_one_short_line_without_control_characters(scene: OAuthServerScene) -> None:
    app = await scene.register(client_name="Cla\u202eude\n\x00" + "x" * 500)
    assert app.about["client_name"] == ("Claude " + "x" * 500)[:100]

    assert "client_name" not in (await scene.register(client_name=" \u200f ")).about


async def test_an_address_registers_a_limited_number_of_clients_an_hour(settings: Settings) -> None:
    limited = settings.model_copy(update={"oauth_builtin": True, "clients_per_hour": 2})
    async with running_events(limited) as service:
        for _ in range(2):
            await register_client(service)
        response = await service.http.post("/oauth/register", json={"redirect_uris": FINE})

        assert status_and_error(response) == (429, "rate_limited")
        assert int(response.headers["retry-after"]) > 0


async def test_all_addresses_share_a_limit_of_clients_an_hour_and_each_has_a_part(settings: Settings) -> None:
    limited = settings.model_copy(update={"oauth_builtin": True, "clients_per_hour": 2})
    async with running_events(limited) as service:
        statuses = list[list[int]]()
        for number in range(202):
            async with service.client_at(f"10.0.{number // 250}.{number % 250 + 1}") as http:
                answers = [await http.post("/oauth/register", json={"redirect_uris": FINE}) for _ in range(2)]
                statuses.append([answer.status_code for answer in answers])

    assert statuses == [[201, 201]] * 200 + [[201, 429]] * 2


async def test_clients_unused_for_a_day_are_deleted(scene: OAuthServerScene) -> None:
    await scene.connect_app()
    unused = await scene.register()
    fresh = await scene.register()
    await scene.service.run_sql(
        "update oauth_clients set inserted_at = now() - interval '25 hours' where id <> %(fresh)s", fresh=fresh.id
    )

    assert await scene.service.database.transact(forget_clients) == 1
    left = await scene.service.run_sql("select id from oauth_clients")
    assert {id for (id,) in left} == {scene.app.id, fresh.id}
    assert (await scene.person.look(unused.query())).status_code == 400


async def test_a_client_that_acted_for_a_person_is_kept_for_ninety_days_more(scene: OAuthServerScene) -> None:
    await scene.connect_app()
    await scene.service.run_sql(
        "update oauth_grants set granted_at = now() - interval '89 days', expires_at = now() - interval '2 days'"
    )
    for used, count in (("89 days", 0), ("91 days", 1)):
        await scene.service.run_sql(
            "update oauth_clients set used_at = now() - %(used)s::interval, inserted_at = now() - interval '1 year'",
            used=used,
        )
        await scene.service.database.transact(forget_grants)
        assert await scene.service.database.transact(forget_clients) == count
