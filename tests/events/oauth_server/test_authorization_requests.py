"""Requests to `/oauth/authorize`, and where the answer goes (RFC 6749, 7636, 8707, 9207)."""

import re
from html import unescape
from urllib.parse import parse_qs, parse_qsl, quote, urlencode, urlsplit

import pytest

from tests.events.oauth_server.oauth_server_scene import (
    REDIRECT,
    ConsentingPerson,
    OAuthServerScene,
    redirect_parameters,
    register_client,
    sign_in_person,
)
from tests.helpers.cases import in_turn

OTHERS = [
    "https://app.example/done/",
    "https://app.example/done?x=1",
    "https://app.example/Done",
    "https://app.example/done/../evil",
    "https://app.example:443/done",
    "https://app.example.evil.example/done",
    "https://app.example@evil.example/done",
    "https://evil.example/done",
    "http://app.example/done",
    "https://APP.example/done",
    "//app.example/done",
    "javascript:alert(1)",
    "https://app.example/done#x",
    "https://app.example/done\n",
    "",
]


async def test_an_authorization_request_returns_from_sign_in_with_its_query_unchanged(scene: OAuthServerScene) -> None:
    query = urlencode(scene.app.query(state="a b&c=d+e%20/ä", scope="read_events"))
    response = await ConsentingPerson(scene.service).http.get(f"/oauth/authorize?{query}")

    assert response.status_code == 303
    sign_in = urlsplit(response.headers["location"])
    assert sign_in.path == "/sign-in"
    assert parse_qs(sign_in.query)["return_to"] == [f"/oauth/authorize?{query}"]


async def test_the_code_goes_to_the_client_with_its_state_and_our_name(scene: OAuthServerScene) -> None:
    response = await scene.person.decide(scene.app.query(state="a b&c=d+e%20/ä"))

    address, _, query = response.headers["location"].partition("?")
    assert address == REDIRECT
    answer = dict(parse_qsl(query))
    assert answer.pop("code").startswith("hfoc_")
    assert answer == {"state": "a b&c=d+e%20/ä", "iss": "http://events.test"}
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["referrer-policy"] == "same-origin"


async def test_a_redirect_without_a_state_has_none(scene: OAuthServerScene) -> None:
    assert (await scene.person.allow(scene.app.query(state=None))).keys() == {"code", "iss"}


async def test_the_query_of_a_redirect_address_is_kept(scene: OAuthServerScene) -> None:
    app = await scene.register(redirect_uris=["https://app.example/done?tab=1"])

    answer = await scene.person.allow(app.query())
    assert answer["tab"] == "1"
    assert answer["code"]


async def test_the_redirect_address_may_be_left_out_if_the_client_has_only_one(scene: OAuthServerScene) -> None:
    answer = await scene.person.allow(scene.app.query(redirect_uri=None))
    assert (await scene.app.redeem(answer["code"])).status_code == 200

    several = await scene.register(redirect_uris=[REDIRECT, "https://app.example/other"])
    assert (await scene.person.look(several.query(redirect_uri=None))).status_code == 400


@in_turn("address", OTHERS)
async def test_an_authorization_request_never_redirects_to_an_address_the_client_did_not_register(
    scene: OAuthServerScene, address: str
) -> None:
    for changes in ({}, {"response_type": "token"}, {"scope": "nothing"}):
        response = await scene.person.look(scene.app.query(redirect_uri=address, **changes))

        assert response.status_code == 400
        assert "location" not in response.headers
        assert "This app cannot be connected." in response.text


@pytest.mark.parametrize("client_id", ["", "client_unknown", "' or true --", "x" * 600, "\0", "http://app.example/c"])
async def test_an_authorization_request_of_an_unknown_client_is_refused_without_a_redirect(
    scene: OAuthServerScene, client_id: str
) -> None:
    response = await scene.person.look(scene.app.query(client_id=client_id))

    assert response.status_code == 400
    assert "location" not in response.headers
    assert "<form" not in response.text


@pytest.mark.parametrize("name", ["client_id", "redirect_uri", "state", "resource", "code_challenge"])
async def test_a_repeated_parameter_is_refused_without_a_redirect(scene: OAuthServerScene, name: str) -> None:
    query = scene.app.query()
    response = await scene.person.http.get(f"/oauth/authorize?{urlencode(query)}&{name}={query[name]}")

    assert response.status_code == 400
    assert "location" not in response.headers


