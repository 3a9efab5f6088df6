"""The pages of webhooks: the endpoints, their secrets, a test, and what was sent to them. Both consoles have them."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from holdfast.accounts.console import Console
from holdfast.accounts.sessions import Session
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import check
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import NOT_FOUND, ProblemType, invalid
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.pages import forms
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, command_in_path, try_form
from holdfast.kit.pages.language import language_of
from holdfast.kit.postgres.pagination import Page
from holdfast.kit.webhooks import listen_command
from holdfast.kit.webhooks.endpoints import PING, RETENTION_DAYS
from holdfast.kit.webhooks.failures import FAILURES
from holdfast.kit.webhooks.model import (
    MAX_COUNTED,
    CreateWebhookEndpoint,
    DeleteWebhookEndpoint,
    DeliveryStatus,
    GetWebhookEndpoint,
    ListWebhookAttempts,
    ListWebhookDeliveries,
    ListWebhookEndpoints,
    MessageType,
    PingWebhookEndpoint,
    ResendWebhookMessage,
    ResendWebhookMessages,
    ResentMessages,
    RotateWebhookSecret,
    UpdateWebhookEndpoint,
    WebhookAttempt,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookFailure,
    content_of,
    subject_of,
)
from holdfast.kit.webhooks.sending import ANSWER_SECONDS
from holdfast.kit.webhooks.verifying import VERIFYING

WEBHOOKS = "/console/webhooks"
MANUAL = f"{WEBHOOKS}/receive"
PAGE_SIZE = 20

ZONE_SCRIPT = "webhooks/zone.js"
"""The file that gives a form the time zone of the browser."""

EXAMPLE_TIME = datetime(2027, 5, 1, 18, tzinfo=UTC)
"""When the examples of messages happened."""

INSTRUCTIONS = {"url": message("Enter the address of your program, such as https://shop.example/webhooks.")}
"""What people enter in the form, by field."""

MOMENT_INSTRUCTION = message("Enter a date and a time, such as 2030-01-31T18:00.")
RANGE_INSTRUCTIONS = {"since": MOMENT_INSTRUCTION, "until": MOMENT_INSTRUCTION}

STATUSES: Sequence[DeliveryStatus] = ("waiting", "delivered", "failed")

ReadSubjectNames = Callable[[Session, set[str]], Awaitable[Mapping[str, str]]]
"""Returns the names of subjects of messages that have one, by subject."""


async def no_subject_names(session: Session, subjects: set[str]) -> Mapping[str, str]:
    """No names: people read the subjects as programs get them."""
    return {}


class WebhookPages:
    """Answers requests for the pages of endpoints.

    caller_of    the caller of a signed-in person
    types        the messages that the service sends
    layout       the template that the pages extend
    quota        the problem for as many endpoints as there may be
    purpose      what webhooks are for here, as an English sentence
    reference    the address of the document about the calls of the API; empty: there are none
    test_port    the port of this machine that addresses may name; 0: none
    limit        the name of the rate limit of pages that make or send something
    names_of     returns what people call the subjects of messages
    """

    def __init__(
        self,
        console: Console,
        caller_of: Callable[[Session], Caller],
        types: Sequence[MessageType],
        *,
        layout: str,
        quota: ProblemType,
        purpose: str,
        reference: str = "",
        test_port: int,
        limit: str | None = None,
        names_of: ReadSubjectNames = no_subject_names,
    ) -> None:
        run = console.run
        self._console = console
        self._caller_of = caller_of
        self._types = types
        self._layout = layout
        self._quota = quota
        self._purpose = purpose
        self._reference = reference
        self._test_port = test_port
        self._limit = limit
        self._names_of = names_of
        self._list, self._get = run["list_webhook_endpoints"], run["get_webhook_endpoint"]
        self._create, self._update = run["create_webhook_endpoint"], run["update_webhook_endpoint"]
        self._delete, self._rotate = run["delete_webhook_endpoint"], run["rotate_webhook_secret"]
        self._ping, self._deliveries = run["ping_webhook_endpoint"], run["list_webhook_deliveries"]
        self._attempts, self._find_failure = run["list_webhook_attempts"], run["find_webhook_failure"]
        self._resend, self._resend_range = run["resend_webhook_message"], run["resend_webhook_messages"]

    def routes(self) -> list[Route]:
        route, endpoint = self._console.route, f"{WEBHOOKS}/{{endpoint_id}}"
        return [
            route(WEBHOOKS, "webhooks", self.list),
            route(f"{WEBHOOKS}/new", "new_webhook", self.create, "POST", limit=self._limit),
            route(MANUAL, "webhook_manual", self.explain),
            route(endpoint, "webhook", self.show, "POST", limit=self._limit),
            route(f"{endpoint}/edit", "edit_webhook", self.edit, "POST"),
            route(f"{endpoint}/secret", "webhook_secret", self.rotate, "POST", limit=self._limit),
            route(f"{endpoint}/resend", "resend_webhooks", self.resend_range, "POST", limit=self._limit),
            route(f"{endpoint}/pause", "pause_webhook", self.pause),
            route(f"{endpoint}/delete", "delete_webhook", self.delete, "POST"),
            route(
                f"{endpoint}/messages/{{message_id}}", "webhook_message", self.show_message, "POST", limit=self._limit
            ),
        ]

    async def list(self, session: Session, request: Request) -> Reply:
        """List the endpoints."""
        endpoints: Sequence[WebhookEndpoint] = await self._list(self._caller_of(session), ListWebhookEndpoints())
        return self._page(session, request, "webhooks.html", endpoints=endpoints, purpose=self._purpose)

    async def explain(self, session: Session, request: Request) -> Reply:
        """Say how a program receives and verifies messages, and which there are."""
        return self._page(
            session,
            request,
            "webhook_manual.html",
            verifying=VERIFYING,
            seconds=ANSWER_SECONDS,
            examples={type.name: _example(type) for type in self._types},
            reference=self._reference,
        )

    async def create(self, session: Session, request: Request) -> Reply:
        """Show the form of a new endpoint; with POST make it, and show its secret once."""
        if request.method != "POST":
            return self._form(session, request, {"signature": "v1"}, [])
        fields = await self._console.signed_in.read(session, request)
        result = await try_form(
            lambda: forms.run_once(
                self._create,
                self._caller_of(session),
                check(CreateWebhookEndpoint, self._new_values(fields, language_of(request).code)),
                fields,
                WebhookEndpoint,
            ),
            self._quota,
            instructions=INSTRUCTIONS,
        )
        if isinstance(result, FormRefusal):
            return self._form(session, request, fields, self._chosen(fields), result)
        return self._secret_page(session, request, result, is_new=True)

    async def show(self, session: Session, request: Request) -> Reply:
        """Show an endpoint and what was sent to it; with POST test, pause or activate it, or send what failed again."""
        command = command_in_path(GetWebhookEndpoint, request)
        if request.method == "POST":
            return await self._change(session, request, command.endpoint_id)
        query = read_query(request.query)
        status: DeliveryStatus | None = next((one for one in STATUSES if one == query.get("delivery")), None)
        listing = ListWebhookDeliveries(
            endpoint_id=command.endpoint_id,
            status=status,
            limit=PAGE_SIZE,
            offset=_number(query.get("offset", "")),
        )
        endpoint: WebhookEndpoint = await self._get(self._caller_of(session), command)
        page: Page[WebhookDelivery] = await self._deliveries(self._caller_of(session), listing)
        failure: WebhookFailure | None = None
        if endpoint.failing_since and endpoint.status != "paused":
            failure = await self._find_failure(self._caller_of(session), command)
        return self._page(
            session,
            request,
            "webhook.html",
            endpoint=endpoint,
            failure=failure,
            deliveries=page.data,
            subjects=await self._names_of(session, {delivery.subject for delivery in page.data}),
            status_filter=status,
            before=max(listing.offset - PAGE_SIZE, 0) if listing.offset else None,
            after=listing.offset + PAGE_SIZE if page.pagination.has_more else None,
            done=query.get("done"),
            resent=_number(query.get("count", "")),
            scripts=["live.js"],
        )

    async def _change(self, session: Session, request: Request, id: int) -> Reply:
        fields = await self._console.signed_in.read(session, request)
        caller, action = self._caller_of(session), fields.get("do", "")
        path = f"{WEBHOOKS}/{id}?"
        match action:
            case "test":
                await self._ping(caller, PingWebhookEndpoint(endpoint_id=id))
            case "pause" | "activate":
                await self._update(caller, UpdateWebhookEndpoint(endpoint_id=id, active=action == "activate"))
            case "resend":
                since = datetime.now(UTC) - timedelta(days=RETENTION_DAYS)
                command = ResendWebhookMessages(endpoint_id=id, since=since)
                resent: ResentMessages = await self._resend_range(caller, command)
                if resent.next_after:
                    action = "resend_first"
                path += f"delivery=failed&count={resent.count}&"
            case _:
                raise NOT_FOUND()
        return self._console.redirect(request, f"{path}done={action}")

    async def edit(self, session: Session, request: Request) -> Reply:
        """Show the form of an endpoint; with POST change it."""
        command = command_in_path(GetWebhookEndpoint, request)
        endpoint: WebhookEndpoint = await self._get(self._caller_of(session), command)
        if request.method != "POST":
            values = {"url": endpoint.url, **({"ordered": "on"} if endpoint.ordered else {})}
            return self._form(session, request, values, endpoint.types, endpoint=endpoint)
        fields = await self._console.signed_in.read(session, request)
        result = await try_form(
            lambda: self._update(
                self._caller_of(session),
                check(UpdateWebhookEndpoint, {"endpoint_id": endpoint.id, **self._values(fields)}),
            ),
            instructions=INSTRUCTIONS,
        )
        if isinstance(result, FormRefusal):
            return self._form(session, request, fields, self._chosen(fields), result, endpoint)
        return self._console.redirect(request, f"{WEBHOOKS}/{endpoint.id}?done=edit")

    async def rotate(self, session: Session, request: Request) -> Reply:
        """Ask whether to make a new secret; with POST make it, and show it once."""
        command = command_in_path(RotateWebhookSecret, request)
        if request.method != "POST":
            return await self._question(session, request, "webhook_rotate.html")
        await self._console.signed_in.read(session, request)
        endpoint: WebhookEndpoint = await self._rotate(self._caller_of(session), command)
        return self._secret_page(session, request, endpoint, is_new=False)

    async def resend_range(self, session: Session, request: Request) -> Reply:
        """Ask which messages of a time to send again, and count them; with POST send them."""
        command = command_in_path(GetWebhookEndpoint, request)
        endpoint: WebhookEndpoint = await self._get(self._caller_of(session), command)
        is_post = request.method == "POST"
        query = await self._console.signed_in.read(session, request) if is_post else read_query(request.query)
        values = {name: query.get(name, "") for name in ("since", "until", "which", "zone", "after")}
        answer: ResentMessages | None = None
        resent_count = 0
        refusal: FormRefusal = NOT_REFUSED
        if query.keys() & {"since", "until"}:
            work = partial(self._resend_of_form, session, endpoint.id)
            result = await try_form(lambda: work(values, is_dry_run=not is_post), instructions=RANGE_INSTRUCTIONS)
            if isinstance(result, FormRefusal):
                refusal = result
            elif is_post and not result.next_after:
                return self._console.redirect(
                    request, f"{WEBHOOKS}/{endpoint.id}?done=resend_range&count={result.count}"
                )
            elif is_post:
                resent_count, values["after"] = result.count, f"{result.next_after}"
                answer = await work(values, is_dry_run=True)
            else:
                answer = result
        return self._page(
            session,
            request,
            "webhook_resend.html",
            refusal.status,
            endpoint=endpoint,
            values={**values, "which": values["which"] or "failed"},
            errors=refusal.errors,
            count=answer.count if answer else None,
            is_more=bool(answer and answer.next_after),
            resent_count=resent_count,
            scripts=[ZONE_SCRIPT],
        )

    async def _resend_of_form(
        self, session: Session, endpoint_id: int, values: Mapping[str, str], *, is_dry_run: bool
    ) -> ResentMessages:
        """Send the messages again that a form chooses, or count them. Raises `validation_failed`."""
        zone = values["zone"]
        raw = {
            "endpoint_id": endpoint_id,
            "since": moment_in_zone(values["since"], zone) or values["since"] or None,
            "until": moment_in_zone(values["until"], zone) or values["until"] or None,
            "only_failed": values["which"] != "all",
            "after": values["after"] or None,
            "dry_run": is_dry_run,
        }
        return await self._resend_range(self._caller_of(session), check(ResendWebhookMessages, raw))

    async def pause(self, session: Session, request: Request) -> Reply:
        """Ask whether to pause an endpoint."""
        return await self._question(session, request, "webhook_pause.html")

    async def delete(self, session: Session, request: Request) -> Reply:
        """Ask whether to delete an endpoint; with POST delete it."""
        if request.method != "POST":
            return await self._question(session, request, "webhook_delete.html")
        await self._console.signed_in.read(session, request)
        await self._delete(self._caller_of(session), command_in_path(DeleteWebhookEndpoint, request))
        return self._console.redirect(request, WEBHOOKS)

    async def show_message(self, session: Session, request: Request) -> Reply:
        """Show a message with each attempt to send it; with POST send it again."""
        command = command_in_path(ListWebhookAttempts, request)
        caller = self._caller_of(session)
        if request.method == "POST":
            await self._console.signed_in.read(session, request)
            resent = ResendWebhookMessage(endpoint_id=command.endpoint_id, message_id=command.message_id)
            await self._resend(caller, resent)
            path = f"{WEBHOOKS}/{command.endpoint_id}/messages/{command.message_id}"
            return self._console.redirect(request, f"{path}?done=resend")
        endpoint: WebhookEndpoint = await self._get(caller, GetWebhookEndpoint(endpoint_id=command.endpoint_id))
        listing = ListWebhookDeliveries(endpoint_id=command.endpoint_id, message_id=command.message_id)
        page: Page[WebhookDelivery] = await self._deliveries(caller, listing)
        if not page.data:
            raise NOT_FOUND()
        attempts: Sequence[WebhookAttempt] = await self._attempts(caller, command)
        [delivery] = page.data
        next_at = delivery.next_attempt_at
        return self._page(
            session,
            request,
            "webhook_message.html",
            endpoint=endpoint,
            delivery=delivery,
            is_due=next_at is not None and next_at <= datetime.now(UTC),
            content=_as_text(
                content_of(delivery.type, delivery.created_at, delivery.subject, delivery.number, delivery.data)
            ),
            attempts=attempts,
            done=read_query(request.query).get("done"),
            scripts=["live.js"],
        )

    def _secret_page(self, session: Session, request: Request, endpoint: WebhookEndpoint, *, is_new: bool) -> Reply:
        """Show the secret of an endpoint; if its address is on this machine, also the command that listens there."""
        command = ""
        if self._test_port and endpoint.url.startswith(f"http://127.0.0.1:{self._test_port}"):
            command = listen_command(self._test_port, f"{endpoint.public_key or endpoint.secret}")
        return self._page(session, request, "webhook_secret.html", endpoint=endpoint, is_new=is_new, listener=command)

    async def _question(self, session: Session, request: Request, template: str) -> Reply:
        command = command_in_path(GetWebhookEndpoint, request)
        return self._page(session, request, template, endpoint=await self._get(self._caller_of(session), command))

    def _form(
        self,
        session: Session,
        request: Request,
        values: Mapping[str, str],
        chosen: Sequence[str],
        refusal: FormRefusal = NOT_REFUSED,
        endpoint: WebhookEndpoint | None = None,
    ) -> Reply:
        return self._page(
            session,
            request,
            "webhook_form.html",
            refusal.status,
            endpoint=endpoint,
            values=values,
            chosen=chosen,
            test_port=self._test_port,
            errors=refusal.errors,
            is_full=refusal.code == self._quota.code,
            once=forms.new_token(),
        )

    def _values(self, fields: Mapping[str, str]) -> dict[str, Any]:
        """What a form says of an endpoint. Raises `validation_failed`."""
        types = self._chosen(fields)
        if fields.get("which") == "chosen" and not types:
            raise invalid({"types": [message("Choose at least one message, or all.")]})
        return {"url": fields.get("url", ""), "types": types, "ordered": "ordered" in fields}

    def _new_values(self, fields: Mapping[str, str], language: str) -> dict[str, Any]:
        """What a form says of a new endpoint. Raises `validation_failed`."""
        return {**self._values(fields), "signature": fields.get("signature", "v1"), "language": language}

    def _chosen(self, fields: Mapping[str, str]) -> Sequence[str]:
        """The types of messages that are chosen in a form; none: all."""
        return [] if fields.get("which") == "all" else [type.name for type in self._types if type.name in fields]

    def _page(self, session: Session, request: Request, template: str, status: int = 200, **values: Any) -> Reply:
        scripts = ["copy.js", *values.pop("scripts", ())]
        return self._console.signed_in.page(
            session,
            request,
            f"webhooks/{template}",
            status,
            here=WEBHOOKS,
            frame=self._layout,
            types=self._types,
            descriptions={PING: message("A test."), **{type.name: type.description for type in self._types}},
            days=RETENTION_DAYS,
            max_counted=MAX_COUNTED,
            failures=FAILURES,
            manual=MANUAL,
            scripts=scripts,
            **values,
        )


def moment_in_zone(text: str, zone: str) -> str | None:
    """The moment of a local time in a time zone; UTC if there is no such zone. None if it is no time."""
    try:
        timezone = ZoneInfo(zone)
    except (ValueError, KeyError, OSError):
        timezone = UTC
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return None


def _number(text: str) -> int:
    """A number of an address; 0 if it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0


def _example(type: MessageType) -> str:
    """A message of a type, as a program gets it."""
    data = msgspec.to_builtins(type.example)
    return _as_text(content_of(type.name, EXAMPLE_TIME, subject_of(type.example), 1, data))


def _as_text(content: Any) -> str:
    """JSON as people read it."""
    return json.dumps(content, ensure_ascii=False, indent=2)
