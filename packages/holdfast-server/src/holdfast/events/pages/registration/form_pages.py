"""The pages with the registration form alone: `/events/<event_id>/embed`, and the target of the form on event pages.

An accepted form redirects to the page with the status of the registration. A refused form is shown again with its typed
values and one sentence that gives the reason.
"""

from collections.abc import Mapping
from typing import Any

from holdfast.events.organizers.branding import photo_origin
from holdfast.events.pages.accent_styles import branding_values
from holdfast.events.pages.cover import cover_svg
from holdfast.events.pages.event.cache import LinkedEvent, RegistrableEvent
from holdfast.events.pages.event.page import EventPage, map_link
from holdfast.events.pages.registration import form
from holdfast.events.pages.registration.form import ReleaseCookie, ReleasedVisitor
from holdfast.events.paths import HOST_SCRIPT, event_path, id_of, organizer_path, released_path
from holdfast.events.photos.model import image_attributes
from holdfast.events.problems import EVENT_CANCELLED, EVENT_EXPIRED, EVENT_FULL, PAYMENT_UNAVAILABLE, QUEUE_REQUIRED
from holdfast.events.processor.currencies import digits
from holdfast.events.queues.event_releases import ReleaseTokenReader
from holdfast.events.registrations import details_mail, links, sign_up
from holdfast.events.registrations.details_mail import SendDetails
from holdfast.events.registrations.sign_up import SignUp, SignUpResult
from holdfast.events.resources import Database
from holdfast.events.site import SITE
from holdfast.events.texts.rendered_text import one_line
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import RATE_LIMITED, SERVICE_UNAVAILABLE, Problem
from holdfast.kit.http.answers import cached_refusals
from holdfast.kit.http.handler import Access, Handler, Reply, Request, admit, headers_of
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import Operation, batched, single
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.forms import read_form, require_same_site
from holdfast.kit.pages.language import Language, language_of
from holdfast.kit.pages.page_cache import MAX_CACHE_BYTES, CachedPage, PageCache, cached_page
from holdfast.kit.pages.site import redirect
from holdfast.kit.postgres.lookup_cache import LookupCache
from holdfast.kit.process.discovery import document

COLLECT_SECONDS = 0.01
"""Seconds that a form may wait for others if many come: a person does not notice them."""

SIGN_UP = Operation("sign_up", None, batched(sign_up.sign_up, collect_seconds=COLLECT_SECONDS), limit="forms")
SEND_DETAILS = Operation("send_details", None, single(details_mail.send_again))
OPERATIONS = (SIGN_UP, SEND_DETAILS)
"""The operations of the pages. They have no routes and no tools of their own."""

_ABOUT_THE_EVENT = {EVENT_CANCELLED, EVENT_EXPIRED, EVENT_FULL, PAYMENT_UNAVAILABLE, QUEUE_REQUIRED}
"""Problems that the form shows by itself when it is shown again."""

FORM_PAGES = cache_bound("Rendered pages with a form alone", "events", f"{MAX_CACHE_BYTES // 1_000_000} MB")


def routes(
    database: Database,
    runner: Runner,
    limits: Limits,
    linked_events: LookupCache[int, LinkedEvent],
    event_page: EventPage,
    tokens: ReleaseTokenReader,
) -> list[Route]:
    """The routes of the form. `linked_events`: the cache of the events that links show."""

    def of_form(path: str, *, framed: bool) -> list[Route]:
        page = FormPage(database, runner, limits, linked_events, None if framed else event_page, tokens)
        methods = ("GET", "HEAD", "POST")
        form_handler = Handler(page.access, limits, page.answer, cached_refusals(page.refuse), methods=methods)
        released = Access("framed_released_form" if framed else "released_form")
        return [
            Route(path, form_handler),
            Route(
                f"/events/{{event_id}}{'/embed' if framed else ''}/released",
                Handler(released, limits, page.show_released, cached_refusals(page.refuse)),
            ),
        ]

    return [
        *of_form("/events/{event_id}/registrations", framed=False),
        *of_form("/events/{event_id}/embed", framed=True),
        document(HOST_SCRIPT, SITE.content("pages/registration/frame_height.js"), "text/javascript"),
        *SITE.assets("pages/embed.js", "pages/registration/send_again.js", "pages/registration/form_secret.js"),
    ]


class RegistrationRefusal(Exception):
    """A sent form was refused and is shown again. `form_values` are keyword arguments of `form_of`."""

    def __init__(self, status: int, *, problem: Problem | None = None, **form_values: Any) -> None:
        self.status = status
        self.problem = problem
        self.form_values = form_values


