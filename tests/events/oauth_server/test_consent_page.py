"""The consent page: what it says about the app, and which forms can allow it."""

from urllib.parse import urlencode

import pytest

from holdfast.accounts import sessions
from holdfast.events.oauth_server import grants
from tests.accounts.races import ending_transaction
from tests.events.oauth_server.oauth_server_scene import (
    ConsentingPerson,
    OAuthServerScene,
    action_in,
    redirect_parameters,
    sign_in_person,
)
from tests.helpers.form_browser import token


async def test_the_consent_page_says_which_app_asks_where_it_leads_and_what_it_allows(scene: OAuthServerScene) -> None:
    page = (await scene.person.look(scene.app.query(scope="read_events manage_keys"))).text

    assert "<bdi>Example App</bdi>" in page
    assert "An app without a website" in page
    assert "<bdi>app.example</bdi>" in page
    assert "<bdi>ada@example.com</bdi>" in page
    assert "View events, prices, registrations and the people in them." in page
    assert "a new key can do everything" in page
    assert "Publish and change events" not in page


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("http://localhost:3118/callback", "a program on this computer (<bdi>localhost:3118</bdi>)"),
        ("http://[::1]:3118/callback", "a program on this computer (<bdi>[::1]:3118</bdi>)"),
        ("cursor://anysphere.cursor/callback", "an app on this device (<bdi>cursor</bdi>)"),
        ("https://APP.example:8443/x", "<bdi>app.example:8443</bdi>"),
    ],
)
async def test_the_consent_page_says_what_kind_of_place_the_answer_goes_to(
    scene: OAuthServerScene, address: str, text: str
) -> None:
    app = await scene.register(redirect_uris=[address])

    assert text in (await scene.person.look(app.query())).text


async def test_the_consent_page_is_in_german_on_request_and_keeps_the_query(scene: OAuthServerScene) -> None:
    german = await sign_in_person(scene.service, scene.ada.id, "de")
    page = await german.look(scene.app.query())
    assert page.headers["content-language"] == "de"
    assert "Darf <bdi>Example App</bdi> für Sie handeln?" in page.text
    assert "Veranstaltungen, Preise, Anmeldungen" in page.text

    query = urlencode(scene.app.query())
    english = await german.http.get(f"/oauth/authorize?{query}&lang=en")
    assert english.headers["content-language"] == "en"
    assert f'href="?{query.replace("&", "&amp;")}&amp;lang=de"' in english.text
    assert action_in(english) == f"/oauth/authorize?{query}&lang=en"


async def test_a_name_that_is_markup_stays_text(scene: OAuthServerScene) -> None:
    app = await scene.register(client_name='<script>alert("x")</script></bdi><form action=//evil>')
    page = (await scene.person.look(app.query(state='"><script>'))).text

    assert "<script>" not in page
    assert "evil>" not in page
    assert page.count("<form") == 1


async def test_the_consent_page_cannot_be_framed_and_its_form_leads_only_here_and_to_the_client(
    scene: OAuthServerScene,
) -> None:
    policies: list[str] = []
    for address in ("https://app.example/x", "http://localhost:3118/x", "http://[::1]:1/x", "cursor://a/x"):
        app = await scene.register(redirect_uris=[address])
        page = await scene.person.look(app.query())
        assert page.headers["x-frame-options"] == "DENY"
        assert page.headers["cache-control"] == "no-store"
        policy = [directive.strip().partition(" ") for directive in page.headers["content-security-policy"].split(";")]
        directives = {name: sources for name, _, sources in policy}
        assert directives["frame-ancestors"] == "'none'"
        assert directives["default-src"] == "'none'"
        policies.append(directives["form-action"])

    assert policies == [
        "'self' https:",
        "'self' https: http://localhost:3118",
        "'self' https: http:",
        "'self' https: cursor:",
    ]


async def test_a_refusal_is_reported_to_the_client_and_leaves_no_grant(scene: OAuthServerScene) -> None:
    answer = redirect_parameters(await scene.person.decide(scene.app.query(), "refuse"))

    assert (answer["error"], answer["state"], answer["iss"]) == ("access_denied", "xyz", "http://events.test")
    assert await scene.service.run_sql("select from oauth_grants") == []


