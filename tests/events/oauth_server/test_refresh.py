"""Refresh tokens are good once, and for a minute get the same again. Shown later, they or a successor were stolen."""

import asyncio

import pytest

from holdfast.events.oauth_server.tokens import forget_tokens
from tests.events.oauth_server.oauth_server_scene import OAuthServerScene, issued_tokens, status_and_error


async def test_a_refresh_token_gets_the_next_pair(scene: OAuthServerScene) -> None:
    first = await scene.connect_app()
    second = issued_tokens(await scene.app.refresh(first["refresh_token"]))
    third = issued_tokens(await scene.app.refresh(second["refresh_token"]))

    assert len({tokens[name] for tokens in (first, second, third) for name in ("access_token", "refresh_token")}) == 6
    assert await scene.works(third)
    assert third["scope"] == first["scope"]


async def test_the_access_token_before_lasts_as_long_as_it_was_to(scene: OAuthServerScene) -> None:
    first = await scene.connect_app()
    await scene.app.refresh(first["refresh_token"])

    assert await scene.works(first)


async def test_a_refresh_token_that_comes_again_ends_all_that_came_of_the_consent(scene: OAuthServerScene) -> None:
    first = await scene.connect_app()
    second = issued_tokens(await scene.app.refresh(first["refresh_token"]))
    third = issued_tokens(await scene.app.refresh(second["refresh_token"]))

    assert status_and_error(await scene.app.refresh(first["refresh_token"])) == (400, "invalid_grant")
    for tokens in (first, second, third):
        assert not await scene.works(tokens)
        assert status_and_error(await scene.app.refresh(tokens["refresh_token"])) == (400, "invalid_grant")


async def test_a_second_consent_of_the_same_person_survives_a_stolen_refresh_token(scene: OAuthServerScene) -> None:
    stolen, other = await scene.connect_app(), await scene.connect_app()
    await scene.app.refresh(stolen["refresh_token"])
    await scene.app.refresh(stolen["refresh_token"])

    assert await scene.works(other)
    assert (await scene.app.refresh(other["refresh_token"])).status_code == 200


async def test_many_processes_of_a_client_that_refresh_at_once_get_the_same_tokens(scene: OAuthServerScene) -> None:
    first = await scene.connect_app()
    answers = await asyncio.gather(*(scene.app.refresh(first["refresh_token"]) for _ in range(10)))

    every = [issued_tokens(answer) for answer in answers]
    assert len({(tokens["access_token"], tokens["refresh_token"]) for tokens in every}) == 1
    assert await scene.works(every[0])
    assert (await scene.app.refresh(every[0]["refresh_token"])).status_code == 200


async def test_an_answer_that_got_lost_is_given_again_for_a_minute(scene: OAuthServerScene) -> None:
    first = await scene.connect_app()
    lost = issued_tokens(await scene.app.refresh(first["refresh_token"]))
    await _use_earlier(scene, "50 seconds")
    again = issued_tokens(await scene.app.refresh(first["refresh_token"]))
    assert (again["access_token"], again["refresh_token"]) == (lost["access_token"], lost["refresh_token"])
    assert again["scope"] == lost["scope"]
    assert 3500 < again["expires_in"] <= 3550

    await _use_earlier(scene, "10 seconds")
    assert status_and_error(await scene.app.refresh(first["refresh_token"])) == (400, "invalid_grant")
    assert not await scene.works(lost)


async def test_a_stolen_refresh_token_used_within_the_minute_is_found_at_the_next_refresh(
    scene: OAuthServerScene,
) -> None:
    first = await scene.connect_app()
    mine = issued_tokens(await scene.app.refresh(first["refresh_token"]))
    stolen = issued_tokens(await scene.app.refresh(first["refresh_token"]))
    next_of_mine = issued_tokens(await scene.app.refresh(mine["refresh_token"]))
    await _use_earlier(scene, "1 hour")

    assert status_and_error(await scene.app.refresh(stolen["refresh_token"])) == (400, "invalid_grant")
    assert not await scene.works(next_of_mine)


async def test_a_used_refresh_token_is_refused_once_its_successor_was_used(scene: OAuthServerScene) -> None:
    first = await scene.connect_app()
    second = issued_tokens(await scene.app.refresh(first["refresh_token"]))
    third = issued_tokens(await scene.app.refresh(second["refresh_token"]))

    assert status_and_error(await scene.app.refresh(first["refresh_token"])) == (400, "invalid_grant")
    assert not await scene.works(third)


