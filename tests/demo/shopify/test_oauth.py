"""Installing the app, and its tokens."""

import hmac
import re
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import jwt
import pytest

from holdfast_demo.shopify import platform_state
from holdfast_demo.shopify.oauth import EXCHANGE, ID_TOKEN, OFFLINE, ONLINE
from tests.demo.shopify.stage import ADDRESS, CLIENT, DOMAIN, SCOPES, SECRET, PlatformStage

BACK = f"{ADDRESS}/-app/auth/install"
ASKED = {"client_id": CLIENT, "scope": SCOPES, "redirect_uri": BACK, "state": "some-state"}


async def request_token(stage: PlatformStage, **params: Any) -> tuple[int, Any]:
    """What the token endpoint answers."""
    parameters = {"client_id": CLIENT, "client_secret": SECRET, **params}
    answer = await stage.http.post(f"/{DOMAIN}/admin/oauth/access_token", json=parameters)
    return answer.status_code, answer.json()


async def token_refusal(stage: PlatformStage, **params: Any) -> str:
    status, body = await request_token(stage, **params)
    assert status in {400, 401}
    return body["error"]


async def authorize(stage: PlatformStage) -> dict[str, str]:
    """What a merchant comes back with who has agreed."""
    answer = await stage.http.post(f"/{DOMAIN}/admin/oauth/authorize?{urlencode(ASKED)}")
    return dict(parse_qsl(urlsplit(answer.headers["location"]).query))


async def refreshable_token(stage: PlatformStage) -> Any:
    """A token that can be refreshed."""
    status, body = await request_token(stage, code=(await authorize(stage))["code"], expiring="1")
    assert status == 200, body
    return body


async def is_accepted(stage: PlatformStage, token: str) -> bool:
    return (await stage.post({"query": "{ shop { id } }"}, token=token)).status_code == 200


async def test_scopes_are_asked_for_in_words(stage: PlatformStage) -> None:
    stage.double.uninstall(DOMAIN)
    page = await stage.http.get(
        f"/{DOMAIN}/admin/oauth/authorize?{urlencode({**ASKED, 'scope': ','.join(sorted(platform_state.SCOPES))})}"
    )

    words = re.findall(r"<li>(.+)</li>", page.text)
    # Three scopes are within others: an app that may change something may see it.
    assert len(words) == len(platform_state.SCOPES) - 3
    assert all(not text.startswith("<code>") for text in words)


async def test_a_merchant_consents_and_returns_with_a_signed_code(stage: PlatformStage) -> None:
    stage.double.uninstall(DOMAIN)
    page = await stage.http.get(f"/{DOMAIN}/admin/oauth/authorize?{urlencode(ASKED)}")
    back = await authorize(stage)

    assert page.status_code == 200
    assert "The stock numbers of the packs that you choose." in page.text
    assert stage.double.shop(DOMAIN).installed
    assert (back["shop"], back["state"]) == (DOMAIN, "some-state")
    signature = back.pop("hmac")
    message = "&".join(f"{name}={back[name]}" for name in sorted(back))
    assert signature == hmac.digest(SECRET.encode(), message.encode(), "sha256").hex()


async def test_a_shop_that_has_the_app_with_these_scopes_skips_the_consent_page(stage: PlatformStage) -> None:
    again = await stage.http.get(f"/{DOMAIN}/admin/oauth/authorize?{urlencode(ASKED)}")
    more = {**ASKED, "scope": f"{SCOPES},write_products"}
    page = await stage.http.get(f"/{DOMAIN}/admin/oauth/authorize?{urlencode(more)}")

    assert again.status_code == 303
    assert again.headers["location"].startswith(f"{BACK}?code=")
    assert page.status_code == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "other"},
        {"redirect_uri": "https://thief.example/auth/install"},
        {"redirect_uri": ""},
        {"state": ""},
        {"scope": "read_products,read_minds"},
    ],
)
async def test_an_invalid_request_for_an_installation_is_refused(stage: PlatformStage, changes: dict[str, str]) -> None:
    path = f"/{DOMAIN}/admin/oauth/authorize?{urlencode(ASKED | changes)}"

    assert (await stage.http.get(path)).status_code == 400
    assert (await stage.http.post(path)).status_code == 400


async def test_the_signature_of_the_install_query_is_that_of_the_documentation(stage: PlatformStage) -> None:
    stage.double.state.app.client_secret = "hush"
    parameters = {
        "code": "0907a61c0c8d55e99db179b68161bc00",
        "shop": "some-shop.myshopify.com",
        "state": "0.6784241404160823",
        "timestamp": "1337178173",
    }

    signed = parse_qs(stage.double.oauth.signed(parameters))

    assert signed["hmac"] == ["700e2dadb827fcc8609e9d5ce208b2e9cdaab9df07390d2cbca10d7c328fc4bf"]


async def test_a_code_gives_a_token_once_and_only_for_a_minute(stage: PlatformStage) -> None:
    code, late = (await authorize(stage))["code"], (await authorize(stage))["code"]

    status, body = await request_token(stage, code=code, expiring="1")

    assert status == 200
    assert body["scope"] == SCOPES
    assert body["expires_in"] == 3600
    assert body["refresh_token_expires_in"] == 90 * 86_400
    assert await is_accepted(stage, body["access_token"])
    assert await token_refusal(stage, code=code, expiring="1") == "invalid_request"
    stage.double.clock.advance(61)
    assert await token_refusal(stage, code=late, expiring="1") == "invalid_request"


