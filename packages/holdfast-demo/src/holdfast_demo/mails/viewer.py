"""The page `/mails` of a demonstration: the mails that the services have written to files, and one of them as it looks.

Mails have links that sign in. So this page is never part of a service: `holdfast up` puts it in front of one, where
only this machine can reach it and no mail server is set.
"""

import asyncio
import datetime as dt
import re
from base64 import b64encode
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import parseaddr
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.kit.pages.site import Site
from holdfast_demo.shared.serving import asset_routes, guard_application, language_of, to_response

MAX_MAILS = 200
"""The most mails in the list, the newest first."""

MAX_MAIL_BYTES = 10_000_000
"""The size of a mail file above which it is not read."""

MAX_PREVIEW_CHARACTERS = 200
"""The most characters of a mail's text in the list."""

CHARACTERS_OF_LINE = 60
"""The characters of a line of a mail in the frame."""

_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
_ADDRESS = re.compile(r"https?://\S+")
_PARSER = BytesParser(policy=policy.default)


class ListedMail(NamedTuple):
    """A mail in the list.

    id            the name of its file without the suffix
    sender        the name of who sends it, or the address
    preview       the beginning of its text, without addresses of links; empty if there is no text
    written_at    the time of the file
    """

    id: str
    sender: str
    recipient: str
    subject: str
    preview: str
    written_at: dt.datetime


class ReadMail(NamedTuple):
    """A mail as it is shown.

    html      with its pictures inside; empty if there is none
    text      empty if there is none
    height    about how high it is, in pixels, in a frame as wide as the page
    """

    summary: ListedMail
    html: str
    text: str
    height: int


def list_mails(directory: Path) -> list[ListedMail]:
    """The newest mails in a directory; none if there is no such directory."""
    files = sorted(((_modified(file), file) for file in directory.glob("*.eml")), reverse=True)[:MAX_MAILS]
    return [summary for modified, file in files if (summary := _list(file, modified))]


def read_mail(directory: Path, id: str) -> ReadMail | None:
    """A mail; None if there is none with this id."""
    if not _ID.fullmatch(id):
        return None
    file = directory / f"{id}.eml"
    mail = _parse(file)
    if mail is None:
        return None
    html, text = _html(mail), _body(mail, "plain")
    return ReadMail(_summary_of(file, mail, _modified(file)), html, text, _height_of(text, html.count("<img ")))


def _parse(file: Path) -> EmailMessage | None:
    """The mail in a file; None if it is too large, or deleted meanwhile."""
    try:
        return None if file.stat().st_size > MAX_MAIL_BYTES else _PARSER.parsebytes(file.read_bytes())
    except OSError:
        return None


def _height_of(text: str, pictures: int) -> int:
    """About how high a mail is, in pixels: the frame has no script that could measure it."""
    lines = sum(1 + len(line) // CHARACTERS_OF_LINE for line in text.splitlines())
    return 200 + 24 * lines + 200 * pictures


@lru_cache(maxsize=2 * MAX_MAILS)
def _list(file: Path, modified: float) -> ListedMail | None:
    """A mail of the list; None if there is none that can be read. A file that is written again has another time."""
    mail = _parse(file)
    return _summary_of(file, mail, modified) if mail is not None else None


def _summary_of(file: Path, mail: EmailMessage, modified: float) -> ListedMail:
    name, address = parseaddr(str(mail["From"] or ""))
    return ListedMail(
        id=file.stem,
        sender=name or address,
        recipient=str(mail["To"] or ""),
        subject=str(mail["Subject"] or ""),
        preview=" ".join(_ADDRESS.sub("", _body(mail, "plain"))[:MAX_PREVIEW_CHARACTERS].split()),
        written_at=dt.datetime.fromtimestamp(modified, dt.UTC),
    )


def _modified(file: Path) -> float:
    """When a file was written, in seconds since 1970; 0 if it was deleted meanwhile."""
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def _body(mail: EmailMessage, kind: str) -> str:
    body = mail.get_body((kind,))
    # Lines end with CR LF in the file. A browser reads LF, and the digest of the style must be that of what it reads.
    return str(body.get_content()).replace("\r\n", "\n") if body else ""


def _html(mail: EmailMessage) -> str:
    """The HTML of a mail. Its pictures are inside of it, and its links open a new tab."""
    html = _body(mail, "html").replace("<head>", '<head><base target="_blank">', 1)
    for part in mail.walk():
        if (cid := str(part["Content-ID"] or "").strip("<>")) and part.get_content_maintype() == "image":
            picture = part.get_payload(decode=True)
            if isinstance(picture, bytes):
                inside = f"data:{part.get_content_type()};base64,{b64encode(picture).decode()}"
                html = html.replace(f'src="cid:{cid}"', f'src="{inside}"')
    return html


MAILS_PATH = "/mails"

SITE = Site("Demo mails", Path(__file__).parent)

SCRIPTS = ("times.js", "live.js")
"""Files of the kit, which the service behind the viewer serves."""

STYLE = "templates/mails.css"

_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)


def with_viewer(app: ASGIApp, directory: Path, address: str) -> ASGIApp:
    """A service with the viewer in front of it, guarded against other sites.

    directory    the directory with the files of the mails
    address      the address of the service
    """
    viewer = guard_application(Router([Route(MAILS_PATH, _Viewer(directory)), *asset_routes(SITE, STYLE)]), address)
    paths = {MAILS_PATH, SITE.asset(STYLE)}

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        is_of_viewer = scope["type"] == "http" and scope["path"] in paths
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
        id, language = request.query_params.get("mail"), language_of(request)
        if id is None:
            mails = await asyncio.to_thread(list_mails, self._directory)
            return to_response(SITE.page("templates/list.html", language=language, mails=mails, scripts=SCRIPTS))
        mail = await asyncio.to_thread(read_mail, self._directory, id)
        if mail is None:
            return to_response(SITE.page("templates/missing.html", 404, language=language))
        styles = " ".join(f"'sha256-{_digest(style)}'" for style in _STYLE.findall(mail.html))
        return to_response(
            SITE.page(
                "templates/mail.html", language=language, mail=mail, scripts=SCRIPTS[:1], styles=styles, images="data:"
            )
        )


def _digest(style: str) -> str:
    return b64encode(sha256(style.encode()).digest()).decode()
