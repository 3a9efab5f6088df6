"""Spreadsheets: pools, their variants and the history as CSV, out; pools and variants in, after a dry run."""

from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace
from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.inventory.console.frame import Console, merchant
from holdfast.inventory.problems import NOT_ENOUGH_STOCK
from holdfast.inventory.spreadsheets.model import MOST_ROWS, ExportCsv, Exported, ImportCsv, Imported
from holdfast.kit.caller import Caller
from holdfast.kit.command import check
from holdfast.kit.downloads import Download
from holdfast.kit.handler import Reply, Request
from holdfast.kit.limits import SLOT_SECONDS, Slots
from holdfast.kit.pages import once
from holdfast.kit.pages.files import KIND, Bounds, File
from holdfast.kit.pages.refusal import NOT_REFUSED, Refusal, tried
from holdfast.kit.problems import BAD_REQUEST, invalid
from holdfast.kit.said import marked, said

SPREADSHEETS = "/console/spreadsheets"

LARGEST = 400_000
"""The most bytes of a file. Its text comes again with the form that confirms it, with other line breaks."""

AT_ONCE = 2
"""How many spreadsheets of one shop are read at once."""

MARK = "\ufeff"
"""At its beginning it tells spreadsheet programs that a file is UTF-8."""

FILES = {
    "pools": marked("Pools, with their quantities and limits"),
    "members": marked("Variants, with the units that one sale takes"),
    "history": marked("History of all changes"),
}
KINDS = {"pools": marked("Pools"), "members": marked("Variants of pools")}
MODES = {
    "set": marked("They replace what is there"),
    "adjust": marked("They are added to what is there"),
}


class SpreadsheetsPage:
    """Answers requests for spreadsheets."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._export, self._import = console.run["export_csv"], console.run["import_csv"]
        self._slots = Slots(AT_ONCE, SLOT_SECONDS)

    def routes(self) -> list[BaseRoute]:
        return [
            self._console.route(SPREADSHEETS, "spreadsheets", self.answer, "POST"),
            *(
                self._console.route(f"{SPREADSHEETS}/{kind}.csv", f"{kind}_csv", partial(self.file, kind))
                for kind in FILES
            ),
        ]

    async def file(self, kind: str, session: Session, request: Request) -> Reply:
        """A spreadsheet as a file."""
        command = check(ExportCsv, {"kind": kind, "limit": MOST_ROWS})
        first: Exported = await self._export(merchant(session), command)
        return Download(
            200,
            media_type=b"text/csv; charset=utf-8",
            filename=f"{kind}.csv",
            parts=self._parts(merchant(session), command, first),
        )

    async def _parts(self, caller: Caller, command: ExportCsv, part: Exported) -> AsyncIterator[bytes]:
        """The file, a part at a time. Every part has the names of the columns, and the file has them once."""
        yield f"{MARK}{part.csv}".encode()
        while part.next_cursor:
            part = await self._export(caller, replace(command, cursor=part.next_cursor))
            yield part.csv.partition("\n")[2].encode()

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the files and the form; what an import would change; then do it."""
        if request.method != "POST":
            return self._form(session, request, {"kind": "pools", "mode": "set"})
        fields = await self._read(session, request)
        done = await tried(lambda: self._asked(session, request, fields), NOT_ENOUGH_STOCK)
        return self._form(session, request, fields, done) if isinstance(done, Refusal) else done

    async def _asked(self, session: Session, request: Request, fields: Mapping[str, str]) -> Reply:
        """Import a text, if it was shown what that changes; else show that."""
        command = wished(fields)
        if "sure" in fields:
            command = replace(command, dry_run=False)
            done = await once.run(self._import, merchant(session), command, fields, Imported)
        else:
            done = await self._import(merchant(session), command)
        return self._page(session, request, "spreadsheets_import.html", 200, done=done, values=fields, once=once.new())

    async def _read(self, session: Session, request: Request) -> Mapping[str, str]:
        """The fields of the form. A file that was chosen is their text."""
        door = self._console.door
        if not request.headers.get(b"content-type", b"").lower().startswith(KIND.encode()):
            return await door.read(session, request)
        sent: list[str] = []

        async def take(file: File) -> None:
            if file.content is None:
                sent.append("")
                return
            try:
                sent.append(file.content.decode("utf-8-sig"))
            except UnicodeDecodeError as error:
                raise BAD_REQUEST(
                    "The file is not UTF-8.", hint="Save it as CSV in UTF-8 and send it again."
                ) from error

        async with self._slots.of(merchant(session).tenant):
            fields = await door.read_files(session, request, Bounds(1, LARGEST), take)
        return {**fields, "text": sent[0]} if sent else fields

    def _form(
        self, session: Session, request: Request, values: Mapping[str, str], refusal: Refusal = NOT_REFUSED
    ) -> Reply:
        return self._page(
            session,
            request,
            "spreadsheets.html",
            refusal.status,
            values=values,
            errors=refusal.errors,
            not_enough=refusal.code == NOT_ENOUGH_STOCK.code,
            files=FILES,
        )

    def _page(self, session: Session, request: Request, template: str, status: int, **values: Any) -> Reply:
        more = {"kinds": KINDS, "modes": MODES, **values}
        return self._console.page(session, request, template, status, here=SPREADSHEETS, **more)


def wished(fields: Mapping[str, str]) -> ImportCsv:
    """The import that a form asks for, as a dry run. Raises `validation_failed`."""
    text = fields.get("text", "").removeprefix(MARK)
    if not text.strip():
        raise invalid({"text": [said("choose a file of at most 400 kB, or paste the rows")]})
    raw = {name: fields.get(name) or None for name in ("kind", "mode", "reason")}
    return check(ImportCsv, {**raw, "text": text})
