"""Spreadsheets: pools, their variants and the history as CSV, out; pools and variants in, after a dry run."""

from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from holdfast.accounts.sessions import Session
from holdfast.inventory.console.frame import Console, merchant
from holdfast.inventory.console.pools.file_text import FileText, text_in_encoding, text_of
from holdfast.inventory.problems import NOT_ENOUGH_STOCK
from holdfast.inventory.spreadsheets.model import MAX_ROWS, CsvPage, ExportCsv, ImportCsv, ImportReport
from holdfast.kit.contract.bounds import bound_without_strangers
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import check
from holdfast.kit.contract.csv_cells import BYTE_ORDER_MARK, with_separator
from holdfast.kit.contract.messages import message, translatable
from holdfast.kit.contract.problems import invalid
from holdfast.kit.http.answers import Download
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.operations.slots import MAX_WAITING, SLOT_TIMEOUT_SECONDS, Slots
from holdfast.kit.pages import forms
from holdfast.kit.pages.form_files import MULTIPART_TYPE, FileLimits, UploadedFile
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, try_form
from holdfast.kit.pages.language import language_of

SPREADSHEETS = "/console/spreadsheets"

MAX_FILE_BYTES = 400_000
"""The most bytes of a file. Its text comes again with the form that confirms it, with other line breaks."""

MAX_CONCURRENT_FILES = 2
"""How many spreadsheets of one shop are read at the same time."""

READ_SPREADSHEETS = bound_without_strangers(
    name="Spreadsheets that are read",
    service="inventory",
    total="none",
    tenant=f"{MAX_CONCURRENT_FILES}; {MAX_WAITING} wait",
)

NOT_READ = FileText("")

FILES = {
    "pools": (translatable("Pools"), translatable("Quantities and limits")),
    "members": (translatable("Packs"), translatable("How many units one sale of each pack takes")),
    "history": (translatable("History"), translatable("All changes of stock")),
}
"""The files to download: their names, and what is in each."""

KINDS = {
    "": translatable("Tell by its columns"),
    "pools": translatable("Pools"),
    "members": translatable("Packs of pools"),
}
"""What a file can list. A file tells it by its columns, unless it is chosen."""
COLUMNS = {
    "name": translatable("Name"),
    "unit": translatable("Counted in"),
    "quantity": translatable("On hand"),
    "buffer": translatable("Safety stock"),
    "low_stock_at": translatable("Low stock at"),
    "pool": translatable("Pool"),
    "units_per_sale": translatable("Units per sale"),
    "title": translatable("Title"),
}
"""What people call the columns of a file. Columns of ids and versions keep their names."""

MODES = {
    "set": translatable("Replace the stock"),
    "adjust": translatable("Add to the stock"),
}


