"""Headers that forbid browsers to guess the type of an answer."""

import pytest

from holdfast.inventory.settings import Settings
from tests.helpers.inventory_service import Inventory, running_inventory


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", path) for path in ("/mcp", "/auth.md", "/llms.txt", "/nothing", "/", "/healthz", "/readyz")),
        *(("GET", path) for path in ("/metrics", "/storefront/availability", "/storefront/stream", "/.well-known/mcp")),
        *(("OPTIONS", path) for path in ("/mcp", "/auth.md", "/storefront/availability")),
        *(("POST", path) for path in ("/mcp", "/oauth/token", "/api/agent/identity", "/auth.md")),
    ],
)
async def test_every_answer_forbids_browsers_to_guess_its_type(inventory: Inventory, method: str, path: str) -> None:
    answer = await inventory.http.request(method, path)

    assert answer.headers.get_list("x-content-type-options") == ["nosniff"]


async def test_metrics_are_shown_only_with_the_token_that_is_set(settings: Settings) -> None:
    token = "figures-" * 4
    async with running_inventory(settings.model_copy(update={"metrics_token": token})) as inventory:
        figures = await inventory.http.get("/metrics", headers={"Authorization": f"Bearer {token}"})
        refusal = await inventory.http.get("/metrics")

    assert (figures.status_code, refusal.status_code) == (200, 401)
