"""The ASGI application of a service: one look-up finds what answers a path. It refuses what no route answers."""

import traceback
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager

from starlette.types import Receive, Scope, Send

from holdfast.kit.contract.client import begin_request
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast.kit.http.answers import NO_PARAMETERS, has_other_parameters, known_parameters
from holdfast.kit.http.handler import NO_FIELDS, NO_STORE, RenderProblem, Reply, Request
from holdfast.kit.http.index import PathIndex, Route, segments
from holdfast.kit.http.path_repair import PATH_REPAIR, PathRepair


class Application:
    """Answers requests by the routes of a service.

    A path without a route is `not_found`. If it has one without the slash at its end, the reply is a redirect to it.

    lifespan            what is open while the application serves
    render              renders these problems, and `method_not_allowed`
    parameters          the query parameters that a redirect keeps
    keeps_slash         the prefixes of paths that are not redirected
    pages               the paths of pages: a broken link to one of them is repaired
    program_prefixes    the prefixes of paths that are for programs
    """

    def __init__(
        self,
        routes: Iterable[Route],
        lifespan: Callable[[], AbstractAsyncContextManager[None]],
        render: RenderProblem,
        *,
        parameters: Collection[str] = NO_PARAMETERS,
        keeps_slash: tuple[str, ...] = (),
        pages: Collection[str] = (),
        program_prefixes: tuple[str, ...] = (),
    ) -> None:
        self.routes = tuple(routes)
        self.lifespan = lifespan
        self._render = render
        self._parameters = parameters
        self._keeps_slash = keeps_slash
        self._path_repair = PathRepair(pages, parameters, (*program_prefixes, *keeps_slash))
        self._index: PathIndex[Route] = PathIndex()
        for route in self.routes:
            if self._index.setdefault(route.path, route) is not route:
                raise ValueError(f"Two routes have the path {route.path}.")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
            return
        begin_request(scope)
        scope[PATH_REPAIR] = self._path_repair
        parts = segments(scope)
        route, fields = self._index.find(scope["path"], parts) or (None, NO_FIELDS)
        request = Request(scope, receive, send, dict(scope["headers"]), fields)
        try:
            reply = await route.endpoint(request) if route else self._redirect_or_refuse(request, parts)
        except Problem as problem:
            reply = self._render(problem, request)
        await reply.send(request)

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        """Be open from the start of the server to its end, as the ASGI lifespan protocol tells it."""
        stage = "startup"
        await receive()
        try:
            async with self.lifespan():
                await send({"type": "lifespan.startup.complete"})
                stage = "shutdown"
                await receive()
        except BaseException:
            await send({"type": f"lifespan.{stage}.failed", "message": traceback.format_exc()})
            raise
        await send({"type": "lifespan.shutdown.complete"})

    def _redirect_or_refuse(self, request: Request, parts: Sequence[str]) -> Reply:
        """A redirect to the path without the slash at its end. Raises `not_found` if that has no route, either."""
        route = self._route_without_slash(request, parts)
        if route is None:
            raise NOT_FOUND()
        if route.refuses_parameters and has_other_parameters(request.query, self._parameters):
            # A redirect without them would leave out a misspelt filter. One with them might show a signature.
            raise NOT_FOUND(
                "No operation has a path that ends with a slash.", hint="Leave out the slash at the end of the path."
            )
        return redirect_without_slash(request.scope, self._parameters)

    def _route_without_slash(self, request: Request, parts: Sequence[str]) -> Route | None:
        path = without_slash(request.scope)
        if path is None or request.path.startswith(self._keeps_slash):
            return None
        route, _ = self._index.find(path, parts[:-1]) or (None, NO_FIELDS)
        return route


def without_slash(scope: Scope) -> str | None:
    """The path without the slash at its end; None if it has none there, or an encoded one, or is only a slash."""
    path: str = scope["path"]
    raw: bytes = scope.get("raw_path") or path.encode()
    return path[:-1] if raw.endswith(b"/") and len(path) > 1 and not path.startswith("//") else None


def redirect_without_slash(scope: Scope, parameters: Collection[str]) -> Reply:
    """A redirect, with the same method and body, to the same address without the slash at its end.

    parameters    the names of the query parameters that it keeps
    """
    query = known_parameters(scope["query_string"], parameters)
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    location = path.removesuffix(b"/") + (b"?" + query if query else b"")
    return Reply(308, headers=[NO_STORE, (b"location", location)])
