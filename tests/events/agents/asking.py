"""An organizer in the console, and an agent that asks the organizer first."""

from holdfast.accounts.agents.limits import SetLimit
from holdfast.events.keys import operations as keys
from holdfast.kit.contract.caller import system
from tests.events.console.organizer_scene import OrganizerScene, hidden_field, open_organizer_scene
from tests.helpers.agents import Agent
from tests.helpers.events_service import Service, event_fields

NIGHT = event_fields(title="Jazz night")
"""The same for all calls: a call is the same request only if all of its arguments are."""


async def open_asking_scene(service: Service) -> tuple[OrganizerScene, Agent]:
    """Ada in the console, and an agent with a key of hers that asks her first."""
    scene = await open_organizer_scene(service)
    made = (await scene.ada.post("/api/keys", {"api_key": {"name": "Claude"}})).json()["data"]
    command = SetLimit(key_id=made["id"], asks_first=True)
    await service.database.transact(lambda tx: keys.KEY_LIMITS.store_limit(tx, system(scene.ada.id), command))
    return scene, Agent(service.app, made["key"], "2025-11-25")


async def decide(scene: OrganizerScene, path: str, do: str, seen: str | None = None) -> int:
    """The status of the answer to Approve or Decline, on the page as it is now."""
    page = await scene.browser.get(path)
    seen = hidden_field(page, "seen") if seen is None else seen
    return (await scene.post(path, do=do, seen=seen)).status_code
