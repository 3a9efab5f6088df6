"""The page "Agents" of organizers: their apps and keys, what these did, and how an app is disconnected."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from holdfast.accounts.agents.agents_page import (
    AGENTS,
    AgentCard,
    AgentLine,
    AgentLines,
    AgentsPage,
    AgentTemplates,
    ConnectionDetails,
    RequestCard,
)
from holdfast.accounts.agents.approvals import RequestApprovals
from holdfast.accounts.agents.limits import AgentLimit, ListLimits
from holdfast.accounts.agents.requests_page import MAX_REQUESTS
from holdfast.accounts.sessions import Session
from holdfast.events.agents.actions import LIST_AGENT_ACTIONS, AgentAction, ListAgentActions
from holdfast.events.console.agents.approval_cards import describe
from holdfast.events.console.frame import Console, organizer
from holdfast.events.console.people.registrations_pages import REGISTRATIONS_PER_PAGE, bulk_changes_path
from holdfast.events.keys import operations as keys
from holdfast.events.keys.model import ApiKey, KeyUse, ListKeys
from holdfast.events.oauth.model import SCOPES
from holdfast.events.oauth_server import grants
from holdfast.events.oauth_server.model import Connection, Disconnect, ListConnections
from holdfast.events.oauth_server.model import Connection as ConnectedApp
from holdfast.events.settings import Settings
from holdfast.events.site import SITE
from holdfast.kit.contract.command import check
from holdfast.kit.contract.messages import translatable
from holdfast.kit.contract.problems import NOT_FOUND, VALIDATION_FAILED, Problem
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import Operation, read
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages import forms
from holdfast.kit.pages.language import language_of

EXAMPLES = (
    translatable("“Publish my open studio on the 29th at seven, with 30 seats.”"),
    translatable("“Who has not paid for the drawing class yet?”"),
    translatable("“Put ada@example.com on the list for Friday.”"),
)
"""What organizers say to an agent in a chat."""

LIST_USES = Operation("list_key_uses", None, read(keys.list_uses))
OPERATIONS = (LIST_USES, LIST_AGENT_ACTIONS)
"""Operations of the console alone: they have no routes of the API and no tools."""

TEMPLATES = AgentTemplates(
    base="console.html",
    action_sentences="console/agents/action_sentences.html",
    request_sentences="console/agents/request_sentences.html",
    keys="console/agents/key_section.html",
    counts="people",
)

MAX_GAP_IN_GROUP = timedelta(hours=1)
"""Registrations for one event are one line if none came later than this after the one before it."""

ICONS: Mapping[str, str] = {
    "create_event": "calendar-plus",
    "update_event": "pencil",
    "cancel_event": "calendar-x",
    "add_event_photo": "image",
    "set_primary_photo": "image",
    "remove_event_photo": "image",
    "create_registration": "user-plus",
    "update_registration": "pencil",
    "delete_registration": "user-minus",
    "create_queue": "list-ordered",
    "update_queue": "list-ordered",
    "delete_queue": "list-ordered",
    "create_api_key": "key-round",
    "revoke_api_key": "key-round",
    "create_onboarding_link": "wallet",
    "set_webhook": "webhook",
    "delete_webhook": "webhook",
    "ping_webhook": "webhook",
    "resend_webhook_messages": "webhook",
}
"""The icon of each operation that is told."""


class ActionGroup(Struct, frozen=True):
    """Actions that are one line: one of any kind, or registrations for one event that followed each other.

    The newest is the first.
    """

    actions: Sequence[AgentAction]

    @property
    def first(self) -> AgentAction:
        return self.actions[0]

    @property
    def count(self) -> int:
        """How many people it is about; people who are not registered any more count one by one."""
        return len({action.user_id or action.id for action in self.actions})

    @property
    def emails(self) -> Sequence[str]:
        return [*dict.fromkeys(action.email for action in self.actions if action.email)]

    @property
    def removable(self) -> Sequence[str]:
        """The public ids of the people whose registration can still be removed."""
        return [
            *dict.fromkeys(
                action.user_id for action in self.actions if action.user_id and action.status not in (None, "rejected")
            )
        ]

    @property
    def undo(self) -> str:
        """The path of the page that asks whether to undo it; empty: it cannot be undone."""
        action = self.first
        match action.operation:
            case "create_registration" if self.removable and action.event_id:
                boxes = "".join(f"&p-{user_id}=on" for user_id in self.removable)
                return f"{bulk_changes_path(action.event_id)}?do=remove{boxes}"
            case "create_event" if action.is_event_upcoming:
                return f"/console/events/{action.event_id}/cancel"
            case "create_queue" if action.is_queue_open:
                return f"/console/queues/{action.queue_id}/delete"
            case "create_api_key" if action.is_key_active:
                return f"{AGENTS}/keys/{action.key_id}/revoke"
            case _:
                return ""

    @property
    def is_undone(self) -> bool:
        """Whether nothing is left of what it made."""
        action = self.first
        match action.operation:
            case "create_registration":
                return all(action.status is None for action in self.actions)
            case "create_queue":
                return not action.is_queue_open
            case "create_api_key":
                return not action.is_key_active
            case _:
                return False


def grouped(actions: Sequence[AgentAction]) -> list[ActionGroup]:
    """Actions, the newest first, as lines."""
    groups: list[list[AgentAction]] = []
    for action in actions:
        if groups and _belongs(action, groups[-1]):
            groups[-1].append(action)
        else:
            groups.append([action])
    return [ActionGroup(group) for group in groups]


def _belongs(action: AgentAction, group: Sequence[AgentAction]) -> bool:
    newer = group[-1]
    return (
        action.operation == "create_registration"
        and (action.operation, action.credential, action.event_id)
        == (newer.operation, newer.credential, newer.event_id)
        and newer.done_at - action.done_at <= MAX_GAP_IN_GROUP
        and len(group) < REGISTRATIONS_PER_PAGE
    )


class OrganizerAgents:
    """What the service knows of the agents of an organizer, as `AgentDirectory`."""

    def __init__(self, console: Console, runner: Runner, requests: RequestApprovals) -> None:
        self._requests = requests
        self._apps, self._actions = runner.run_of(grants.LIST), runner.run_of(LIST_AGENT_ACTIONS)
        self._keys, self._uses = console.run["list_api_keys"], runner.run_of(LIST_USES)
        self._limits = runner.run_of(keys.KEY_LIMITS.list_limits)

    async def cards(self, session: Session, request: Request) -> Sequence[AgentCard]:
        """The connected apps and the active keys, the one used last first."""
        texts = SITE.texts(language_of(request))
        caller = organizer(session)
        apps: Sequence[ConnectedApp] = await self._apps(caller, ListConnections())
        active: Sequence[ApiKey] = await self._keys(caller, ListKeys())
        uses: Sequence[KeyUse] = await self._uses(caller, ListKeys())
        use_times = {use.id: use.used_at for use in uses}
        limits: Sequence[AgentLimit] = await self._limits(caller, ListLimits())
        limit_of = {limit.client_id or limit.key_id: limit for limit in limits}
        cards = [
            AgentCard(
                client_id=app.client_id,
                name=app.name or app.host or "",
                origin=texts.gettext("From %(host)s.") % {"host": app.host}
                if app.host
                else texts.gettext("It chose its name itself. Nobody has checked it."),
                abilities=[texts.gettext(SCOPES[scope]) if scope in SCOPES else scope for scope in app.scopes],
                since=app.since,
                used_at=app.used_at,
                remove=f"{AGENTS}/disconnect?app={quote(app.client_id, safe='')}",
                limit=limit_of.get(app.client_id),
            )
            for app in apps
        ]
        cards += [
            AgentCard(
                key_id=key.id,
                name=key.name,
                origin=f"{key.key[:8]}…",
                abilities=[texts.gettext("Everything that you can do here.")],
                since=key.inserted_at,
                used_at=use_times.get(key.id),
                remove=f"{AGENTS}/keys/{key.id}/revoke",
                limit=limit_of.get(key.id),
            )
            for key in active
        ]
        return sorted(cards, key=lambda card: card.used_at or card.since, reverse=True)

    async def lines(self, session: Session, request: Request, before: str, limit: int) -> AgentLines:
        """What agents did, the newest first."""
        is_number = before.isascii() and before.isdecimal() and len(before) < 19
        values = {"before": int(before) if is_number else before or None}
        command = check(ListAgentActions, values)
        actions: Sequence[AgentAction] = await self._actions(organizer(session), command)
        every = grouped(actions)
        groups = every[:limit]
        is_more = len(every) > limit or len(actions) == command.limit
        lines = [
            AgentLine(
                icon=ICONS[group.first.operation],
                at=group.first.done_at,
                action=group,
                undo=group.undo,
                is_undone=group.is_undone,
            )
            for group in groups
        ]
        return AgentLines(lines, str(groups[-1].actions[-1].id) if is_more else "")

    async def requests(self, session: Session, request: Request) -> Sequence[RequestCard]:
        """What waits for the organizer."""
        waiting_requests = await self._requests.list_waiting(organizer(session), MAX_REQUESTS)
        return [await describe(session, request, waiting_request) for waiting_request in waiting_requests]

    async def values(self, session: Session, request: Request) -> Mapping[str, Any]:
        """The empty form for a new key."""
        return {"values": {}, "errors": {}, "is_full": False, "once": forms.new_token()}


def agents_page(console: Console, runner: Runner, settings: Settings, requests: RequestApprovals) -> AgentsPage:
    """The page "Agents" of organizers."""
    return AgentsPage(console, OrganizerAgents(console, runner, requests), connection_of(settings), TEMPLATES)


def connection_of(settings: Settings) -> ConnectionDetails:
    """What agents need to connect."""
    return ConnectionDetails(f"{settings.base_url}/mcp", "holdfast-events", bool(settings.authorization_server))


class AppsPages:
    """Answers requests for the question whether to disconnect an app that acts for the organizer."""

    def __init__(self, console: Console, runner: Runner, agents: AgentsPage) -> None:
        self._console = console
        self._agents = agents
        self._list, self._disconnect = runner.run_of(grants.LIST), runner.run_of(grants.DISCONNECT)

    def routes(self) -> list[Route]:
        return [
            self._agents.moved("/console/apps", "apps"),
            self._console.route(f"{AGENTS}/disconnect", "disconnect_app", self.disconnect, "POST"),
        ]

    async def disconnect(self, session: Session, request: Request) -> Reply:
        """Show the question whether to disconnect an app; with POST disconnect it."""
        if request.method == "POST":
            fields = await self._console.signed_in.read(session, request)
            await self._disconnect(organizer(session), _disconnect_command(fields.get("app", "")))
            return self._console.redirect(request, AGENTS)
        id = read_query(request.query).get("app", "")
        apps: Sequence[Connection] = await self._list(organizer(session), ListConnections())
        for app in apps:
            if app.client_id == id:
                return self._console.page(session, request, "agents/app_disconnect.html", here=AGENTS, app=app)
        raise NOT_FOUND()


def _disconnect_command(app: str) -> Disconnect:
    """The command of a form. Raises `not_found` if the id of the app is not valid."""
    try:
        return check(Disconnect, {"client_id": app})
    except Problem as problem:
        if problem.type is VALIDATION_FAILED:
            raise NOT_FOUND() from problem
        raise