@in_turn(
    ("changes", "code"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "code token"}, "unsupported_response_type"),
        ({"response_type": None}, "unsupported_response_type"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge": "ä" * 43}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"scope": "root"}, "invalid_scope"),
        ({"resource": "https://evil.example/mcp"}, "invalid_target"),
        ({"resource": "http://events.test"}, "invalid_target"),
        ({"resource": ""}, "invalid_target"),
        ({"resource": "http://events.test/MCP"}, "invalid_target"),
        ({"state": "x" * 4_001}, "invalid_request"),
    ],
)
async def test_an_error_of_an_authorization_request_goes_to_the_client_by_a_click_of_the_person(
    scene: OAuthServerScene, changes: dict[str, str | None], code: str
) -> None:
    response = await scene.person.look(scene.app.query(**changes))
    assert response.status_code == 400
    assert "location" not in response.headers
    assert "<form" not in response.text
    [link] = [unescape(link) for link in re.findall(r'href="([^"]*)" rel="noreferrer"', response.text)]
    address, _, query = link.partition("?")
    assert address == REDIRECT
    answer = dict(parse_qsl(query))

    assert answer["error"] == code
    assert answer["iss"] == "http://events.test"
    assert answer.get("state") == (None if "state" in changes else "xyz")
    assert "code" not in answer
    assert answer["error_description"].isascii()
    assert not {'"', "\\"} & {*answer["error_description"]}


async def test_a_resource_with_a_trailing_slash_is_accepted(scene: OAuthServerScene) -> None:
    assert "code" in await scene.person.allow(scene.app.query(resource="http://events.test/mcp/"))
    assert "code" in await scene.person.allow(scene.app.query(resource="HTTP://Events.TEST/mcp"))


async def test_parameters_of_other_standards_are_ignored(scene: OAuthServerScene) -> None:
    assert "code" in await scene.person.allow(scene.app.query(nonce="1", prompt="consent", ui_locales="fr"))


@pytest.mark.parametrize(
    ("scope", "granted"),
    [
        (None, "read_events write_events"),
        ("", "read_events write_events"),
        ("write_events", "write_events"),
        ("manage_keys offline_access read_events", "read_events manage_keys"),
    ],
)
async def test_known_scopes_are_granted_and_without_any_those_of_events(
    scene: OAuthServerScene, scope: str | None, granted: str
) -> None:
    assert (await scene.connect_app(scope=scope))["scope"] == granted


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
async def test_a_redirect_to_this_computer_may_have_any_port(scene: OAuthServerScene, host: str) -> None:
    app = await scene.register(redirect_uris=[f"http://{host}/callback?a=1"])

    address = f"http://{host}:49152/callback?a=1"
    response = await scene.person.decide(app.query(redirect_uri=address))
    assert response.headers["location"].startswith(f"{address}&code=")
    code = redirect_parameters(response)["code"]
    assert (await app.redeem(code, redirect_uri=address)).status_code == 200
    for other in (
        f"http://{host}:49152/other?a=1",
        f"http://{host}:49152/callback",
        f"http://{host}:49152/callback?a=1&b=2",
        f"http://{host}:99999/callback?a=1",
        f"https://{host}:49152/callback?a=1",
        f"http://{host}:49152@evil.example/callback?a=1",
        "http://evil.example:49152/callback?a=1",
    ):
        assert (await scene.person.look(app.query(redirect_uri=other))).status_code == 400


async def test_an_account_that_is_no_organizer_reads_that_it_must_become_one_first(scene: OAuthServerScene) -> None:
    event = await scene.ada.create_event()
    await scene.ada.register(event["id"], email="ann@example.com")
    [(id,)] = await scene.service.run_sql("select id from users where email = 'ann@example.com'")
    ann = await sign_in_person(scene.service, id)

    page = await ann.look(scene.app.query())
    assert "Allow" not in page.text
    sent = await ann.http.post(f"/oauth/authorize?{urlencode(scene.app.query())}", data={"decision": "allow"})
    assert "code=" not in sent.headers.get("location", "")
    assert await scene.service.run_sql("select from oauth_grants") == []


async def test_a_person_with_an_unproved_address_cannot_allow_an_app(scene: OAuthServerScene) -> None:
    query = scene.app.query()
    await scene.service.run_sql("update users set proved_at = null where id = %(id)s", id=scene.ada.id)
    squatter = await sign_in_person(scene.service, scene.ada.id, way="password")
    page = await squatter.look(query)
    assert page.status_code == 403
    assert 'name="token"' not in page.text
    assert f"/sign-in?return_to={quote(f'/oauth/authorize?{urlencode(query)}', safe='')}" in page.text
    sent = await squatter.http.post(f"/oauth/authorize?{urlencode(query)}", data={"decision": "allow"})
    assert sent.status_code == 403
    assert await scene.service.run_sql("select from oauth_grants") == []

    await scene.service.run_sql("update users set proved_at = now() where id = %(id)s", id=scene.ada.id)
    proved = await sign_in_person(scene.service, scene.ada.id, way="password")
    assert "code" in await proved.allow(query)


async def test_a_client_that_is_deleted_while_it_asks_gets_nothing(scene: OAuthServerScene) -> None:
    app = await register_client(scene.service)
    page = await scene.person.look(app.query())
    await scene.service.run_sql("delete from oauth_clients where id = %(id)s", id=app.id)
    token = page.text.split('name="token" value="')[1].split('"')[0]

    response = await scene.person.http.post(
        f"/oauth/authorize?{urlencode(app.query())}", data={"token": token, "decision": "allow"}
    )
    assert response.status_code == 400
    assert "location" not in response.headers
