"""The page that edits an event.

The form knows which version of the event it shows. What others have changed since is not overwritten unseen: it
is shown beside what was typed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console.event import PATH
from holdfast.events.console.event_form import CHOICES, LABELS, asked, in_words, shown, typed, version
from holdfast.events.console.event_operations import EDIT, LOOK, Edited, EditEvent, Seen
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.events.model import EventRow, GetEvent, UpdateEvent
from holdfast.events.paths import id_of
from holdfast.kit.command import Errors, check
from holdfast.kit.handler import Reply, Request
from holdfast.kit.problems import Problem
from holdfast.kit.runner import Runner
from holdfast.kit.said import said

DEFAULTS = {
    **dict.fromkeys(("title", "body", "datetime", "capacity"), None),
    **dict.fromkeys(("price", "waitinglist_capacity", "recurrence_interval", "cancellation_hours"), 0),
}
"""What an empty field stands for if it cannot be empty; None: it must be filled in."""

FIXED = ("pricing_mode", "currency")


class EditEventPage:
    """Answers requests for the form of an event, and changes the event."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._look, self._edit = runner[LOOK], runner[EDIT]

    def routes(self) -> list[BaseRoute]:
        return [self._console.route(f"{PATH}/edit", "edit_event", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the form of an event, or change the event."""
        event_id = id_of(request.scope["path_params"]["event_id"])
        fields = await self._console.door.read(session, request) if request.method == "POST" else None
        seen: Seen = await self._look(organizer(session), GetEvent(event_id=event_id))
        if fields is None:
            return self._form(session, request, seen.event, shown(seen.event), {})
        values = {name: text for name, text in typed(fields).items() if name not in FIXED}
        raw, unread = asked(values, seen.event)
        try:
            changes = _changes(seen.event, values, raw, unread)
            command = EditEvent(event_id=event_id, version=fields.get("version", ""), changes=changes)
            edited: Edited = await self._edit(organizer(session), command)
        except Problem as problem:
            if problem.status != 422:
                raise
            told = problem.errors
            kept = {name: told[name] for name in unread.keys() & told.keys()}
            errors = in_words(told, raw, seen.event.pricing_mode) | kept
            by_others = fields.get("version") != version(seen.event)
            return self._form(
                session, request, seen.event, values, errors, 409 if by_others else 422, by_others=by_others
            )
        if not edited.is_done:
            return self._form(session, request, edited.event, values, {}, 409, by_others=True)
        return self._console.to(request, f"{HOME}/events/{event_id}")

    def _form(
        self,
        session: Session,
        request: Request,
        event: EventRow,
        values: Mapping[str, str],
        errors: Mapping[str, Sequence[str]],
        status: int = 200,
        *,
        by_others: bool = False,
    ) -> Reply:
        stored = shown(event)
        return self._console.page(
            session,
            request,
            "edit_event.html",
            status,
            event=event,
            version=version(event),
            values={**stored, **values},
            errors=errors,
            others=[(name, stored[name]) for name in stored if values.get(name, stored[name]) != stored[name]]
            if by_others
            else [],
            by_others=by_others,
            is_new=False,
            labels=LABELS,
            choices=CHOICES,
        )


def _changes(event: EventRow, values: Mapping[str, str], raw: Mapping[str, Any], unread: Errors) -> UpdateEvent:
    """What typed values would change of an event. Raises `validation_failed`.

    A field that was not touched stays exactly as it is, also where the form shows less of it, such as seconds.
    """
    before = shown(event)
    changed = {name for name, text in values.items() if text != before[name]}
    if changed & {"datetime", "timezone"}:
        # The clock of another time zone shows another moment.
        changed |= {"datetime", "timezone"} & values.keys()
    errors = {name: messages for name, messages in unread.items() if name in changed}
    fields: dict[str, Any] = {"event_id": event.id}
    for name in changed - errors.keys():
        if values[name] or name not in DEFAULTS:
            fields[name] = raw[name]
        elif DEFAULTS[name] is not None:
            fields[name] = DEFAULTS[name]
        else:
            errors[name] = [said("is required")]
    return check(UpdateEvent, fields, unread=errors)
