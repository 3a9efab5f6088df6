"""The pages of queues: the list, a new one, and one with its picture."""

from collections.abc import Mapping, Sequence

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console import once, queue_form
from holdfast.events.console.frame import Console, organizer
from holdfast.events.console.own import named, on_own
from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.events.queues import picture
from holdfast.events.queues.model import DeleteQueue, GetQueue, Queue, UpdateQueue
from holdfast.events.queues.picture import Picture
from holdfast.events.site import SITE
from holdfast.kit.handler import Reply, Request, read_query
from holdfast.kit.modes import read
from holdfast.kit.operation import Operation
from holdfast.kit.pagination import OffsetPage, Page
from holdfast.kit.problems import BAD_REQUEST, VALIDATION_FAILED, Problem
from holdfast.kit.runner import Runner

QUEUES = "/console/queues"
SHOWN = 20

LOOK = Operation("look_at_queue", None, read(picture.look))
OPERATIONS = (LOOK,)
"""They have no routes and no tools of their own."""


class QueuesPages:
    """Answers requests for the organizer's queues."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._list, self._get, self._create, self._update, self._delete = (
            console.run[name] for name in ("list_queues", "get_queue", "create_queue", "update_queue", "delete_queue")
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
            *SITE.assets("console/queue.js"),
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
            return self._form(session, request, values, {})
        fields = await self._console.door.read(session, request)
        try:
            made = await once.run(self._create, organizer(session), queue_form.fresh(fields), fields, Queue)
        except Problem as problem:
            if problem.type is QUOTA_EXCEEDED:
                return self._form(session, request, fields, {}, problem.status, is_full=True)
            if problem.type is not VALIDATION_FAILED:
                raise
            return self._form(session, request, fields, problem.extra["errors"], 422)
        return self._console.to(request, f"{QUEUES}/{made.id}")

    async def show(self, session: Session, request: Request) -> Reply:
        """Show a queue with its picture; pause and resume it."""
        command = named(GetQueue, request)
        if request.method == "POST":
            does = (await self._console.door.read(session, request)).get("do")
            if does not in {"pause", "resume"}:
                raise BAD_REQUEST("The form names nothing to do.", hint="Open the page again.")
            change = UpdateQueue(queue_id=command.queue_id, active=does == "resume")
            await on_own(self._update, organizer(session), change)
            return self._console.to(request, f"{QUEUES}/{command.queue_id}")
        queue: Queue = await on_own(self._get, organizer(session), command)
        seen: Picture = await self._look(organizer(session), command)
        return self._console.page(session, request, "queue.html", here=QUEUES, queue=queue, seen=seen)

    async def edit(self, session: Session, request: Request) -> Reply:
        """Change a queue."""
        command = named(GetQueue, request)
        queue: Queue = await on_own(self._get, organizer(session), command)
        if request.method != "POST":
            return self._form(session, request, queue_form.shown(queue), {}, queue=queue)
        fields = await self._console.door.read(session, request)
        try:
            await on_own(self._update, organizer(session), queue_form.changed(fields, queue))
        except Problem as problem:
            if problem.type is not VALIDATION_FAILED:
                raise
            return self._form(session, request, fields, problem.extra["errors"], 422, queue=queue)
        return self._console.to(request, f"{QUEUES}/{queue.id}")

    async def delete(self, session: Session, request: Request) -> Reply:
        """Ask whether a queue is to be deleted, and delete it."""
        command = named(DeleteQueue, request)
        if request.method == "POST":
            await self._console.door.read(session, request)
            await on_own(self._delete, organizer(session), command)
            return self._console.to(request, QUEUES)
        queue: Queue = await on_own(self._get, organizer(session), GetQueue(queue_id=command.queue_id))
        return self._console.page(session, request, "queue_delete.html", here=QUEUES, queue=queue)

    def _form(
        self,
        session: Session,
        request: Request,
        values: Mapping[str, str],
        errors: Mapping[str, Sequence[str]],
        status: int = 200,
        *,
        queue: Queue | None = None,
        is_full: bool = False,
    ) -> Reply:
        return self._console.page(
            session,
            request,
            "queue_form.html",
            status,
            here=QUEUES,
            queue=queue,
            values=values,
            errors=errors,
            is_full=is_full,
            once=once.new(),
        )
