"""An edit in a form of the console overwrites nothing that another call has changed since the form was read."""

from holdfast.events.events import operations as events
from holdfast.events.events.edits import EDIT_EVENT, EditEvent, EditResult
from holdfast.events.events.model import UpdateEvent
from holdfast.kit.contract.caller import person
from tests.helpers.events_service import Service


async def test_an_event_that_has_changed_since_it_was_read_is_not_edited(service: Service) -> None:
    ada = await service.organizer()
    event_id = (await ada.create_event(title="Open day"))["id"]
    caller = person(1, ada.id)
    seen = await service.database.read(lambda reader: events.find(reader, caller, event_id))
    await ada.patch(f"/api/events/{event_id}", {"event": {"capacity": seen.capacity + 1}})

    edit = EditEvent(event_id=event_id, seen=seen, changes=UpdateEvent(event_id=event_id, title="Open evening"))
    stale: EditResult = await service.runner.run_of(EDIT_EVENT)(caller, edit)
    edit.seen = stale.event
    fresh: EditResult = await service.runner.run_of(EDIT_EVENT)(caller, edit)

    assert (stale.is_done, stale.event.title, stale.event.capacity) == (False, "Open day", seen.capacity + 1)
    assert (fresh.is_done, (await ada.get(f"/api/events/{event_id}")).json()["data"]["title"]) == (True, "Open evening")