class FormPage:
    """The page with the form of an event.

    event_page    the page of an event, on which a refused form is shown again; None: the form is in a frame
    """

    def __init__(
        self,
        database: Database,
        runner: Runner,
        limits: Limits,
        linked_events: LookupCache[int, LinkedEvent],
        event_page: EventPage | None,
        tokens: ReleaseTokenReader,
    ) -> None:
        framed = event_page is None
        self._settings, self._secret = database.resources.settings, database.resources.secret
        self._sign_up, self._send_details = runner.run_of(SIGN_UP), runner.run_of(SEND_DETAILS)
        self._linked_events = linked_events
        self._limits = limits
        self._event_page = event_page
        self._framed = framed
        self._pages = PageCache(FORM_PAGES)
        self.access = Access("framed_form" if framed else "form")
        self._sending = Access.of(SIGN_UP, runner)
        is_secure = self._settings.base_url.startswith("https://")
        self._cookie = ReleaseCookie(tokens, is_secure=is_secure, framed=framed)

    async def answer(self, caller: Caller, request: Request) -> Reply:
        """Show the form; with POST register the person."""
        language = language_of(request)
        event_id = id_of(request.fields["event_id"])
        linked_event = await self._linked_events.get(event_id)
        event = linked_event.event
        if request.method != "POST":
            if self._framed:
                return await self._cached_form(linked_event, language, request)
            return redirect(language.at(event_path(event.organizer_slug, event.id)))
        require_same_site(request, self._settings.base_url)
        fields = await read_form(request)
        visitor = await self._cookie.read(request, event.queue.id) if event.queue else None
        try:
            signed_up = await self._sign_up_by(caller, linked_event, fields, language, visitor)
        except RegistrationRefusal as refusal:
            if refusal.problem and refusal.problem.type in _ABOUT_THE_EVENT:
                self._linked_events.forget(str(event_id))  # the event has changed
                linked_event = await self._linked_events.get(event_id)
            form_values = {
                "values": fields,
                "form_secret": form.form_secret(fields),
                "is_released": visitor is not None,
                "released_until": visitor.expires_at if visitor else None,
                **refusal.form_values,
            }
            if self._event_page and refusal.status not in (429, 503):
                return await self._event_page.with_form(caller, language, linked_event, refusal.status, **form_values)
            # The form alone costs a crowded service less.
            headers = headers_of(refusal.problem) if refusal.problem else ()
            return self._page(linked_event.event, language, refusal.status, headers, **form_values)
        if signed_up.is_repeated or not (signed_up.is_stored or signed_up.is_from_form):
            is_noted = not signed_up.is_repeated
            await self._send_details(caller, SendDetails(**signed_up.link._asdict(), is_noted=is_noted))
        if not signed_up.is_from_form:
            values = branding_values(event.accent, event.logo, self._settings)
            address = language.at(event_path(event.organizer_slug, event.id))
            return SITE.page(
                "pages/registration/known.html",
                language=language,
                framed=self._framed,
                event=event,
                event_address=address,
                organizer_path=language.at(organizer_path(event.organizer_slug)),
                **values,
            )
        path = links.outcome_path(self._secret, signed_up.link, framed=self._framed)
        reply = redirect(language.at(path), framed=self._framed)
        if visitor:  # the release is used up
            reply.headers = [*reply.headers, self._cookie.header(event.id, None)]
        return reply

    async def show_released(self, caller: Caller, request: Request) -> Reply:
        """Show the page of the event with its form to a visitor whom the waiting room before it has released.

        The room sends its visitors here with a token, which becomes a cookie. A visitor without one is led to the
        public page. Caches keep that one, so it is another page than this.
        """
        language = language_of(request)
        linked_event = await self._linked_events.get(id_of(request.fields["event_id"]))
        event = linked_event.event
        token = SITE.read_query(request).get("queue_token")
        if event.queue and token and (visitor := await self._cookie.check(token, event.queue.id)):
            path = language.at(released_path(event.id, framed=self._framed))
            # On a phone the form is below the fold.
            reply = redirect(path if self._framed else f"{path}#register", framed=self._framed)
            reply.headers = [*reply.headers, self._cookie.header(event.id, visitor)]
            return reply
        if event.queue and not token and (visitor := await self._cookie.read(request, event.queue.id)):
            form_values: dict[str, Any] = {"is_released": True, "released_until": visitor.expires_at}
            if self._event_page:
                return await self._event_page.with_form(caller, language, linked_event, 200, **form_values)
            return self._page(event, language, **form_values)
        path = f"/events/{event.id}/embed" if self._framed else event_path(event.organizer_slug, event.id)
        return redirect(language.at(path), framed=self._framed)

    def refuse(self, problem: Problem, request: Request) -> Reply:
        return SITE.refuse(problem, request, framed=self._framed)

    async def _sign_up_by(
        self,
        caller: Caller,
        linked_event: LinkedEvent,
        fields: Mapping[str, str],
        language: Language,
        visitor: ReleasedVisitor | None,
    ) -> SignUpResult:
        """Store the registration of a form. Raises `RegistrationRefusal`, and problems that the form cannot show."""
        try:
            await admit(self._sending, self._limits, caller)
            command = self._check(linked_event, fields, language, visitor)
            # A form that stores nothing, such as a repeated one, takes nothing from what all addresses have together.
            event = f"event {linked_event.event.id}"
            is_above_share = await self._limits.count_for_share("forms of an event", event, caller.name)
            signed_up: SignUpResult = await self._sign_up(caller, command)
            if is_above_share and signed_up.is_stored:
                await self._limits.count_together("forms of an event", event)
            return signed_up
        except Problem as problem:
            if problem.type is RATE_LIMITED:
                raise RegistrationRefusal(
                    429, problem=problem, notice="crowded", retry_after=problem.retry_after
                ) from problem
            if problem.type is SERVICE_UNAVAILABLE:
                raise RegistrationRefusal(
                    503, problem=problem, notice="busy", retry_after=problem.retry_after
                ) from problem
            if problem.type is QUEUE_REQUIRED:
                raise RegistrationRefusal(
                    problem.status, problem=problem, is_released=False, notice="used" if visitor else "unreleased"
                ) from problem
            if problem.type in _ABOUT_THE_EVENT:
                raise RegistrationRefusal(problem.status, problem=problem) from problem
            raise

    def _check(
        self,
        linked_event: LinkedEvent,
        fields: Mapping[str, str],
        language: Language,
        visitor: ReleasedVisitor | None,
    ) -> SignUp:
        event = linked_event.event
        if not linked_event.is_own_event:
            raise RegistrationRefusal(422, notice="moved")
        result = form.tokens(self._secret).check(form.purpose(event.id), fields.get(form.TOKEN, ""))
        if result != "good":
            raise RegistrationRefusal(422 if result == "old" else 403, notice="old")
        if fields.get(form.DECOY):
            raise RegistrationRefusal(422, notice="unseen")
        if event.queue and visitor is None:
            raise RegistrationRefusal(QUEUE_REQUIRED.status, problem=QUEUE_REQUIRED(), notice="unreleased")
        command = form.read_fields(event.id, fields, language, visitor.token if visitor else None)
        if isinstance(command, dict):
            raise RegistrationRefusal(422, errors=command)
        return command

    async def _cached_form(self, linked_event: LinkedEvent, language: Language, request: Request) -> Reply:
        """The page with the empty form. It is rendered again when its content changes."""

        async def render() -> CachedPage:
            reply = self._page(linked_event.event, language)
            return cached_page(reply.content.decode(), reply.headers)

        key = (linked_event.event.id, linked_event.version, language, form.half_hour_number())
        return (await self._pages.get(key, render)).reply(request)

    def _page(
        self, event: RegistrableEvent, language: Language, status: int = 200, headers: Any = (), **form_values: Any
    ) -> Reply:
        return SITE.page(
            "pages/registration/register.html",
            status,
            language=language,
            framed=self._framed,
            headers=headers,
            images=photo_origin(self._settings),
            **branding_values(event.accent, event.logo, self._settings),
            event=event,
            closed=event.status in ("cancelled", "expired"),
            photo=image_attributes(event.photo, event.photo_sizes, self._settings) if event.photo else None,
            cover=cover_svg(one_line(event.title)),
            organizer_name=event.organizer_name,
            organizer_path=language.at(organizer_path(event.organizer_slug)),
            opening=event.opening,
            numbered=event.numbered,
            left=event.left,
            waitlist_left=event.waitlist_left,
            digits=digits(event.currency),
            interval=max(1, event.recurrence_interval),
            next=None,
            map=map_link(event),
            zone=event.timezone or "UTC",
            address=language.at(event_path(event.organizer_slug, event.id)),
            form=form.form_of(
                event,
                self._settings,
                self._secret,
                language,
                refund_days=event.refund_days,
                queue=event.queue,
                framed=self._framed,
                **form_values,
            ),
        )
