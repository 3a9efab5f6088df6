"""The tables of the docs have the problems, settings and tools of the code; figures that are told twice are equal."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic.fields import FieldInfo

from holdfast.accounts.settings import SignInSettings
from holdfast.events.api import OPERATIONS as EVENTS_OPERATIONS
from holdfast.events.oauth_server.oauth_problems import ALL as OF_CONNECTING
from holdfast.events.problems import ALL as OF_EVENTS
from holdfast.events.service import EVENTS
from holdfast.inventory.api import OPERATIONS as INVENTORY_OPERATIONS
from holdfast.inventory.problems import ALL as OF_INVENTORY
from holdfast.inventory.service import INVENTORY
from holdfast.kit.contract.problems import COMMON_PROBLEMS, ProblemType
from holdfast.kit.operations.operation import Operations
from holdfast.kit.process.service_process import ServiceProcess

DOCS = Path(__file__).parents[2] / "docs"
SETTINGS_OF_LIMITS = {
    "registrations": "registrations_per_minute",
    "photos": "photos_per_minute",
    "uploads": "photos_per_minute",
    "keys": "keys_per_hour",
    "queue joins": "joins_per_minute",
    "organizer registration": "organizers_per_hour",
}
"""The setting of each rate limit that operations of the events service have."""

WORDS_FOR_OPERATIONS = {
    "create_api_key": "New API keys",
    "create_onboarding_link": "onboarding links",
    "create_webhook_endpoint": "make",
    "set_webhook": "make",
    "rotate_webhook_secret": "rotate",
    "ping_webhook_endpoint": "test",
    "ping_webhook": "test",
    "resend_webhook_message": "send again",
    "resend_webhook_messages": "send again",
}
"""How the description of a setting names an operation that counts against its limit, if not by its path."""

OWN_NAMES = {"database_url", "base_url", "secret_key", "old_secret_key"}


def table(page: str, heading: str) -> list[str]:
    """The rows of the table under a heading, without its head."""
    section = (DOCS / page).read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("| `")]


def row(field: FieldInfo) -> str:
    default = str(field.default).lower() if isinstance(field.default, bool) else field.default
    default = "" if default == "" else f" `{default}`"
    return f"| `{field.validation_alias}` |{default} | {field.description} |"


@pytest.mark.parametrize(
    ("heading", "kinds"),
    [
        ("Both services", COMMON_PROBLEMS),
        ("Inventory", OF_INVENTORY),
        ("Events", OF_EVENTS),
        ("Connecting apps", OF_CONNECTING),
    ],
)
def test_problems_lists_every_code_with_its_status_meaning_and_hint(heading: str, kinds: Sequence[ProblemType]) -> None:
    in_order = sorted(kinds, key=lambda kind: (kind.status, kind.code))
    assert table("problems.md", heading) == [
        f"| `{kind.code}` | {kind.status} | {kind.meaning} | {kind.hint} |" for kind in in_order
    ]


def test_settings_lists_the_variables_of_both_services() -> None:
    shared = {name: field for name, field in SignInSettings.model_fields.items() if name not in OWN_NAMES}
    assert table("settings.md", "Both services") == [row(field) for field in shared.values()]


@pytest.mark.parametrize(("heading", "product"), [("Inventory", INVENTORY), ("Events", EVENTS)])
def test_settings_lists_every_variable_with_its_default_and_description(
    heading: str, product: ServiceProcess[Any, Any]
) -> None:
    fields = product.settings.model_fields
    own_names = [name for name in fields if name in OWN_NAMES or name not in SignInSettings.model_fields]
    assert table("settings.md", heading) == [row(fields[name]) for name in own_names]


@pytest.mark.parametrize(
    ("page", "operations"),
    [("inventory/agents.md", INVENTORY_OPERATIONS), ("events/agents.md", EVENTS_OPERATIONS)],
)
def test_the_page_for_agents_lists_every_tool_by_its_scope(page: str, operations: Operations) -> None:
    tools: dict[str, list[str]] = {}
    for operation in operations:
        if operation.tool:
            tools.setdefault(str(operation.scope), []).append(f"`{operation.name}`")
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    start = lines.index("| scope | tools |") + 2
    rows = lines[start : lines.index("", start)]

    assert rows == [f"| `{scope}` | {', '.join(names)} |" for scope, names in tools.items()]


@pytest.mark.parametrize("product", [EVENTS, INVENTORY], ids=["events", "inventory"])
def test_settings_says_between_which_numbers_a_setting_is(product: ServiceProcess[Any, Any]) -> None:
    ranges: dict[str, str] = {}
    for field in product.settings.model_fields.values():
        bounds = {
            name: getattr(bound, name) for bound in field.metadata for name in ("ge", "le") if hasattr(bound, name)
        }
        if len(bounds) == 2:
            ranges[str(field.description).lower()] = f"from {bounds['ge']} to {bounds['le']}"

    assert len(ranges) >= 7
    assert {text: numbers for text, numbers in ranges.items() if numbers not in text} == {}


def test_the_setting_of_a_rate_limit_names_every_operation_that_counts_against_it() -> None:
    limited = [operation for operation in EVENTS_OPERATIONS if operation.limit]
    unnamed: list[str] = []
    for operation in limited:
        description = str(EVENTS.settings.model_fields[SETTINGS_OF_LIMITS[str(operation.limit)]].description)
        path = re.sub(r"{(?:\w+_)?(\w+)}", r"<\1>", " ".join(str(operation.route).split()))
        words = WORDS_FOR_OPERATIONS.get(operation.name, path)
        if words not in description and words not in re.sub(r"<\w+_", "<", description):
            unnamed.append(f"{operation.name}: {words!r} is not in {description!r}")

    assert len(limited) > 10
    assert unnamed == []


def test_the_memory_of_a_process_is_that_of_the_benchmark() -> None:
    section = (DOCS / "benchmarks.md").read_text(encoding="utf-8").split("\n## Memory at rest\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| ")]
    column = rows[0].index("goal") - 1
    megabytes = sorted(round(float(row[column])) for row in rows[1:])
    text = (DOCS / "deploy" / "many-processes.md").read_text(encoding="utf-8")
    [figures] = re.findall(r"\[(\d+) to (\d+) MB\]\(../benchmarks.md#memory-at-rest\)", text)

    assert [int(figure) for figure in figures] == [megabytes[0], megabytes[-1]]
