"""Authorization codes: valid once, for a minute, for one client with its verifier; misuse ends their tokens."""

import asyncio

import pytest

from tests.events.oauth_server.oauth_server_scene import VERIFIER, OAuthServerScene, issued_tokens, status_and_error
from tests.helpers.cases import in_turn


async def test_a_code_gets_tokens_that_act_for_the_person_who_allowed_it(scene: OAuthServerScene) -> None:
    response = await scene.app.redeem((await scene.person.allow(scene.app.query()))["code"])

    assert response.headers["cache-control"] == "no-store"
    assert response.headers["content-type"] == "application/json"
    tokens = issued_tokens(response)
    assert tokens["access_token"].startswith("hfat_")
    assert tokens["refresh_token"].startswith("hfrt_")
    assert (tokens["token_type"], tokens["expires_in"]) == ("Bearer", 3600)
    result = await scene.agent(tokens).call("list_organizers")
    assert [organizer["slug"] for organizer in result["structuredContent"]["data"]] == [scene.ada.slug]


async def test_a_code_or_token_of_oauth_is_never_stored_in_plain_text(scene: OAuthServerScene) -> None:
    code = (await scene.person.allow(scene.app.query()))["code"]
    tokens = issued_tokens(await scene.app.redeem(code))

    for table in ("codes", "access_tokens", "refresh_tokens", "grants"):
        [(stored,)] = await scene.service.run_sql(f"select jsonb_agg(to_jsonb(t))::text from oauth_{table} as t")
        for secret in (code, tokens["access_token"], tokens["refresh_token"], VERIFIER):
            assert secret not in stored


async def test_a_code_redeemed_twice_ends_its_tokens(scene: OAuthServerScene) -> None:
    code = (await scene.person.allow(scene.app.query()))["code"]
    tokens = issued_tokens(await scene.app.redeem(code))
    assert await scene.works(tokens)

    assert status_and_error(await scene.app.redeem(code)) == (400, "invalid_grant")
    assert not await scene.works(tokens)
    assert status_and_error(await scene.app.refresh(tokens["refresh_token"])) == (400, "invalid_grant")


async def test_a_code_redeemed_many_times_at_once_gives_one_set_of_tokens_which_then_ends(
    scene: OAuthServerScene,
) -> None:
    code = (await scene.person.allow(scene.app.query()))["code"]
    answers = await asyncio.gather(*(scene.app.redeem(code) for _ in range(10)))

    [tokens] = [answer.json() for answer in answers if answer.status_code == 200]
    assert not await scene.works(tokens)


@pytest.mark.parametrize(
    "changes",
    [
        {"code_verifier": "another-verifier-that-is-long-enough-to-be-one-0123"},
        {"redirect_uri": "https://app.example/other"},
        {"client_id": "client_other"},
    ],
)
async def test_a_stolen_code_without_its_verifier_gives_nothing_and_is_spent(
    scene: OAuthServerScene, changes: dict[str, str]
) -> None:
    code = (await scene.person.allow(scene.app.query()))["code"]

    assert status_and_error(await scene.app.redeem(code, **changes)) == (400, "invalid_grant")
    assert status_and_error(await scene.app.redeem(code)) == (400, "invalid_grant")


async def test_a_code_is_refused_for_another_client_with_the_same_challenge(scene: OAuthServerScene) -> None:
    thief = await scene.register()
    code = (await scene.person.allow(scene.app.query()))["code"]

    assert status_and_error(await thief.redeem(code)) == (400, "invalid_grant")


async def test_a_code_is_valid_for_a_minute(scene: OAuthServerScene) -> None:
    [early, late] = [(await scene.person.allow(scene.app.query()))["code"] for _ in range(2)]
    age = "update oauth_codes set expires_at = expires_at - %(age)s::interval"
    await scene.service.run_sql(age, age="50 seconds")
    assert (await scene.app.redeem(early)).status_code == 200

    await scene.service.run_sql(age, age="10 seconds")
    assert status_and_error(await scene.app.redeem(late)) == (400, "invalid_grant")


async def test_the_redirect_address_may_be_left_out_when_a_code_is_redeemed(scene: OAuthServerScene) -> None:
    code = (await scene.person.allow(scene.app.query()))["code"]

    assert (await scene.app.redeem(code, redirect_uri=None)).status_code == 200


@in_turn(
    ("form", "code"),
    [
        ({"grant_type": None}, "invalid_request"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, "unsupported_grant_type"),
        ({"code": None}, "invalid_request"),
        ({"client_id": None}, "invalid_request"),
        ({"code_verifier": None}, "invalid_request"),
        ({"code_verifier": "short"}, "invalid_grant"),
        ({"code_verifier": "ä" * 50}, "invalid_grant"),
        ({"code": "hfoc_unknown"}, "invalid_grant"),
        ({"code": "\0"}, "invalid_grant"),
        ({"resource": "https://evil.example/mcp"}, "invalid_target"),
    ],
)
async def test_an_invalid_token_request_is_refused_and_leaves_the_code_valid(
    scene: OAuthServerScene, form: dict[str, str | None], code: str
) -> None:
    authorization_code = (await scene.person.allow(scene.app.query()))["code"]

    assert status_and_error(await scene.app.redeem(authorization_code, **form)) == (400, code)
    assert (await scene.app.redeem(authorization_code)).status_code == 200


async def test_a_token_request_that_is_no_form_is_refused(scene: OAuthServerScene) -> None:
    response = await scene.service.http.post("/oauth/token", json={"grant_type": "refresh_token"})
    assert status_and_error(response) == (415, "unsupported_media_type")
    twice = "grant_type=refresh_token&grant_type=authorization_code&client_id=x"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    response = await scene.service.http.post("/oauth/token", content=twice, headers=headers)
    assert status_and_error(response) == (400, "invalid_request")
    assert (await scene.service.http.get("/oauth/token")).status_code == 405


async def test_a_code_is_refused_as_a_token_and_as_a_key(scene: OAuthServerScene) -> None:
    code = (await scene.person.allow(scene.app.query()))["code"]

    assert not await scene.works({"access_token": code})
    assert status_and_error(await scene.app.refresh(code)) == (400, "invalid_grant")


async def test_an_access_token_is_refused_as_an_api_key(scene: OAuthServerScene) -> None:
    tokens = await scene.connect_app()
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

    for path, status in (("/mcp", 401), ("/api/events", 401)):
        headers = {"X-API-Key": tokens["access_token"]}
        response = await (
            scene.service.http.post(path, json=message, headers=headers)
            if path == "/mcp"
            else scene.service.http.get(path, headers=headers)
        )
        assert response.status_code == status, path
    assert await scene.works(tokens)
