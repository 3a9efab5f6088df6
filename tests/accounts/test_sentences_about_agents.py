"""The console has a sentence for each change that an agent makes or asks for. The last branch of a template has one."""

from collections.abc import Collection
from pathlib import Path

import pytest

from holdfast.events.agents import actions as events
from holdfast.inventory.agents import actions as inventory

SERVER = Path(__file__).parents[2] / "packages" / "holdfast-server" / "src" / "holdfast"


@pytest.mark.parametrize(
    ("template", "operations", "last"),
    [
        ("events/console/agents/action_sentences.html", events.STORED_OPERATIONS, "create_onboarding_link"),
        ("events/console/agents/request_sentences.html", events.APPROVABLE_OPERATIONS, "create_onboarding_link"),
        ("inventory/console/agents/action_sentences.html", inventory.STORED_OPERATIONS, "resync"),
        ("inventory/console/agents/request_sentences.html", inventory.STORED_OPERATIONS, "resync"),
    ],
)
def test_a_template_has_a_sentence_for_each_operation_of_agents(
    template: str, operations: Collection[str], last: str
) -> None:
    text = (SERVER / template).read_text(encoding="utf-8")

    assert [name for name in operations if f'"{name}"' not in text] == [last], template