@pytest.mark.parametrize("scope", ["manage_keys", "root", ""])
async def test_a_repeated_refresh_with_more_scopes_is_refused(scene: OAuthServerScene, scope: str) -> None:
    first = await scene.connect_app()
    await scene.app.refresh(first["refresh_token"])

    assert status_and_error(await scene.app.refresh(first["refresh_token"], scope=scope)) == (400, "invalid_scope")


async def test_a_repeated_answer_to_a_refresh_is_stored_sealed(scene: OAuthServerScene) -> None:
    first = await scene.connect_app()
    second = issued_tokens(await scene.app.refresh(first["refresh_token"]))

    [(stored,)] = await scene.service.run_sql(
        "select string_agg(convert_from(sealed_successor, 'utf-8'), '') from oauth_refresh_tokens"
    )
    assert stored
    for secret in (first["refresh_token"], second["refresh_token"], second["access_token"], "hfrt_"):
        assert secret not in stored
    await scene.app.refresh(second["refresh_token"])
    assert await scene.service.run_sql("select count(sealed_successor) from oauth_refresh_tokens") == [(1,)]


async def test_a_refresh_token_shown_by_another_client_ends_its_grant(scene: OAuthServerScene) -> None:
    first = await scene.connect_app()

    assert status_and_error(await scene.app.refresh(first["refresh_token"], client_id="client_other")) == (
        400,
        "invalid_grant",
    )
    assert status_and_error(await scene.app.refresh(first["refresh_token"])) == (400, "invalid_grant")
    assert not await scene.works(first)


async def test_fewer_scopes_may_be_requested_and_later_all_again(scene: OAuthServerScene) -> None:
    first = await scene.connect_app(scope="read_events write_events")
    less = issued_tokens(await scene.app.refresh(first["refresh_token"], scope="read_events"))
    assert less["scope"] == "read_events"
    tools = {tool["name"] for tool in (await scene.agent(less).result("tools/list"))["tools"]}
    assert "list_events" in tools
    assert "create_event" not in tools

    assert issued_tokens(await scene.app.refresh(less["refresh_token"]))["scope"] == "read_events write_events"


@pytest.mark.parametrize("scope", ["manage_keys", "read_events manage_keys", "root", ""])
async def test_more_scopes_than_were_granted_are_refused_and_the_token_stays_good(
    scene: OAuthServerScene, scope: str
) -> None:
    first = await scene.connect_app(scope="read_events write_events")

    assert status_and_error(await scene.app.refresh(first["refresh_token"], scope=scope)) == (400, "invalid_scope")
    assert (await scene.app.refresh(first["refresh_token"])).status_code == 200


async def test_an_access_token_is_good_for_an_hour_and_a_refresh_token_for_sixty_days(scene: OAuthServerScene) -> None:
    tokens = await scene.connect_app()
    await _age(scene, "59 minutes")
    assert await scene.works(tokens)
    await _age(scene, "1 minute")
    assert not await scene.works(tokens)

    await _age(scene, "59 days 22 hours")
    tokens = issued_tokens(await scene.app.refresh(tokens["refresh_token"]))
    await _age(scene, "60 days")
    assert status_and_error(await scene.app.refresh(tokens["refresh_token"])) == (400, "invalid_grant")


async def test_tokens_that_expired_are_deleted_and_others_stay(scene: OAuthServerScene) -> None:
    old, new = await scene.connect_app(), await scene.connect_app()
    new = issued_tokens(await scene.app.refresh(new["refresh_token"]))
    await _age(scene, "3 hours")
    newest = issued_tokens(await scene.app.refresh(new["refresh_token"]))

    assert await scene.service.database.transact(forget_tokens) == 3
    assert await scene.service.database.transact(forget_tokens) == 0
    assert await scene.works(newest)
    assert (await scene.app.refresh(old["refresh_token"])).status_code == 200


async def _use_earlier(scene: OAuthServerScene, age: str) -> None:
    """Let refresh tokens have been used earlier, by a time."""
    await scene.service.run_sql("update oauth_refresh_tokens set used_at = used_at - %(age)s::interval", age=age)


async def _age(scene: OAuthServerScene, age: str) -> None:
    """Let time pass for the tokens."""
    for table in ("access_tokens", "refresh_tokens", "grants"):
        await scene.service.run_sql(f"update oauth_{table} set expires_at = expires_at - %(age)s::interval", age=age)
    await scene.service.run_sql("select pg_notify('holdfast', 'api_keys ')")  # what was looked up before is forgotten
