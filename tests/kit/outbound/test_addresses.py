"""For any URL, name or redirect, connections are made to public addresses only."""

import ipaddress
import socket
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kit.outbound.public_addresses import is_public
from holdfast.kit.outbound.requests import OutboundClient
from tests.helpers.outside_servers import (
    LOCAL,
    client_reaching,
    fetch_refusal,
    ok_answer,
    outside_server,
    redirecting_script,
)

OWNER = ("tests", 1)

NOT_PUBLIC = "names a host that has no public address"

HOSTILE = (
    *("127.0.0.1", "localhost", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254"),
    *("10.0.0.1", "100.64.0.1", "[fd00::1]", "[64:ff9b::7f00:1]", "2130706433", "127.1"),
    *("017700000001", "0177.0.0.1", "localhost.", "[::]", "[fe80::1]", "[::127.0.0.1]", "[2002:7f00:1::]"),
    *("[2001:0:7f00:1::]", "[2001:db8::1]", "[ff02::1]", "224.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1"),
    *("[64:ff9b:1::1]", "[fec0::1]", "168.63.129.16", "172.16.0.1", "192.168.0.1", "[::ffff:10.0.0.1]"),
)
"""Thirteen ways into one's own network that were seen, and more."""


@pytest.mark.parametrize("host", HOSTILE)
@pytest.mark.parametrize("redirected", [False, True], ids=["at once", "by a redirect"])
async def test_no_connection_is_made_to_an_address_that_is_not_public(host: str, redirected: bool) -> None:
    async with outside_server(ok_answer(b"secret")) as inside:
        target = f"http://{host}:{inside.port}/"
        async with outside_server(redirecting_script(target)) as outside:
            # The port of the server inside is let through, so that its address alone can keep it from being reached.
            client = OutboundClient(exempt=[(LOCAL, outside.port), ("192.0.2.7", inside.port)])
            message = await fetch_refusal(client, outside.url if redirected else target)

    assert message in (NOT_PUBLIC, "is not a URL, or redirects to what is none")
    assert inside.requests == []
    assert len(outside.requests) == redirected


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "10.0.0.1", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"]
)
async def test_an_address_that_is_not_public_is_refused_with_that_reason(host: str) -> None:
    assert await fetch_refusal(OutboundClient(), f"http://{host}/") == NOT_PUBLIC


async def test_a_name_that_leads_to_a_public_and_to_another_address_is_refused() -> None:
    async def look_up(host: str, port: int) -> Sequence[str]:
        return ["93.184.215.14", LOCAL]

    assert await fetch_refusal(OutboundClient(look_up=look_up), "http://two-faced.example/") == NOT_PUBLIC


async def test_a_name_is_looked_up_once_and_the_connection_goes_to_what_was_checked() -> None:
    answers = [[LOCAL], ["127.0.0.2"]]

    async def look_up(host: str, port: int) -> Sequence[str]:
        return answers.pop(0)

    async with outside_server(ok_answer(b"checked")) as server:
        client = OutboundClient(exempt=[(LOCAL, server.port)], look_up=look_up)
        fetched = await client.get(f"http://changing.example:{server.port}/", owner=OWNER, limit=10)

        assert fetched.content == b"checked"
        assert answers == [["127.0.0.2"]]
        assert await fetch_refusal(client, f"http://changing.example:{server.port}/") == NOT_PUBLIC


