"""The page that edits an event.

The form contains the version of the event that it shows. If the event has changed since, nothing is stored: the form
shows the stored values beside the typed ones.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from holdfast.accounts.sessions import Session
from holdfast.events.console.events.event_form import (
    CHOICES,
    EVENT_LABELS,
    PREVIEW_PART,
    command_values,
    errors_in_words,
    field_values,
    is_more_open,
    preview_of,
    typed_values,
    version_of,
    with_seconds,
)
from holdfast.events.console.events.event_page import EVENT_PATH
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.events.edits import EDIT_EVENT, EditEvent, EditResult
from holdfast.events.events.model import EventRow, GetEvent, UpdateEvent
from holdfast.events.events.overview import COUNT_PEOPLE, READ_EVENT, EventDetails, PeopleCounts
from holdfast.events.paths import id_of
from holdfast.events.processor.currencies import digits
from holdfast.kit.contract.command import Errors, check
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.operations.runner import Runner

EMPTY_MEANS = {
    **dict.fromkeys(("title", "body", "datetime", "capacity"), None),
    **dict.fromkeys(("price", "waitinglist_capacity", "recurrence_interval", "cancellation_hours"), 0),
}
"""The value that an empty field stands for; None: the field is required. Fields that are not here may be empty."""

FIXED_FIELDS = ("pricing_mode", "currency")


class EditEventPage:
    """Answers requests for the form of an event."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._get_event, self._edit, self._count = (
            runner.run_of(READ_EVENT),
            runner.run_of(EDIT_EVENT),
            runner.run_of(COUNT_PEOPLE),
        )

    def routes(self) -> list[Route]:
        return [self._console.route(f"{EVENT_PATH}/edit", "edit_event", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the form of an event; with POST change the event."""
        event_id = id_of(request.fields["event_id"])
        fields = await self._console.signed_in.read(session, request) if request.method == "POST" else None
        details: EventDetails = await self._get_event(organizer(session), GetEvent(event_id=event_id))
        if fields is None:
            return await self._form(session, request, details, field_values(details.event), {})
        values = {name: text for name, text in typed_values(fields).items() if name not in FIXED_FIELDS}
        if fields.get("do") == PREVIEW_PART:
            return await self._form(session, request, details, values, {}, template="events/event_preview.html")
        if fields.get("do") == "preview":
            version = fields.get("version", "")
            return await self._form(session, request, details, values, {}, version=version)
        raw, unread = command_values(with_seconds(values, details.event), details.event)
        by_others = fields.get("version", "") != version_of(details.event)
        try:
            changes = _changes(details.event, values, raw, unread)
            command = EditEvent(
                event_id=event_id,
                seen=None if by_others else details.event,
                changes=changes,
                ends_registration=fields.get("anyway") == "yes",
            )
            edited: EditResult = await self._edit(organizer(session), command)
        except Problem as problem:
            if problem.status != 422:
                raise
            field_errors = problem.errors
            unread_errors = {name: field_errors[name] for name in unread.keys() & field_errors.keys()}
            errors = errors_in_words(field_errors, raw, details.event.pricing_mode) | unread_errors
            return await self._form(
                session, request, details, values, errors, 409 if by_others else 422, by_others=by_others
            )
        changed_details = structs.replace(details, event=edited.event)
        if edited.is_question:
            return await self._form(session, request, changed_details, values, {}, 422, new_date=changes.datetime)
        if not edited.is_done:
            return await self._form(session, request, changed_details, values, {}, 409, by_others=True)
        return self._console.redirect(request, f"{HOME}/events/{event_id}")

    async def _form(
        self,
        session: Session,
        request: Request,
        details: EventDetails,
        values: Mapping[str, str],
        errors: Mapping[str, Sequence[str]],
        status: int = 200,
        *,
        by_others: bool = False,
        new_date: Any = None,
        version: str = "",
        template: str = "events/edit_event.html",
    ) -> Reply:
        """The form, or a part of it.

        version     the version that the organizer saw; empty: the present one
        new_date    a date in the past, about which the organizer is asked before it is saved
        """
        event = details.event
        stored_values = field_values(event)
        form_values = {**stored_values, **values}
        people: PeopleCounts = await self._count(organizer(session), GetEvent(event_id=event.id))
        return self._console.page(
            session,
            request,
            template,
            status,
            event=event,
            mailed=people.mailed,
            version=version or version_of(event),
            values=form_values,
            errors=errors,
            is_more_open=is_more_open(form_values, errors),
            preview=preview_of(form_values, next(iter(details.photos), None), event),
            digits=digits,
            images=details.images_from,
            others=[
                (name, stored_values[name])
                for name in stored_values
                if values.get(name, stored_values[name]) != stored_values[name]
            ]
            if by_others
            else [],
            by_others=by_others,
            new_date=new_date,
            is_new=False,
            labels=EVENT_LABELS,
            choices=CHOICES,
        )


def _changes(event: EventRow, values: Mapping[str, str], raw: Mapping[str, Any], unread: Errors) -> UpdateEvent:
    """The changes of an event that the typed values ask for. Raises `validation_failed`.

    An unchanged field keeps its exact value, even if the form shows less of it, for example no seconds. An unchanged
    end moves with the beginning.
    """
    before = field_values(event)
    changed_names = {name for name, text in values.items() if text != before[name]}
    # The same date and time in another time zone is another moment.
    if "timezone" in changed_names and "datetime" not in changed_names:
        changed_names |= {"ends_at"} & values.keys()
    if changed_names & {"datetime", "timezone"}:
        changed_names |= {"datetime", "timezone"} & values.keys()
    errors = {name: messages for name, messages in unread.items() if name in changed_names}
    fields: dict[str, Any] = {"event_id": event.id}
    for name in changed_names - errors.keys():
        if values[name] or name not in EMPTY_MEANS:
            fields[name] = raw[name]
        elif EMPTY_MEANS[name] is not None:
            fields[name] = EMPTY_MEANS[name]
        else:
            errors[name] = [message("is required")]
    return check(UpdateEvent, fields, unread=errors)
