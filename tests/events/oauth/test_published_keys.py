"""The authorization server's keys: found, remembered, replaced in time, and missed when nobody can be asked."""

import asyncio
import gzip
import socket
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from structlog.testing import capture_logs

from holdfast.events.oauth import issuer as module
from holdfast.events.oauth import jwks
from holdfast.events.oauth.issuer import Issuer
from holdfast.kit.problems import Problem
from holdfast.kit.tokens import InvalidToken
from tests.events.oauth.authorization_server import (
    AUDIENCE,
    AuthorizationServer,
    authorization_server,
    new_key,
    self_signed,
)
from tests.support import eventually

HOUR = 3600.0


@pytest.fixture
def issuer(server: AuthorizationServer) -> Issuer:
    return Issuer(server.issuer, AUDIENCE)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is remembered, and the server may be asked at any time."""
    monkeypatch.setattr(module, "REMEMBERED", -1.0)
    monkeypatch.setattr(module, "COOL_DOWN", 0.0)


async def is_unavailable(issuer: Issuer, token: str) -> int:
    """The seconds after which to come back."""
    async with asyncio.timeout(5):
        with pytest.raises(Problem) as refused:
            await issuer.verify(token)
    assert (refused.value.status, refused.value.code) == (503, "service_unavailable")
    assert refused.value.retry_after
    return refused.value.retry_after


async def refusal(issuer: Issuer, token: str) -> str:
    with pytest.raises(InvalidToken) as refused:
        await issuer.verify(token)
    return str(refused.value)


# Discovery


@pytest.mark.parametrize(
    ("path", "well_known"),
    [
        ("", "/.well-known/oauth-authorization-server"),
        ("", "/.well-known/openid-configuration"),
        ("/", "/.well-known/oauth-authorization-server"),
        ("/", "/.well-known/openid-configuration"),
        ("/realms/tickets", "/.well-known/oauth-authorization-server/realms/tickets"),
        ("/realms/tickets", "/.well-known/openid-configuration/realms/tickets"),
        ("/realms/tickets", "/realms/tickets/.well-known/openid-configuration"),
        ("/realms/tickets/", "/realms/tickets/.well-known/openid-configuration"),
    ],
)
async def test_the_metadata_is_found_wherever_it_may_be(path: str, well_known: str) -> None:
    async with authorization_server(path) as server:
        [metadata] = server.metadata.values()
        server.metadata = {well_known: metadata}

        claims = await Issuer(server.issuer, AUDIENCE).verify(server.token())

    assert claims.subject == "ann"
    assert server.issuer.endswith(path)


async def test_pages_that_are_no_metadata_are_passed_over() -> None:
    async with authorization_server("/tenant") as server:
        [metadata] = server.metadata.values()
        server.metadata = {"/tenant/.well-known/openid-configuration": metadata}

        async def says_yes_to_everything(path: str) -> Response | None:
            return Response("<!doctype html>", 200) if path.startswith("/.well-known/") else None

        server.answer = says_yes_to_everything
        assert await Issuer(server.issuer, AUDIENCE).verify(server.token())


@pytest.mark.parametrize("other", ["https://else.example", "{0}/", "{0}#", "{0}.else.example", "", None])
async def test_the_metadata_of_another_issuer_is_refused(
    server: AuthorizationServer, issuer: Issuer, other: str | None
) -> None:
    [metadata] = server.metadata.values()
    metadata["issuer"] = other and other.format(server.issuer)

    with capture_logs() as logs:
        await is_unavailable(issuer, server.token())

    assert server.readings == 0
    assert [entry["event"] for entry in logs] == ["the authorization server did not give its keys"]
    assert logs[0]["issuer"] == server.issuer


async def test_an_issuer_that_is_https_has_its_keys_by_https(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = self_signed(tmp_path)
    async with authorization_server(certificate=certificate) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        token = server.token()
        assert await Issuer(server.issuer, AUDIENCE).verify(token)

        async with authorization_server() as plain:
            plain.keys = server.keys
            [metadata] = server.metadata.values()
            metadata["jwks_uri"] = f"{plain.origin}/keys"
            await is_unavailable(Issuer(server.issuer, AUDIENCE), token)
            assert plain.readings == 0

        monkeypatch.delenv("SSL_CERT_FILE")
        metadata["jwks_uri"] = f"{server.origin}/keys"
        await is_unavailable(Issuer(server.issuer, AUDIENCE), token)  # nobody vouches for its certificate
        assert server.readings == 1


# Remembering


async def test_the_keys_are_read_once_for_everybody_who_waits(server: AuthorizationServer, issuer: Issuer) -> None:
    claims = await asyncio.gather(*(issuer.verify(server.token(sub=f"ann-{number}")) for number in range(50)))

    assert {each.subject for each in claims} == {f"ann-{number}" for number in range(50)}
    assert server.readings == 1


async def test_the_keys_are_read_again_after_a_while(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = server.token()
    for _ in range(3):
        await issuer.verify(token)
    assert server.readings == 1

    monkeypatch.setattr(module, "COOL_DOWN", 0.0)
    monkeypatch.setattr(module, "REMEMBERED", -1.0)
    await issuer.verify(token)
    assert server.readings == 2


async def test_a_new_key_is_accepted_at_once(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await issuer.verify(server.token())
    monkeypatch.setattr(module, "COOL_DOWN", 0.0)

    server.keys.insert(0, new_key())
    fresh = await asyncio.gather(*(issuer.verify(server.token(sub=f"ann-{number}")) for number in range(5)))
    server.keys.insert(0, new_key(kid=None))
    unnamed = await issuer.verify(server.token(header={"kid": None}))

    assert len({each.subject for each in fresh}) == 5
    assert unnamed.subject == "ann"


async def test_what_a_withdrawn_key_signed_ends(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = server.token()
    await issuer.verify(old)
    server.rotate()
    monkeypatch.setattr(module, "COOL_DOWN", 0.0)
    await issuer.verify(server.token())

    assert "key is not known" in await refusal(issuer, old)


async def test_where_all_keys_are_withdrawn_nothing_is_believed(
    server: AuthorizationServer, issuer: Issuer, impatient: None
) -> None:
    token = server.token()
    await issuer.verify(token)
    server.jwks = []

    assert "key is not known" in await refusal(issuer, token)


async def test_made_up_keys_make_nobody_ask_the_server(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await issuer.verify(server.token())
    strangers = [new_key() for _ in range(10)]
    made_up = [server.token(key=key, header={"kid": kid}) for key in strangers for kid in (key.kid, None)]

    refused = await asyncio.gather(*(refusal(issuer, token) for token in made_up))
    assert all("key is not known" in each for each in refused)
    assert server.readings == 1

    monkeypatch.setattr(module, "COOL_DOWN", 0.0)
    await refusal(issuer, made_up[0])
    assert server.readings == 2
    monkeypatch.setattr(module, "COOL_DOWN", HOUR)
    await asyncio.gather(*(refusal(issuer, token) for token in made_up))
    assert server.readings == 2


async def test_a_wrong_signature_by_a_known_key_makes_nobody_ask_the_server(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await issuer.verify(server.token())
    monkeypatch.setattr(module, "COOL_DOWN", 0.0)

    assert "signature" in await refusal(issuer, server.token(key=new_key(), header={"kid": server.keys[0].kid}))
    assert server.readings == 1


async def test_tokens_that_are_not_for_us_make_nobody_ask_the_server(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await issuer.verify(server.token())
    monkeypatch.setattr(module, "COOL_DOWN", 0.0)
    stranger = new_key()

    claims: list[dict[str, Any]] = [{"iss": "https://else.example"}, {"aud": "https://else.example"}, {"exp": 1}]
    for each in claims:
        assert await refusal(issuer, server.token(key=stranger, **each))
    assert server.readings == 1


# A server that fails


async def closed(server: AuthorizationServer) -> None:
    """Nobody listens where the server was."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server.issuer = f"http://127.0.0.1:{free.getsockname()[1]}"


