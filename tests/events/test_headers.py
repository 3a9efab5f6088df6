"""Headers that forbid browsers to guess the type of an answer."""

import pytest

from tests.helpers.events_service import Service


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", path) for path in ("/api/events", "/api/organizers/register", "/api/nothing", "/nothing", "/")),
        *(("GET", path) for path in ("/docs", "/docs.md", "/openapi.json", "/llms.txt", "/mcp", "/healthz", "/readyz")),
        *(("GET", path) for path in ("/metrics", "/queues/1", "/queues/1/embed", "/media/photos/1/no.jpg", "/media/")),
        *(("GET", path) for path in ("/.well-known/queue-jwks.json", "/.well-known/mcp/server-card.json")),
        *(("OPTIONS", path) for path in ("/docs.md", "/uploads/1/no.jpg", "/mcp", "/api/events")),
        *(("POST", path) for path in ("/mcp", "/api/events", "/api/organizers/register", "/docs")),
    ],
)
async def test_every_answer_forbids_browsers_to_guess_its_type(service: Service, method: str, path: str) -> None:
    answer = await service.http.request(method, path)

    assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
