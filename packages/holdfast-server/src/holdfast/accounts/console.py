"""The console of a service: its pages are below one path, and have one layout."""

from collections.abc import Mapping
from typing import Any

from holdfast.accounts.sessions import Session
from holdfast.accounts.signed_in_pages import Answer, SignedInPages
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.operations.runner import RunOperation

HOME = "/console"


class Console:
    """The layout of a console.

    signed_in    makes routes that only signed-in people reach
    run          the functions that run operations, by the name of the operation
    """

    def __init__(self, signed_in: SignedInPages, run: Mapping[str, RunOperation]) -> None:
        self.signed_in = signed_in
        self.run = run

    def route(self, path: str, name: str, answer: Answer, *methods: str, limit: str | None = None) -> Route:
        """The route of a page. `answer` answers GET and `methods`."""
        return self.signed_in.route(path, f"console_{name}", answer, *methods, limit=limit)

    def page(
        self, session: Session, request: Request, template: str, status: int = 200, *, here: str = HOME, **values: Any
    ) -> Reply:
        """A page of the console. `here`: the path of its navigation entry."""
        return self.signed_in.page(session, request, f"console/{template}", status, here=here, **values)

    def redirect(self, request: Request, path: str) -> Reply:
        """A redirect to another page, in the language of this one."""
        return self.signed_in.redirect(request, self.signed_in.gate.page_context(request).language.at(path))