async def test_wrong_credentials_and_tokens_that_never_expire_are_refused(stage: PlatformStage) -> None:
    assert await token_refusal(stage, client_secret="wrong", code="x") == "invalid_client"
    assert await token_refusal(stage, client_id="other", code="x") == "invalid_client"
    assert await token_refusal(stage, code=(await authorize(stage))["code"]) == "invalid_request"
    assert await token_refusal(stage, grant_type="password") == "unsupported_grant_type"
    assert await token_refusal(stage) == "invalid_request"
    unreadable = await stage.http.post(f"/{DOMAIN}/admin/oauth/access_token", content=b"{")
    assert unreadable.status_code == 400
    nowhere = await stage.http.post("/other.myshopify.com/admin/oauth/access_token", json={"client_id": CLIENT})
    assert nowhere.status_code == 404


async def test_a_token_request_may_be_a_form(stage: PlatformStage) -> None:
    form = {"client_id": CLIENT, "client_secret": SECRET, "grant_type": "client_credentials"}

    answer = await stage.http.post(f"/{DOMAIN}/admin/oauth/access_token", data=form)

    assert answer.json()["expires_in"] == 86_399


async def test_a_token_ends_and_is_refreshed(stage: PlatformStage) -> None:
    first = await refreshable_token(stage)
    stage.double.clock.advance(3601)
    assert not await is_accepted(stage, first["access_token"])

    status, second = await request_token(stage, grant_type="refresh_token", refresh_token=first["refresh_token"])

    assert status == 200
    assert await is_accepted(stage, second["access_token"])
    assert (
        await token_refusal(stage, grant_type="refresh_token", refresh_token=first["refresh_token"]) == "invalid_grant"
    )


async def test_a_client_that_lost_the_answer_can_refresh_its_token_once_more(stage: PlatformStage) -> None:
    first = await refreshable_token(stage)
    refresh: Any = {"grant_type": "refresh_token", "refresh_token": first["refresh_token"]}

    _, lost = await request_token(stage, **refresh)
    status, second = await request_token(stage, **refresh)

    assert status == 200
    assert await is_accepted(stage, first["access_token"])
    assert not await is_accepted(stage, lost["access_token"])
    assert await is_accepted(stage, second["access_token"])
    assert not await is_accepted(stage, first["access_token"])
    status, _ = await request_token(stage, grant_type="refresh_token", refresh_token=second["refresh_token"])
    assert status == 200


async def test_a_refresh_token_ends_after_90_days(stage: PlatformStage) -> None:
    first = await refreshable_token(stage)
    stage.double.clock.advance(90 * 86_400 + 1)

    assert (
        await token_refusal(stage, grant_type="refresh_token", refresh_token=first["refresh_token"]) == "invalid_grant"
    )


async def test_an_uninstall_ends_tokens_and_subscriptions_and_sends_a_webhook(stage: PlatformStage) -> None:
    await stage.subscribe("APP_UNINSTALLED", "ORDERS_CREATE")
    pair, code = await refreshable_token(stage), (await authorize(stage))["code"]

    stage.double.uninstall(DOMAIN)

    assert (await stage.recorder.wait_for("app/uninstalled")).body["myshopify_domain"] == DOMAIN
    assert not await is_accepted(stage, pair["access_token"])
    assert (
        await token_refusal(stage, grant_type="refresh_token", refresh_token=pair["refresh_token"]) == "invalid_grant"
    )
    assert await token_refusal(stage, code=code, expiring="1") == "invalid_request"
    assert await token_refusal(stage, grant_type="client_credentials") == "app_not_installed"
    stage.double.install(DOMAIN)
    stage.token = stage.double.token(DOMAIN)
    assert (await stage.data("{ webhookSubscriptions(first: 5) { nodes { id } } }"))["webhookSubscriptions"][
        "nodes"
    ] == []
    assert not await is_accepted(stage, pair["access_token"])


def token_exchange(stage: PlatformStage, token: str, kind: str = OFFLINE) -> dict[str, str]:
    return {
        "grant_type": EXCHANGE,
        "subject_token": token,
        "subject_token_type": ID_TOKEN,
        "requested_token_type": kind,
        "expiring": "1",
    }


async def test_a_session_token_is_exchanged(stage: PlatformStage) -> None:
    token = stage.double.oauth.session_token(DOMAIN, user=7)
    claims = jwt.decode(token, SECRET, ["HS256"], audience=CLIENT)

    _, offline = await request_token(stage, **token_exchange(stage, token))
    _, online = await request_token(stage, **token_exchange(stage, token, ONLINE))

    assert (claims["dest"], claims["iss"], claims["sub"]) == (f"https://{DOMAIN}", f"https://{DOMAIN}/admin", "7")
    assert "refresh_token" in offline
    assert await is_accepted(stage, offline["access_token"])
    assert online["associated_user"]
    assert "refresh_token" not in online
    assert await token_refusal(stage, **token_exchange(stage, token, "other")) == "invalid_request"
    assert (
        await token_refusal(stage, **(token_exchange(stage, token) | {"subject_token_type": "other"}))
        == "invalid_request"
    )


async def test_a_session_token_that_is_not_right_is_refused(stage: PlatformStage) -> None:
    good = stage.double.oauth.session_token
    forged = jwt.encode(jwt.decode(good(DOMAIN), options={"verify_signature": False}), "other" * 8, "HS256")
    now = stage.double.state.now()

    for token in (
        "",
        "a.b.c",
        "\u00e9.b.c",
        good(DOMAIN)[:-2],
        forged,
        good("other.myshopify.com"),
        good(DOMAIN, aud="other"),
        good(DOMAIN, at=now - 75),
        good(DOMAIN, at=now + 15),
        good(DOMAIN, exp="soon"),
    ):
        assert await token_refusal(stage, **token_exchange(stage, token)) == "invalid_subject_token", token
    status, _ = await request_token(stage, **token_exchange(stage, good(DOMAIN, at=now - 65)))
    assert status == 200
