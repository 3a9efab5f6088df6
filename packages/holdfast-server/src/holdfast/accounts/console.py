"""A console: the pages of a service for signed-in people, in one layout, and the operations that they call.

A page calls the operations of the API as the signed-in person. So it can do what the API can, and no more.
"""

from collections.abc import Mapping
from typing import Any

from starlette.routing import Route

from holdfast.accounts.sessions import Session
from holdfast.accounts.signed_in_pages import Answer, SignedInPages
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.running.runner import Run

HOME = "/console"


class Console:
    """The layout of a console.

    door      makes routes that only signed-in people reach
    run       the operations of the API, by name
    """

    def __init__(self, signed_in: SignedInPages, run: Mapping[str, Run]) -> None:
        self.signed_in = signed_in
        self.run = run

    def route(self, path: str, name: str, answer: Answer, *methods: str, limit: str | None = None) -> Route:
        """Return the route of a page. `answer` answers GET and `methods`."""
        return self.signed_in.route(path, f"console_{name}", answer, *methods, limit=limit)

    def page(
        self, session: Session, request: Request, template: str, status: int = 200, *, here: str = HOME, **values: Any
    ) -> Reply:
        """Return a page of the console. `here`: the path of its navigation entry."""
        return self.signed_in.page(session, request, f"console/{template}", status, here=here, **values)

    def to(self, request: Request, path: str) -> Reply:
        """Return a redirect to another page, in the language of this one."""
        return self.signed_in.to(request, self.signed_in.gate.page_context(request).language.at(path))