async def silent(server: AuthorizationServer) -> None:
    server.fall_silent()


async def broken(server: AuthorizationServer) -> None:
    server.fail()


def answering(response: Any, *, at: str = "/") -> Any:
    async def fail(server: AuthorizationServer) -> None:
        async def answer(path: str) -> Response | None:
            return response() if path.startswith(at) else None

        server.answer = answer

    return fail


def dripping() -> Response:
    async def drip() -> AsyncGenerator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.01)

    return StreamingResponse(drip(), media_type="application/json")


def flooding() -> Response:
    async def flood() -> AsyncGenerator[bytes]:
        while True:
            yield b" " * 65_536
            await asyncio.sleep(0)

    return StreamingResponse(flood(), media_type="application/json")


FAILURES = {
    "nobody listens": (closed, "ConnectError"),
    "it never answers": (silent, "TimeoutError"),
    "it answers 500": (broken, "the answer is 500"),
    "it answers a byte at a time": (answering(dripping), "TimeoutError"),
    "it answers without end": (answering(flooding), "longer than 262144 bytes"),
    "its keys never end": (answering(flooding, at="/keys"), "longer than 262144 bytes"),
    "it answers no JSON": (answering(lambda: Response("<html>")), "malformed"),
    "it answers other JSON": (answering(lambda: JSONResponse(["keys"])), "Expected `object`, got `array`"),
    "its keys are no keys": (answering(lambda: JSONResponse({"keys": {"a": 1}}), at="/keys"), "Expected `array`"),
    "it nests without end": (answering(lambda: Response(b'{"a":' + b"[" * 100_000)), "RecursionError"),
    "it sends people elsewhere": (answering(lambda: RedirectResponse("/keys"), at="/.well-known/"), "is 307"),
    "its keys are elsewhere": (answering(lambda: RedirectResponse("/more"), at="/keys"), "is 307"),
    "it answers no text": (answering(lambda: Response(b"\xff\xfe\x00")), "malformed"),
    "it answers compressed": (
        answering(lambda: Response(gzip.compress(b"{}"), headers={"content-encoding": "gzip"})),
        "malformed",
    ),
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_without_keys_it_is_the_service_that_cannot_answer(
    server: AuthorizationServer, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    fail, reason = FAILURES[failure]
    if reason == "TimeoutError":
        monkeypatch.setattr(jwks, "TIMEOUT", 0.3)
    await fail(server)
    issuer = Issuer(server.issuer, AUDIENCE)

    with capture_logs() as logs:
        tokens = [server.token(sub=f"ann-{number}") for number in range(5)]
        waits = await asyncio.gather(*(is_unavailable(issuer, token) for token in tokens))

    assert all(1 <= wait <= module.COOL_DOWN for wait in waits)
    [entry] = logs
    assert reason in entry["error"]
    assert server.asked.total() <= 3
    assert server.asked["/more"] == 0


@pytest.mark.parametrize("failure", ["it never answers", "it answers 500", "its keys are no keys"])
async def test_the_last_good_keys_stay_good_while_the_server_fails(
    server: AuthorizationServer, issuer: Issuer, impatient: None, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    monkeypatch.setattr(jwks, "TIMEOUT", 0.3)
    await issuer.verify(server.token())
    await FAILURES[failure][0](server)

    assert await issuer.verify(server.token(sub="ben"))
    assert "signature" in await refusal(issuer, server.token(key=new_key(), header={"kid": server.keys[0].kid}))


async def test_a_key_nobody_can_be_asked_about_is_not_called_wrong(
    server: AuthorizationServer, issuer: Issuer, impatient: None
) -> None:
    await issuer.verify(server.token())
    server.rotate()
    server.fail()
    token = server.token()

    await is_unavailable(issuer, token)
    server.recover()
    assert await issuer.verify(token)


async def test_the_last_good_keys_are_not_good_for_ever(
    server: AuthorizationServer, issuer: Issuer, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = server.token()
    await issuer.verify(token)
    server.fail()
    monkeypatch.setattr(module, "LAST_GOOD", -1.0)

    await is_unavailable(issuer, token)


async def test_a_server_that_fails_is_left_alone_for_a_while(server: AuthorizationServer, issuer: Issuer) -> None:
    server.fail()
    for _ in range(5):
        await is_unavailable(issuer, server.token())
    asked = server.asked.total()
    server.recover()

    await is_unavailable(issuer, server.token())
    assert server.asked.total() == asked <= 2


async def test_only_one_caller_waits_for_a_server_that_is_known_to_fail(
    server: AuthorizationServer, issuer: Issuer, impatient: None
) -> None:
    await issuer.verify(server.token())
    server.fail()
    await issuer.verify(server.token())
    server.fall_silent()
    asked = server.asked.total()

    async def is_asked() -> bool:
        return server.asked.total() > asked

    waiting = asyncio.create_task(issuer.verify(server.token()))
    await eventually(is_asked)
    async with asyncio.timeout(2):
        await asyncio.gather(*(issuer.verify(server.token(sub=f"ann-{number}")) for number in range(10)))
    assert not waiting.done()

    server.recover()
    assert (await waiting).subject == "ann"


async def test_a_caller_who_goes_away_while_the_server_is_asked_is_not_held_against_it(
    server: AuthorizationServer, issuer: Issuer
) -> None:
    server.fall_silent()

    async def is_asked() -> bool:
        return server.asked.total() > 0

    leaving = asyncio.create_task(issuer.verify(server.token()))
    await eventually(is_asked)
    leaving.cancel()
    await asyncio.wait([leaving])
    server.recover()

    assert await issuer.verify(server.token())
