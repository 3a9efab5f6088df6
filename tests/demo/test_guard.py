"""Pages of other sites cannot use the demo through the browser of a person who runs it."""

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from holdfast_demo.shared.serving import guard_application

ADDRESS = "http://127.0.0.1:8004"


async def done(_: Request) -> PlainTextResponse:
    return PlainTextResponse("done")


async def status(method: str, **headers: str) -> int:
    """What the demonstration answers, with these headers."""
    app = guard_application(Starlette(routes=[Route("/", done, methods=["GET", "POST"])]), ADDRESS)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ADDRESS) as client:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return (await client.request(method, "/", headers=named)).status_code


@pytest.mark.parametrize("host", ["127.0.0.1:8004", "localhost:8004", "localhost", "[::1]:8004", "192.168.0.7:8004"])
async def test_addresses_of_the_machine_are_answered(host: str) -> None:
    assert await status("GET", host=host) == 200
    assert await status("POST", host=host) == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8004", "127.0.0.1.evil.example", "", "[", "localhost."])
async def test_a_host_name_that_another_site_may_have_is_refused(host: str) -> None:
    assert await status("GET", host=host) == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:8005"},
    ],
)
async def test_forms_of_other_sites_are_refused_and_links_are_not(headers: dict[str, str]) -> None:
    assert await status("POST", **headers) == 403
    assert await status("GET", **headers) == 200


@pytest.mark.parametrize(
    "headers", [{"sec_fetch_site": "same-origin"}, {"sec_fetch_site": "none"}, {"origin": ADDRESS}]
)
async def test_forms_of_the_own_site_are_accepted(headers: dict[str, str]) -> None:
    assert await status("POST", **headers) == 200
