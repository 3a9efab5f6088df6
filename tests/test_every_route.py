"""HTTP demands on every path of both services: Allow with 405, Retry-After with 429."""

import re
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from holdfast.events.service import ALL_OPERATIONS, EVENTS
from holdfast.inventory.problems import error_body, oauth_body
from holdfast.inventory.service import INVENTORY
from holdfast.kit.http.handler import Access, as_problem
from holdfast.kit.http.request_pace import URGENT
from holdfast.kit.operations.operation import Operation
from holdfast.kit.operations.runner import Runner
from holdfast.kit.process.service_process import ServiceProcess
from tests.helpers.form_browser import token
from tests.helpers.routes import serve_all_routes

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")

PROGRAM, BROWSER = {"accept": "application/json"}, {"accept": "text/html"}

LIMITS = re.compile(r"_per_(second|minute|hour|address)$")
"""Settings that limit how often something is asked for."""


def used_up(name: str) -> dict[str, int]:
    """The settings of a service with which the second request of a kind is one too many."""
    products: dict[str, ServiceProcess[Any, Any]] = {"events": EVENTS, "inventory": INVENTORY}
    return {field: 1 for field in products[name].settings.model_fields if LIMITS.search(field)}


@pytest.fixture
def databases(database_url: str, inventory_url: str) -> dict[str, str]:
    return {"events": database_url, "inventory": inventory_url}


async def test_every_urgent_path_is_a_route_and_every_webhook_is_urgent(
    databases: dict[str, str], tmp_path: Path
) -> None:
    known: list[str] = []
    for name in databases:
        async with serve_all_routes(name, databases, tmp_path) as service:
            known += service.paths

    prefixes = tuple({request.decode().split(" ")[1] for request in URGENT})

    assert [prefix for prefix in prefixes if not any(path.startswith(prefix) for path in known)] == []
    # Not the endpoints to which the service sends webhooks itself.
    incoming = [
        path for path in known if re.search(r"webhooks?(/|$)", path) and not path.startswith(("/docs/", "/assets/"))
    ]
    assert [path for path in incoming if not path.startswith(prefixes)] == []


@pytest.mark.parametrize("name", ["events", "inventory"])
async def test_a_wrong_method_is_answered_with_the_allowed_ones_at_every_path(
    name: str, databases: dict[str, str], tmp_path: Path
) -> None:
    async with serve_all_routes(name, databases, tmp_path) as service:
        wrong: list[str] = []
        seen = 0
        for path in service.paths:
            answers = {method: await service.request(method, path, headers=PROGRAM) for method in METHODS}
            refused_methods = {method for method, answer in answers.items() if answer.status_code == 405}
            seen += len(refused_methods)
            for method in refused_methods:
                for answer in (answers[method], await service.request(method, path, headers=BROWSER)):
                    allowed = {method.strip() for method in answer.headers.get("allow", "").split(",")} - {""}
                    if answer.status_code != 405 or not allowed or allowed != {*METHODS} - refused_methods:
                        wrong.append(
                            f"{method} {path}: {sorted(allowed)}, and not {sorted({*METHODS} - refused_methods)}"
                        )

        assert wrong == []
        assert seen > 250


@pytest.mark.parametrize("name", ["events", "inventory"])
async def test_a_refused_method_gets_an_allow_header_at_every_path(
    name: str, databases: dict[str, str], tmp_path: Path
) -> None:
    async with serve_all_routes(name, databases, tmp_path) as service:
        answers = {path: await service.request("TRACE", path) for path in service.paths if path != "/nothing"}
    allowed = {path: answer.headers.get("allow", "").split(", ") for path, answer in answers.items()}
    bodies = {path: answer.json() for path, answer in answers.items() if "json" in answer.headers["content-type"]}
    texts = {path: " ".join(map(str, body.values())) for path, body in bodies.items()}

    assert {path: answer.status_code for path, answer in answers.items() if answer.status_code != 405} == {}
    assert [path for path, methods in allowed.items() if methods == [""]] == []
    assert len(texts) > 30
    assert {path: text for path, text in texts.items() if f"{path} does not answer TRACE." not in text} == {}
    assert {path: text for path, text in texts.items() if not all(method in text for method in allowed[path])} == {}


@pytest.mark.parametrize("name", ["events", "inventory"])
async def test_a_caller_over_its_rate_limit_is_answered_with_retry_after_at_every_path(
    name: str, databases: dict[str, str], tmp_path: Path
) -> None:
    async with serve_all_routes(name, databases, tmp_path, **used_up(name)) as service:
        ways: list[dict[str, Any]] = [
            {},
            # It does not accept events: a stream would not end.
            {"headers": {**PROGRAM, "authorization": f"Bearer {service.key}"}, "json": {}},
            {"data": {"token": "none"}},
        ]
        limited: set[str] = set()
        for path in service.paths:
            for method in ("GET", "POST", "PATCH", "DELETE"):
                for options in (request for request in ways for _ in range(2)):
                    answer = await service.request(method, path, **options)
                    if answer.status_code == 429:
                        limited.add(f"{method} {path}")
                        assert int(answer.headers.get("retry-after", 0)) > 0, f"{method} {path}"

    assert (
        limited
        >= {
            "events": {
                "POST /mcp",
                "POST /api/registrations",
                "POST /api/keys",
                "POST /oauth/register",
                "GET /sign-in/4711",
            },
            "inventory": {"POST /mcp", "GET /auth", "GET /auth/install", "POST /auth/session", "POST /oauth/token"},
        }[name]
    ), limited


@pytest.mark.parametrize("name", ["events", "inventory"])
async def test_a_sign_in_over_its_rate_limit_is_answered_with_retry_after(
    name: str, databases: dict[str, str], tmp_path: Path
) -> None:
    async with serve_all_routes(name, databases, tmp_path, **used_up(name)) as service:
        form = {"email": "ada@example.com", "token": token(await service.request("GET", "/sign-in"))}
        answers = [await service.request("POST", "/sign-in", data=form) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [303, 429]
    assert int(answers[1].headers["retry-after"]) > 0


def test_an_unexpected_failure_has_its_id_in_the_words_of_both_services() -> None:
    with capture_logs() as logs:
        problem = as_problem(RuntimeError("the password is mellon"), Access("get_pool"))

    for answer in (problem.body(), error_body(problem), oauth_body(problem)):
        assert f"report the request_id {logs[0]['request_id']} to the operator" in str(answer)
        assert "mellon" not in str(answer)


async def test_the_limit_of_every_operation_of_events_is_counted_by_a_route_a_tool_or_a_page(
    databases: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: set[str] = set()
    access_of = Access.of

    def note(operation: Operation, runner: Runner) -> Access:
        counted.add(operation.name)
        return access_of(operation, runner)

    monkeypatch.setattr(Access, "of", note)
    async with serve_all_routes("events", databases, tmp_path):
        limited = {operation.name for operation in ALL_OPERATIONS if operation.limit}

    assert limited
    assert limited - counted == set()
