"""The page `/mails` of a demonstration: the mails that the services would have sent, and one of them as it looks.

Mails have links that sign in. So this page is never part of a service: `holdfast up` puts it in front of one, where
only this machine can reach it and no mail server is set.
"""

import asyncio
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.kit.pages.site import Site
from holdfast_demo.mails.mail_files import list_mails, read_mail
from holdfast_demo.shared.serving import guard_application, to_response

PATH = "/mails"

SITE = Site("Demo mails", Path(__file__).parent)

SCRIPTS = ("times.js",)
"""Files of the kit, which the service behind the viewer serves."""

_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)


def with_viewer(app: ASGIApp, directory: Path, address: str) -> ASGIApp:
    """A service with the viewer in front of it, guarded against other sites.

    directory    the directory with the files of the mails
    address      the address of the service
    """
    viewer = guard_application(_Viewer(directory), address)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        is_of_viewer = scope["type"] == "http" and scope["path"] == PATH
        await (viewer if is_of_viewer else app)(scope, receive, send)

    return answer


class _Viewer:
    """Answers requests for the list of mails, and with `?mail=<id>` for one of them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = await self._answer(request)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if request.method not in {"GET", "HEAD"}:
            return Response(status_code=405, headers={"Allow": "GET, HEAD"})
        id = request.query_params.get("mail")
        if id is None:
            mails = await asyncio.to_thread(list_mails, self._directory)
            return to_response(SITE.page("templates/list.html", mails=mails, scripts=SCRIPTS))
        mail = await asyncio.to_thread(read_mail, self._directory, id)
        if mail is None:
            return to_response(SITE.page("templates/missing.html", 404))
        styles = " ".join(f"'sha256-{_digest(style)}'" for style in _STYLE.findall(mail.html))
        return to_response(SITE.page("templates/mail.html", mail=mail, scripts=SCRIPTS, styles=styles, images="data:"))


def _digest(style: str) -> str:
    return b64encode(sha256(style.encode()).digest()).decode()
