"""A client authenticates with an assertion that it has signed; an invalid one gets nothing and spoils nothing."""

import hmac
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import ECKey, RSAKey

from holdfast.events.oauth_server import client_keys
from holdfast.events.settings import Settings
from tests.events.oauth_server.oauth_server_scene import (
    App,
    OAuthServerScene,
    issued_tokens,
    serve_oauth_scene,
    status_and_error,
)
from tests.events.oauth_server.published import PublishedSite, publish_site
from tests.events.oauth_server.signed_assertions import ISSUER, JWT_BEARER, SigningClient, signing_key
from tests.helpers.cases import in_turn
from tests.helpers.outside_servers import raw_answer

KEYS = "/keys.json"


class Signer:
    """A client that publishes its document and its keys, and has been allowed something."""

    def __init__(self, scene: OAuthServerScene, site: PublishedSite, key: RSAKey | ECKey) -> None:
        self.scene = scene
        self.site = site
        self.client = SigningClient(site.address, key=key)
        self.site.publishes(KEYS, self.client.jwks)
        self.describe(token_endpoint_auth_method="private_key_jwt", jwks_uri=f"{site.origin}{KEYS}")

    def describe(self, **changes: Any) -> None:
        self.site.says(**changes)

    @property
    def app(self) -> App:
        return App(self.scene.service.http, self.site.about, ISSUER)

    async def code(self) -> str:
        return (await self.scene.person.allow(self.app.query()))["code"]


@pytest.fixture(scope="module")
def key() -> RSAKey | ECKey:
    return signing_key()


@pytest.fixture
async def signer(with_server: Settings, tmp_path: Path, key: RSAKey | ECKey) -> AsyncIterator[Signer]:
    async with publish_site(tmp_path) as site, serve_oauth_scene(with_server, documents=site.outbound) as scene:
        yield Signer(scene, site, key)


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"aud": ISSUER},
        {"aud": [ISSUER, "https://other.example"]},
        {"aud": f"{ISSUER}/token"},
        {"jti": None, "iat": None},
        {"exp": -30},
        {"nbf": 30},
    ],
    ids=str,
)
async def test_a_client_that_signs_gets_tokens(signer: Signer, claims: dict[str, Any]) -> None:
    tokens = issued_tokens(await signer.app.redeem(await signer.code(), **signer.client.proof(**claims)))

    assert await signer.scene.works(tokens)
    assert (await signer.app.refresh(tokens["refresh_token"], **signer.client.proof())).status_code == 200


async def test_the_keys_may_stand_in_the_document_and_the_assertion_may_name_none(signer: Signer) -> None:
    signer.client = SigningClient(signer.site.address, algorithm="ES256")
    signer.describe(token_endpoint_auth_method="private_key_jwt", jwks=signer.client.jwks)

    proof = signer.client.proof({"kid": None})
    assert issued_tokens(await signer.app.redeem(await signer.code(), **proof))
    assert signer.site.requests(KEYS) == 0


async def test_the_client_id_may_be_left_out_beside_an_assertion(signer: Signer) -> None:
    assert issued_tokens(await signer.app.redeem(await signer.code(), client_id=None, **signer.client.proof()))


async def test_a_client_that_supports_both_methods_may_use_either(signer: Signer) -> None:
    methods = ["none", "private_key_jwt"]
    signer.describe(
        token_endpoint_auth_method="private_key_jwt",
        token_endpoint_auth_methods_supported=methods,
        jwks_uri=f"{signer.site.origin}{KEYS}",
    )

    tokens = issued_tokens(await signer.app.redeem(await signer.code()))
    assert signer.site.requests(KEYS) == 0
    assert issued_tokens(await signer.app.refresh(tokens["refresh_token"], **signer.client.proof()))
    other = SigningClient(signer.site.address)
    assert status_and_error(await signer.app.redeem(await signer.code(), **other.proof())) == (400, "invalid_client")


async def test_a_client_without_keys_may_list_several_methods_with_none(signer: Signer) -> None:
    methods = ["private_key_jwt", "client_secret_basic", "none"]
    signer.describe(token_endpoint_auth_method="private_key_jwt", token_endpoint_auth_methods_supported=methods)

    assert issued_tokens(await signer.app.redeem(await signer.code()))


Forge = Callable[[SigningClient], Mapping[str, str | None]]