async def test_opening_the_consent_page_makes_no_grant(scene: OAuthServerScene) -> None:
    query = scene.app.query()
    for _ in range(3):
        assert (await scene.person.look(query)).status_code == 200
    prefetched = await scene.person.http.get(
        f"/oauth/authorize?{urlencode({**query, 'decision': 'allow'})}", headers={"Sec-Purpose": "prefetch"}
    )
    assert prefetched.status_code == 200
    assert (await scene.person.http.head(f"/oauth/authorize?{urlencode(query)}")).status_code == 200
    assert await scene.service.run_sql("select from oauth_grants") == []


@pytest.mark.parametrize("decision", ["", "yes", "ALLOW"])
async def test_a_consent_without_the_button_to_allow_makes_no_grant(scene: OAuthServerScene, decision: str) -> None:
    response = await scene.person.decide(scene.app.query(), decision)

    assert response.status_code == 422
    assert await scene.service.run_sql("select from oauth_grants") == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
async def test_a_consent_form_sent_by_another_site_makes_no_grant(
    scene: OAuthServerScene, headers: dict[str, str]
) -> None:
    page = await scene.person.look(scene.app.query())
    form = {"token": token(page), "decision": "allow"}
    response = await scene.person.http.post(action_in(page), data=form, headers=headers)

    assert response.status_code == 403
    assert await scene.service.run_sql("select from oauth_grants") == []


async def test_a_consent_form_with_the_token_of_another_person_makes_no_grant(scene: OAuthServerScene) -> None:
    _, ben = await scene.other_organizer()
    for form_token in (token(await ben.look(scene.app.query())), "", "0-0", "nonsense"):
        response = await scene.person.decide(scene.app.query(), token=form_token)
        assert response.status_code == 403

    again = await sign_in_person(scene.service, scene.ada.id)
    response = await scene.person.decide(scene.app.query(), token=token(await again.look(scene.app.query())))
    assert response.status_code == 403
    assert await scene.service.run_sql("select from oauth_grants") == []


async def test_a_person_who_has_signed_out_cannot_allow_an_app(scene: OAuthServerScene) -> None:
    page = await scene.person.look(scene.app.query())
    form = {"token": token(page), "decision": "allow"}
    response = await ConsentingPerson(scene.service).http.post(action_in(page), data=form)

    assert response.headers["location"].startswith("/sign-in?")
    assert await scene.service.run_sql("select from oauth_grants") == []


async def test_a_consent_while_the_person_is_signed_out_everywhere_makes_no_grant(scene: OAuthServerScene) -> None:
    query = scene.app.query()
    async with ending_transaction(scene.service) as this:
        await sessions.end(this.tx, scene.ada.id)
        await grants.end_all(this.tx, scene.ada.id)
        allowing = await this.meanwhile(scene.person.decide(query))

    assert (await allowing).headers["location"].startswith("/sign-in?return_to=%2Foauth%2Fauthorize%3F")
    assert await scene.service.run_sql("select from oauth_grants") == []


async def test_a_consent_form_allows_only_the_request_of_its_own_address(scene: OAuthServerScene) -> None:
    page = await scene.person.look(scene.app.query(scope="read_events"))
    widened = f"/oauth/authorize?{urlencode(scene.app.query(redirect_uri='https://evil.example/'))}"
    response = await scene.person.http.post(widened, data={"token": token(page), "decision": "allow"})

    assert response.status_code == 400
    assert "location" not in response.headers


@pytest.mark.usefixtures("own_server")  # limits are kept in the process
async def test_an_account_can_allow_a_limited_number_of_apps_an_hour(scene: OAuthServerScene) -> None:
    for _ in range(60):
        assert (await scene.person.decide(scene.app.query())).status_code == 303
    assert (await scene.person.decide(scene.app.query())).status_code == 429

    _, ben = await scene.other_organizer()
    assert "code" in await ben.allow(scene.app.query())
