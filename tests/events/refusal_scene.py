"""An organizer with an event, a registration and keys, for tests that share it: what is refused changes nothing."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import httpx2
import jsonschema
import pytest

from holdfast.events.documents.examples import BODIES
from holdfast.events.problems import ALL
from holdfast.kit.contract.problems import COMMON_PROBLEMS
from holdfast.kit.operations.operation import Operation
from tests.events.routed import ROUTED
from tests.helpers.events_service import Client, Service

in_one_loop = pytest.mark.asyncio(loop_scope="module")
"""For tests that share the service of this module."""

PROCESSOR_KEY = "sk_test_of_the_tests"
"""What requests to the payment processor of all tests have to name."""

KINDS = {kind.code: kind for kind in (*COMMON_PROBLEMS, *ALL)}

LEAKS = re.compile(
    r"""Traceback|psycopg|msgspec|File "|\.py\b|<class|insert into|\bselect .* from\b|unnest|jsonb|returning
      | violates | constraint | relation\ " | column\ " | DETAIL: | bigint | pg_ """,
    re.VERBOSE | re.IGNORECASE,
)
"""Words of our own code, the driver or the database, which no answer may have."""


def failures_in(log: Iterable[str]) -> list[str]:
    """The lines of a log that say that a request has failed."""
    return [line for line in log if "Traceback" in line or "request failed" in line]


STYLE = re.compile(r"<style.*?</style>", re.DOTALL)
"""The style of a page. Its selectors have the words of statements."""


@dataclass
class RefusalScene:
    """A service with something in it to ask for, asked by the organizer who owns it."""

    service: Service
    ada: Client
    spec: dict[str, Any]
    ids: dict[str, Any]

    def path(self, operation: Operation, **other: str) -> str:
        return operation.path.format(**{**self.ids, **other})

    def documented(self, operation: Operation) -> dict[str, Any]:
        return self.spec["paths"][operation.path][operation.method.lower()]

    def body(self, operation: Operation, **fields: Any) -> dict[str, Any]:
        """A body this operation accepts, except for the fields."""
        ours = {"event_id": self.ids["event_id"]} if operation.name == "create_registration" else {}
        inside = {**BODIES.get(operation.name, {}), **ours, **fields}
        return {operation.body_member: inside} if operation.body_member else inside

    async def send(self, operation: Operation, content: bytes | None = None, **options: Any) -> httpx2.Response:
        """Send the operation with a body and a query as they are."""
        path = options.pop("path", self.path(operation))
        if content is not None:
            options["headers"] = {"Content-Type": "application/json", **options.get("headers", {})}
        return await self.ada.request(operation.method, path, content=content, **options)

    def refusal_code(self, response: httpx2.Response, operation: Operation | None = None) -> str:
        """The code of a refusal that has the envelope, gives nothing away, and is documented."""
        assert 400 <= response.status_code < 500, (response.status_code, response.text[:300])
        assert response.headers["content-type"] == "application/json"
        body = response.json()
        for member in ("error", "code", "hint"):
            assert isinstance(body[member], str)
            assert body[member]
        assert not LEAKS.search(response.text), response.text[:1000]
        assert KINDS[body["code"]].status == response.status_code
        jsonschema.validate(body, {"$ref": "#/components/schemas/Error", **self.spec})
        if operation:
            assert str(response.status_code) in self.documented(operation)["responses"]
        return body["code"]

    async def is_untouched(self) -> None:
        """Assert that everything is as it was when the scene was set."""
        events = (await self.ada.get("/api/events")).json()["data"]
        keys = (await self.ada.get("/api/keys")).json()["data"]
        registrations = (await self.ada.get("/api/registrations")).json()["data"]
        queues = (await self.ada.get("/api/queues")).json()["data"]

        assert [(event["title"], event["status"], event["registration_count"]) for event in events] == [
            ("Life drawing", "active", 1)
        ]
        assert [key["name"] for key in keys] == ["First key", "One more"]
        assert [registration["status"] for registration in registrations] == ["registered"]
        assert [(queue["title"], queue["queue_length"]) for queue in queues] == [("Spring sale", 1)]
        assert await self.service.run_sql("select count(*) from users") == [(2,)]
        assert await self.service.run_sql("select count(*) from photos") == [(0,)]


def parametrize_operations(operations: list[Operation]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("operation", operations, ids=[operation.name for operation in operations])


every_operation = parametrize_operations(ROUTED)
with_a_body = parametrize_operations([operation for operation in ROUTED if operation.has_body_fields])
with_a_query = parametrize_operations([operation for operation in ROUTED if not operation.has_body_fields])
with_a_path = parametrize_operations([operation for operation in ROUTED if operation.path_fields])
with_a_key = parametrize_operations([operation for operation in ROUTED if not operation.public])

HUGE = b"9" * 5000
DEEP = 100_000
