"""The pages of queues: the list, a new one, and one with its picture."""

from collections.abc import Mapping

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console import queue_form
from holdfast.events.console.frame import Console, organizer
from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.events.queues import picture
from holdfast.events.queues.model import DeleteQueue, GetQueue, Queue, UpdateQueue
from holdfast.events.queues.picture import Picture
from holdfast.kit.handler import Reply, Request, read_query
from holdfast.kit.modes import read
from holdfast.kit.operation import Operation
from holdfast.kit.pages import once
from holdfast.kit.pages.own import named, on_own
from holdfast.kit.pages.refusal import NOT_REFUSED, Refusal, tried
from holdfast.kit.pagination import OffsetPage, Page
from holdfast.kit.problems import BAD_REQUEST
from holdfast.kit.runner import Runner

QUEUES = "/console/queues"
SHOWN = 20

LOOK = Operation("look_at_queue", None, read(picture.look))
OPERATIONS = (LOOK,)
"""They have no routes and no tools of their own."""


class QueuesPages:
    """Answers requests for the organizer's queues. `interval`: the seconds in which a queue lets in its rate."""

    def __init__(self, console: Console, runner: Runner, interval: int) -> None:
        self._console = console
        self._interval = interval
        self._list, self._get, self._create, self._update, self._delete = (
            on_own(console.run[name])
            for name in ("list_queues", "get_queue", "create_queue", "update_queue", "delete_queue")
        )
        self._look = runner[LOOK]

    def routes(self) -> list[BaseRoute]:
        one = f"{QUEUES}/{{queue_id}}"
        return [
            self._console.route(QUEUES, "queues", self.list),
            self._console.route(f"{QUEUES}/new", "new_queue", self.create, "POST"),
            self._console.route(one, "queue", self.show, "POST"),
            self._console.route(f"{one}/edit", "edit_queue", self.edit, "POST"),
            self._console.route(f"{one}/delete", "delete_queue", self.delete, "POST"),
        ]

    async def list(self, session: Session, request: Request) -> Reply:
        """List the queues, oldest first."""
        text = read_query(request.query).get("offset", "0")
        offset = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
        found: Page[Queue] = await self._list(organizer(session), OffsetPage(limit=SHOWN, offset=offset))
        after = offset + len(found.data) if found.pagination.has_more else None
        return self._console.page(session, request, "queues.html", here=QUEUES, queues=found.data, after=after)

    async def create(self, session: Session, request: Request) -> Reply:
        """Make a queue."""
        if request.method != "POST":
            values = {"release_rate": "60", "token_ttl_minutes": "10"}
            return self._form(session, request, values)
        fields = await self._console.door.read(session, request)
        made = await tried(
            lambda: once.run(self._create, organizer(session), queue_form.fresh(fields), fields, Queue), QUOTA_EXCEEDED
        )
        if isinstance(made, Refusal):
            return self._form(session, request, fields, made)
        return self._console.to(request, f"{QUEUES}/{made.id}")

    async def show(self, session: Session, request: Request) -> Reply:
        """Show a queue with its picture; pause and resume it."""
        command = named(GetQueue, request)
        if request.method == "POST":
            does = (await self._console.door.read(session, request)).get("do")
            if does not in {"pause", "resume"}:
                raise BAD_REQUEST("The form names nothing to do.", hint="Open the page again.")
            change = UpdateQueue(queue_id=command.queue_id, active=does == "resume")
            await self._update(organizer(session), change)
            return self._console.to(request, f"{QUEUES}/{command.queue_id}")
        queue: Queue = await self._get(organizer(session), command)
        seen: Picture = await self._look(organizer(session), command)
        return self._console.page(session, request, "queue.html", here=QUEUES, queue=queue, seen=seen)

    async def edit(self, session: Session, request: Request) -> Reply:
        """Change a queue."""
        command = named(GetQueue, request)
        queue: Queue = await self._get(organizer(session), command)
        if request.method != "POST":
            return self._form(session, request, queue_form.shown(queue), queue=queue)
        fields = await self._console.door.read(session, request)
        done = await tried(lambda: self._update(organizer(session), queue_form.changed(fields, queue)), QUOTA_EXCEEDED)
        if isinstance(done, Refusal):
            return self._form(session, request, fields, done, queue=queue)
        return self._console.to(request, f"{QUEUES}/{queue.id}")

    async def delete(self, session: Session, request: Request) -> Reply:
        """Ask whether a queue is to be deleted, and delete it."""
        command = named(DeleteQueue, request)
        if request.method == "POST":
            await self._console.door.read(session, request)
            await self._delete(organizer(session), command)
            return self._console.to(request, QUEUES)
        queue: Queue = await self._get(organizer(session), GetQueue(queue_id=command.queue_id))
        return self._console.page(session, request, "queue_delete.html", here=QUEUES, queue=queue)

    def _form(
        self,
        session: Session,
        request: Request,
        values: Mapping[str, str],
        refusal: Refusal = NOT_REFUSED,
        *,
        queue: Queue | None = None,
    ) -> Reply:
        return self._console.page(
            session,
            request,
            "queue_form.html",
            refusal.status,
            here=QUEUES,
            queue=queue,
            values=values,
            errors=refusal.errors,
            labels=queue_form.LABELS,
            interval=self._interval,
            is_full=refusal.code == QUOTA_EXCEEDED.code,
            once=once.new(),
        )