def _base64url(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def _unsigned_proof(client: SigningClient) -> Mapping[str, str | None]:
    head = _base64url(b'{"alg":"none"}')
    content = client.assertion().split(".")[1]
    return {**client.proof(), "client_assertion": f"{head}.{content}."}


def _with_the_public_key_as_a_secret(client: SigningClient) -> Mapping[str, str | None]:
    head = _base64url(b'{"alg":"HS256","kid":"key-1"}')
    content = client.assertion().split(".")[1]
    signature = hmac.digest(client.key.as_pem(private=False), f"{head}.{content}".encode(), "sha256")
    return {**client.proof(), "client_assertion": f"{head}.{content}.{_base64url(signature)}"}


def _with_an_embedded_key(client: SigningClient) -> Mapping[str, str | None]:
    other = SigningClient(client.client_id)
    return other.proof({"jwk": other.key.as_dict(private=False)})


FORGED: Mapping[str, Forge] = {
    "nothing": lambda client: {},
    "another key of the same name": lambda client: SigningClient(client.client_id).proof(),
    "a key that is not published": lambda client: SigningClient(client.client_id, "key-2").proof(),
    "another server": lambda client: client.proof(aud="https://other.example/oauth/token"),
    "another server that begins alike": lambda client: client.proof(aud=f"{ISSUER}.evil.example"),
    "another issuer": lambda client: client.proof(iss="https://other.example/client.json"),
    "another subject": lambda client: client.proof(sub="https://other.example/client.json"),
    "expired": lambda client: client.proof(exp=-120),
    "for ever": lambda client: client.proof(exp=90_000),
    "no end": lambda client: client.proof(exp=None),
    "not a time": lambda client: client.proof(exp="soon"),
    "not yet": lambda client: client.proof(nbf=600),
    "no audience": lambda client: client.proof(aud=None),
    "an extension": lambda client: client.proof({"crit": ["b64"], "b64": True}),
    "unsigned": _unsigned_proof,
    "the public key as a secret": _with_the_public_key_as_a_secret,
    "an embedded key": _with_an_embedded_key,
    "another type": lambda client: {**client.proof(), "client_assertion_type": "saml2"},
    "no type": lambda client: {**client.proof(), "client_assertion_type": None},
    "no text": lambda client: {"client_assertion_type": JWT_BEARER},
    "no token": lambda client: {**client.proof(), "client_assertion": "x"},
    "too long": lambda client: client.proof(padding="x" * 20_000),
}


@in_turn("forged", FORGED)
async def test_an_invalid_assertion_is_refused_and_leaves_the_code_valid(signer: Signer, forged: str) -> None:
    code = await signer.code()

    proof = FORGED[forged](signer.client)
    assert status_and_error(await signer.app.redeem(code, **proof)) == (400, "invalid_client")
    assert issued_tokens(await signer.app.redeem(code, **signer.client.proof()))


async def test_a_stolen_refresh_token_is_useless_without_the_key_of_the_client(signer: Signer) -> None:
    tokens = issued_tokens(await signer.app.redeem(await signer.code(), **signer.client.proof()))

    assert status_and_error(await signer.app.refresh(tokens["refresh_token"])) == (400, "invalid_client")
    assert status_and_error(await signer.app.revoke(tokens["refresh_token"])) == (400, "invalid_client")
    assert await signer.scene.works(tokens)
    proof = {name: value for name, value in signer.client.proof().items() if value is not None}
    assert (await signer.app.revoke(tokens["refresh_token"], **proof)).status_code == 200
    assert not await signer.scene.works(tokens)


async def test_a_signing_client_that_shows_the_code_of_another_client_spends_it(signer: Signer) -> None:
    code = (await signer.scene.person.allow(signer.scene.app.query()))["code"]

    assert status_and_error(await signer.app.redeem(code, **signer.client.proof())) == (400, "invalid_grant")
    assert status_and_error(await signer.scene.app.redeem(code)) == (400, "invalid_grant")
    assert signer.site.requests(KEYS) == 0


async def test_a_client_that_registered_itself_has_no_keys(signer: Signer) -> None:
    app = signer.scene.app
    code = (await signer.scene.person.allow(app.query()))["code"]

    assert status_and_error(await app.redeem(code, **SigningClient(app.id).proof())) == (400, "invalid_client")
    assert issued_tokens(await app.redeem(code))


async def test_the_keys_are_read_once_and_only_for_a_code_that_exists(signer: Signer) -> None:
    assert status_and_error(await signer.app.redeem("hfoc_unknown", **signer.client.proof())) == (400, "invalid_grant")
    assert signer.site.requests(KEYS) == 0

    for _ in range(3):
        await signer.app.redeem(await signer.code(), **signer.client.proof())
    assert signer.site.requests(KEYS) == 1


async def test_an_assertion_with_new_keys_of_the_client_is_accepted(
    signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_keys, "MIN_CACHE_SECONDS", 0)
    tokens = issued_tokens(await signer.app.redeem(await signer.code(), **signer.client.proof()))
    signer.client = SigningClient(signer.site.address, "key-2")
    assert status_and_error(await signer.app.refresh(tokens["refresh_token"], **signer.client.proof())) == (
        400,
        "invalid_client",
    )

    signer.site.publishes(KEYS, signer.client.jwks)
    assert issued_tokens(await signer.app.refresh(tokens["refresh_token"], **signer.client.proof()))


async def test_new_keys_in_a_document_are_found_once_it_may_be_read_again(signer: Signer) -> None:
    signer.describe(token_endpoint_auth_method="private_key_jwt", jwks=signer.client.jwks)
    tokens = issued_tokens(await signer.app.redeem(await signer.code(), **signer.client.proof()))
    signer.client = SigningClient(signer.site.address, "key-2")
    signer.describe(token_endpoint_auth_method="private_key_jwt", jwks=signer.client.jwks)

    sql = "update oauth_clients set fetched_until = now() where fetched_until is not null"
    await signer.scene.service.run_sql(sql)
    assert issued_tokens(await signer.app.refresh(tokens["refresh_token"], **signer.client.proof()))


async def test_keys_that_cannot_be_read_now_are_no_fault_of_the_client(signer: Signer) -> None:
    signer.site.others[KEYS] = raw_answer("503 Service Unavailable\r\nContent-Length: 0")
    code = await signer.code()
    response = await signer.app.redeem(code, **signer.client.proof())
    assert status_and_error(response) == (503, "service_unavailable")
    assert response.headers["retry-after"]

    signer.site.publishes(KEYS, signer.client.jwks)
    assert issued_tokens(await signer.app.redeem(code, **signer.client.proof()))


@pytest.mark.parametrize("content", ['"keys"', '{"keys": 1}', "[" * 10_000], ids=lambda text: text[:12])
async def test_an_invalid_key_set_is_named_in_the_error_to_the_client(signer: Signer, content: str) -> None:
    signer.site.others[KEYS] = raw_answer(f"200 OK\r\nContent-Length: {len(content)}", content.encode())

    response = await signer.app.redeem(await signer.code(), **signer.client.proof())
    assert status_and_error(response) == (400, "invalid_client")
    assert "RFC 7517" in response.json()["error_description"]


async def test_keys_in_the_operators_own_network_are_not_read(signer: Signer) -> None:
    signer.describe(token_endpoint_auth_method="private_key_jwt", jwks_uri="https://metadata.internal/keys.json")

    response = await signer.app.redeem(await signer.code(), **signer.client.proof())
    assert status_and_error(response) == (503, "service_unavailable")
    assert "no public address" in response.json()["error_description"]


@pytest.mark.parametrize(
    "changes",
    [
        {"jwks_uri": None},
        {"jwks_uri": "http://app.example/keys.json"},
        {"jwks_uri": "https://127.0.0.1/keys.json"},
        {"jwks_uri": 1},
        {"jwks_uri": "https://app.example/keys.json", "jwks": {"keys": []}},
        {"jwks_uri": None, "jwks": []},
        {"client_secret": "hush"},
        {"token_endpoint_auth_method": "client_secret_jwt"},
        {"token_endpoint_auth_method": "tls_client_auth", "token_endpoint_auth_methods_supported": "x"},
    ],
    ids=str,
)
async def test_a_document_without_a_usable_way_to_prove_itself_is_refused(
    signer: Signer, changes: dict[str, Any]
) -> None:
    signer.describe(
        **{"token_endpoint_auth_method": "private_key_jwt", "jwks_uri": f"{signer.site.origin}{KEYS}", **changes}
    )

    page = await signer.scene.person.look(signer.app.query())
    assert page.status_code == 400
    assert "<form" not in page.text
