"""The keys of the authorization server: where they are, and which answers are refused."""

import asyncio
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from starlette.responses import Response
from structlog.testing import capture_logs

from holdfast.events.oauth import issuer as module
from holdfast.events.oauth.issuer import Issuer
from holdfast.kit.security.http_client import trusted_certificates
from tests.events.oauth.authorization_server import AUDIENCE, AuthorizationServer, authorization_server
from tests.events.oauth.failures import FAILURES
from tests.events.oauth.outcomes import is_unavailable


def write_self_signed_certificate(directory: Path) -> Path:
    """A certificate for 127.0.0.1 that nobody vouches for, with its private key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authorization server of the tests")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path = directory / "certificate.pem"
    path.write_bytes(certificate.public_bytes(Encoding.PEM) + private)
    return path


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


async def test_a_page_that_is_no_metadata_is_skipped() -> None:
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
    certificate = write_self_signed_certificate(tmp_path)
    async with authorization_server(certificate=certificate) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        trusted_certificates.cache_clear()
        token = server.token()
        assert await Issuer(server.issuer, AUDIENCE).verify(token)

        async with authorization_server() as plain:
            plain.keys = server.keys
            [metadata] = server.metadata.values()
            metadata["jwks_uri"] = f"{plain.origin}/keys"
            await is_unavailable(Issuer(server.issuer, AUDIENCE), token)
            assert plain.readings == 0

        monkeypatch.delenv("SSL_CERT_FILE")
        trusted_certificates.cache_clear()
        metadata["jwks_uri"] = f"{server.origin}/keys"
        await is_unavailable(Issuer(server.issuer, AUDIENCE), token)  # nobody vouches for its certificate
        assert server.readings == 1


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_token_is_answered_with_503_if_no_keys_could_ever_be_read(
    server: AuthorizationServer, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    fail, reason = FAILURES[failure]
    if reason == "TimeoutError":
        monkeypatch.setattr(module, "READ_TIMEOUT_SECONDS", 0.3)
    await fail(server)
    issuer = Issuer(server.issuer, AUDIENCE)

    with capture_logs() as logs:
        tokens = [server.token(sub=f"ann-{number}") for number in range(5)]
        waits = await asyncio.gather(*(is_unavailable(issuer, token) for token in tokens))

    assert all(1 <= wait <= module.MIN_READ_INTERVAL_SECONDS for wait in waits)
    [entry] = logs
    assert reason in entry["error"]
    assert server.requests.total() <= 3
    assert server.requests["/more"] == 0
