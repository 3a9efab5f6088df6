"""The application of a service: it is open while the server runs, and answers paths without a route."""

import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx2
import pytest

from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.answers import always
from holdfast.kit.http.application import Application
from holdfast.kit.http.handler import envelope
from holdfast.kit.http.index import Route

TEXT = b"text/plain; charset=utf-8"
ROUTES = (Route("/events", always(b"events", TEXT)), Route("/events/{id}", always(b"one event", TEXT)))


def application(opened: Callable[[], AbstractAsyncContextManager[None]] = contextlib.nullcontext) -> Application:
    return Application(ROUTES, opened, envelope(Problem.body))


async def answer(method: str, path: str) -> httpx2.Response:
    transport = httpx2.ASGITransport(app=application())
    async with httpx2.AsyncClient(transport=transport, base_url="http://tests.example") as http:
        return await http.request(method, path)


async def test_a_path_without_a_route_is_not_found() -> None:
    unknown = await answer("GET", "/nothing")

    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")


async def test_a_method_that_a_route_does_not_answer_is_refused_with_those_that_it_does() -> None:
    refusal = await answer("DELETE", "/events/7")

    assert (refusal.status_code, refusal.headers["allow"]) == (405, "GET, HEAD")


async def test_a_trailing_slash_is_redirected_to_the_path_without_it() -> None:
    redirect = await answer("GET", "/events/7/?lang=de")

    assert (redirect.status_code, redirect.headers["location"]) == (308, "/events/7")


def test_two_routes_with_one_path_are_refused() -> None:
    same = Route("/events/{other}", always(b"another", TEXT))

    with pytest.raises(ValueError, match=r"Two routes have the path /events/\{other\}"):
        Application((*ROUTES, same), contextlib.nullcontext, envelope(Problem.body))


class LifespanServer:
    """The messages of a server that starts an application and stops it at once."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def receive(self) -> dict[str, Any]:
        return {"type": "lifespan.startup" if not self.sent else "lifespan.shutdown"}

    async def send(self, message: Any) -> None:
        self.sent.append(message["type"])


async def test_an_application_is_open_from_the_start_of_the_server_to_its_end() -> None:
    happened: list[str] = []
    server = LifespanServer()

    @contextlib.asynccontextmanager
    async def opened() -> AsyncGenerator[None]:
        happened.append(f"opened after {server.sent}")
        yield
        happened.append(f"closed after {server.sent}")

    await application(opened)({"type": "lifespan"}, server.receive, server.send)

    assert happened == ["opened after []", "closed after ['lifespan.startup.complete']"]
    assert server.sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_a_failed_start_is_reported_to_the_server() -> None:
    server = LifespanServer()

    @contextlib.asynccontextmanager
    async def opened() -> AsyncGenerator[None]:
        raise RuntimeError("the database is away")
        yield

    with pytest.raises(RuntimeError, match="the database is away"):
        await application(opened)({"type": "lifespan"}, server.receive, server.send)

    assert server.sent == ["lifespan.startup.failed"]