async def test_the_next_address_of_a_name_is_tried_when_one_does_not_answer() -> None:
    async def look_up(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.3", LOCAL]

    async with outside_server(ok_answer(b"second")) as server:
        client = OutboundClient(exempt=[("127.0.0.3", server.port), (LOCAL, server.port)], look_up=look_up)
        assert (await client.get(f"http://two.example:{server.port}/", owner=OWNER, limit=10)).content == b"second"


async def test_an_exemption_is_valid_for_its_own_port_only() -> None:
    async with outside_server(ok_answer(b"")) as one, outside_server(ok_answer(b"")) as other:
        client = OutboundClient(exempt=[(LOCAL, one.port), ("192.0.2.7", other.port)])
        assert await fetch_refusal(client, other.url) == NOT_PUBLIC
        assert other.requests == []


@pytest.mark.parametrize(
    "url",
    [
        *("", "photo.jpg", "//example.com/", "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/"),
        *("data:image/png;base64,AAAA", "javascript:alert(1)", "http:///photo.jpg", "http://", "https:example.com"),
        *("http://example.com\n/", "http://exa mple.com\x00/", "http://[::1/", "http://example.com:port/"),
        *("http://example.com:8080/", "https://example.com:80/", "http://example.com:443/", "http://example.com:0/"),
        *("http://user@example.com/", "http://user:secret@example.com/", "http://example.com\\@127.0.0.1/"),
        *("http://\u2460.example.com/", "http://" + "a" * 70 + ".example/", "http://a..b/"),
    ],
)
async def test_a_url_that_is_not_public_is_refused_before_its_host_is_looked_up(url: str) -> None:
    looked_up: list[str] = []

    async def look_up(host: str, port: int) -> Sequence[str]:
        looked_up.append(host)
        raise OSError("nobody knows")

    assert await fetch_refusal(OutboundClient(look_up=look_up), url)
    assert [host for host in looked_up if len(host) < 70 and ".." not in host] == []


async def test_an_unknown_name_is_refused_in_the_same_words_as_an_internal_one() -> None:
    async def look_up(host: str, port: int) -> Sequence[str]:
        if host == "localhost":
            return [LOCAL]
        raise socket.gaierror("Name or service not known")

    messages = [
        await fetch_refusal(OutboundClient(look_up=look_up), f"http://{host}/")
        for host in ("localhost", "nobody.example")
    ]

    assert messages == [NOT_PUBLIC, NOT_PUBLIC]


async def test_three_redirects_are_followed_and_a_fourth_is_not() -> None:
    async with outside_server(redirecting_script("/a", "/b", "/c")) as server:
        assert (await client_reaching(server).get(server.url, owner=OWNER, limit=10)).content == b"there"
    async with outside_server(redirecting_script("/a", "/b", "/c", "/d")) as server:
        assert await fetch_refusal(client_reaching(server), server.url) == "redirects more than 3 times"
        assert len(server.requests) == 4


async def test_no_cookie_is_carried_along_a_redirect() -> None:
    async with outside_server(redirecting_script("/again")) as server:
        await client_reaching(server).get(server.url, owner=OWNER, limit=10)

    assert "cookie" not in server.requests[1].lower()


@pytest.mark.parametrize(
    "location",
    ["http://user:secret@example.com/", "ftp://example.com/", "http://example.com:81/", "http://[::1", "file:///etc"],
)
async def test_a_redirect_to_a_forbidden_address_is_refused(location: str) -> None:
    async with outside_server(redirecting_script(location)) as server:
        assert await fetch_refusal(client_reaching(server), server.url)


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_reserved_by_the_registries_is_never_public(address: ipaddress.IPv4Address) -> None:
    if is_public(address):
        assert address.is_global
        assert not address.is_multicast


@given(st.ip_addresses(v=6))
def test_an_ipv6_address_reserved_by_the_registries_is_never_public(address: ipaddress.IPv6Address) -> None:
    if is_public(address):
        assert address.is_global
        assert not address.is_multicast


private = st.sampled_from(
    [ipaddress.ip_network(network) for network in ("127.0.0.0/8", "10.0.0.0/8", "169.254.0.0/16", "100.64.0.0/10")]
).flatmap(lambda network: st.ip_addresses(network=network))


@given(private, st.integers(0, 2**80 - 1))
def test_a_private_address_wrapped_into_ipv6_is_never_public(address: ipaddress.IPv4Address, rest: int) -> None:
    inside = int(address)
    assert not is_public(address)
    for wrapped in (
        0xFFFF << 32 | inside,
        inside,
        int(ipaddress.IPv6Address("64:ff9b::")) | inside,
        0x2002 << 112 | inside << 80 | rest,
        0x20010000 << 96 | inside << 64 | rest % 2**64,
        0x20010000 << 96 | rest % 2**64 << 32 | inside ^ 0xFFFF_FFFF,
    ):
        assert not is_public(ipaddress.IPv6Address(wrapped))


@pytest.mark.parametrize(
    "address", ["93.184.215.14", "8.8.8.8", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "64:ff9b::808:808", "2a00::1"]
)
def test_an_address_that_the_internet_routes_is_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))