class SpreadsheetsPage:
    """Answers requests for spreadsheets."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._export, self._import = console.run["export_csv"], console.run["import_csv"]
        self._slots = Slots(READ_SPREADSHEETS, MAX_CONCURRENT_FILES, timeout=SLOT_TIMEOUT_SECONDS)

    def routes(self) -> list[Route]:
        return [
            self._console.route(SPREADSHEETS, "spreadsheets", self.answer, "POST"),
            *(
                self._console.route(f"{SPREADSHEETS}/{kind}.csv", f"{kind}_csv", partial(self.file, kind))
                for kind in FILES
            ),
        ]

    async def file(self, kind: str, session: Session, request: Request) -> Reply:
        """A spreadsheet as a file."""
        command = check(ExportCsv, {"kind": kind, "limit": MAX_ROWS})
        first: CsvPage = await self._export(merchant(session), command)
        return Download(
            200,
            media_type=b"text/csv; charset=utf-8",
            filename=f"{kind}.csv",
            parts=self._parts(merchant(session), command, first, language_of(request).csv_format.separator),
        )

    async def _parts(self, caller: Caller, command: ExportCsv, part: CsvPage, separator: str) -> AsyncIterator[bytes]:
        """Yield the file in parts. Every page has the names of the columns; the file has them once."""
        yield f"{BYTE_ORDER_MARK}{with_separator(part.csv, separator)}".encode()
        while part.next_cursor:
            part = await self._export(caller, replace(command, cursor=part.next_cursor))
            yield with_separator(part.csv.partition("\n")[2], separator).encode()

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the files and the form, then the preview of an import, then run it."""
        if request.method != "POST":
            return self._form(session, request, {"kind": "", "mode": "set"})
        fields, file = await self._read(session, request)
        fields_and_text: dict[str, str] = {**fields}
        file_text = NOT_READ

        async def answer() -> Reply:
            nonlocal file_text
            if file or fields.get("content"):
                file_text = _text_of(file) if file else text_in_encoding(fields["content"], fields.get("encoding", ""))
                fields_and_text["text"] = file_text.text
            return await self._import_or_preview(session, request, fields_and_text, file_text)

        outcome = await try_form(answer, NOT_ENOUGH_STOCK)
        return (
            self._form(session, request, fields_and_text, outcome, file_text)
            if isinstance(outcome, FormRefusal)
            else outcome
        )

    async def _import_or_preview(
        self, session: Session, request: Request, fields: Mapping[str, str], file_text: FileText
    ) -> Reply:
        """Import a text if its preview was confirmed; else show the preview."""
        command = import_command(fields)
        if "sure" in fields:
            command = replace(command, dry_run=False)
            result = await forms.run_once(self._import, merchant(session), command, fields, ImportReport)
        else:
            result = await self._import(merchant(session), command)
        return self._page(
            session,
            request,
            "pools/spreadsheets_import.html",
            200,
            done=result,
            values=fields,
            read=file_text,
            once=forms.new_token(),
        )

    async def _read(self, session: Session, request: Request) -> tuple[Mapping[str, str], UploadedFile | None]:
        """The fields of the form, and the chosen file."""
        signed_in = self._console.signed_in
        if not request.headers.get(b"content-type", b"").lower().startswith(MULTIPART_TYPE.encode()):
            return await signed_in.read(session, request), None
        files: list[UploadedFile] = []

        async def take(file: UploadedFile) -> None:
            files.append(file)

        async with self._slots.slot_of(session.person.owner):
            fields = await signed_in.read_files(session, request, FileLimits(1, MAX_FILE_BYTES), take)
        return fields, files[0] if files else None

    def _form(
        self,
        session: Session,
        request: Request,
        values: Mapping[str, str],
        refusal: FormRefusal = NOT_REFUSED,
        file_text: FileText = NOT_READ,
    ) -> Reply:
        return self._page(
            session,
            request,
            "pools/spreadsheets.html",
            refusal.status,
            values=values,
            read=file_text,
            errors=refusal.errors,
            not_enough=refusal.code == NOT_ENOUGH_STOCK.code,
            files=FILES,
        )

    def _page(self, session: Session, request: Request, template: str, status: int, **values: Any) -> Reply:
        more = {"kinds": KINDS, "modes": MODES, "columns": COLUMNS, **values}
        return self._console.page(session, request, template, status, here=SPREADSHEETS, **more)


def _text_of(file: UploadedFile) -> FileText:
    """The text of a file. Raises `validation_failed` if the file is too large, or is no text."""
    if file.content is None:
        raise invalid({"text": [message("choose a file of at most 400 kB: this one is larger")]})
    return text_of(file.content)


def import_command(fields: Mapping[str, str]) -> ImportCsv:
    """The import of a form, as a dry run. Raises `validation_failed`."""
    text = fields.get("text", "").removeprefix(BYTE_ORDER_MARK)
    if not text.strip():
        raise invalid({"text": [message("choose a file of at most 400 kB, or paste the rows")]})
    raw = {name: fields.get(name) or None for name in ("mode", "reason")}
    return check(ImportCsv, {**raw, "kind": fields.get("kind") or kind_of(text), "text": text})


def kind_of(text: str) -> str:
    """What a file lists, told by the names of its columns: only packs have units per sale."""
    return "members" if "units_per_sale" in text.lstrip().partition("\n")[0].lower() else "pools"
