"""A console: the pages of a service for those who are signed in, in one frame, and the operations that they call.

A page calls the operations of the API, as the person who is signed in. So it can do what the API can, and no more.
"""

from collections.abc import Callable, Mapping
from typing import Any

from starlette.routing import Route

from holdfast.accounts.door import Answer, Door
from holdfast.accounts.sessions import Session
from holdfast.kit.handler import Reply, Request
from holdfast.kit.runner import Run

HOME = "/console"


class Console:
    """The frame of a console.

    door      lets those in who are signed in
    run       the operations of the API, by name
    places    the names in the navigation of somebody, in English, by their paths
    """

    def __init__(self, door: Door, run: Mapping[str, Run], places: Callable[[Session], Mapping[str, str]]) -> None:
        self.door = door
        self.run = run
        self._places = places

    def route(self, path: str, name: str, answer: Answer, *methods: str, limit: str | None = None) -> Route:
        """The route of a page. `answer` answers GET, and the methods."""
        return self.door.route(path, f"console_{name}", answer, *methods, limit=limit)

    def page(
        self, session: Session, request: Request, template: str, status: int = 200, *, here: str = HOME, **values: Any
    ) -> Reply:
        """A page of the console. `here`: the place in the navigation."""
        more = {"here": here, "places": self._places(session), **values}
        return self.door.page(session, request, f"console/{template}", status, **more)

    def to(self, request: Request, path: str) -> Reply:
        """A redirect to another page, in the language of this one."""
        return self.door.to(request, self.door.entrance.shown(request).language.at(path))
