"""Certificates are compared with the requested name, although the connection goes to an address."""

import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.kit.outbound.refusals import FetchRefusal
from holdfast.kit.outbound.requests import OutboundClient
from tests.helpers.certificates import Authority
from tests.helpers.outside_servers import LOCAL, client_reaching, fetch_refusal, ok_answer, outside_server

OWNER = ("tests", 1)


async def fetch_securely(tls: ssl.SSLContext, trust: ssl.SSLContext, host: str) -> bytes:
    async def look_up(host: str, port: int) -> Sequence[str]:
        return [LOCAL]

    async with outside_server(ok_answer(b"secure"), tls) as server:
        client = OutboundClient(exempt=[(LOCAL, server.port)], trust=trust, look_up=look_up)
        return (await client.get(f"https://{host}:{server.port}/", owner=OWNER, limit=10)).content


@pytest.mark.parametrize("host", ["photos.example", "127.0.0.1"])
async def test_a_certificate_is_compared_with_the_requested_name(tmp_path: Path, host: str) -> None:
    authority = Authority(tmp_path)

    assert await fetch_securely(authority.issue(host), authority.believed(), host) == b"secure"


async def test_a_certificate_for_another_name_or_of_an_unknown_authority_is_refused(tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path), Authority(tmp_path)

    for tls in (
        authority.issue("other.example"),
        authority.issue("127.0.0.1"),
        stranger.issue("photos.example"),
    ):
        with pytest.raises(FetchRefusal, match="certificate that is not trusted"):
            await fetch_securely(tls, authority.believed(), "photos.example")


async def test_a_certificate_that_the_system_does_not_trust_is_refused(tmp_path: Path) -> None:
    async with outside_server(ok_answer(b"secure"), Authority(tmp_path).issue("127.0.0.1")) as server:
        assert "certificate" in await fetch_refusal(client_reaching(server), f"https://{LOCAL}:{server.port}/")
