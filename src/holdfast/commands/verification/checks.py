"""The checks of `holdfast verify`: of a log, of a receipt, of a proof file."""

import datetime as dt
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import httpx2

from holdfast.commands.verification.drawn_list import DrawnList
from holdfast.commands.verification.freeze_proof import check_freeze_proof
from holdfast.commands.verification.head_log import (
    check_cosignatures,
    check_in_head_log,
    is_head_log,
    parse_witnesses,
    read_listed_heads,
)
from holdfast.commands.verification.log_reader import (
    EarlierHead,
    SignedHead,
    mailed_head,
    open_head,
    read_entries,
    saved_head,
)
from holdfast.commands.verification.log_source import (
    DirectoryLog,
    HttpLog,
    LogSource,
    VerificationError,
    address_of_origin,
    http_client,
    log_address,
    without_generation,
)
from holdfast.commands.verification.public_counts import compare_counts
from holdfast.commands.verification.receipts import (
    PromiseWatch,
    ReceiptFile,
    check_proof,
    check_receipt,
    parse_file,
)
from holdfast.commands.verification.report import VerificationReport, figures_of, head_text, key_text
from holdfast.commands.verification.trusted_key import BadSignature, TrustedKey, key_of
from holdfast.events.audit.audit import Audit, AuditFinding
from holdfast.events.audit.entries import ArrivalEntry, EarlierLog
from holdfast.events.audit.heads import HeadAudit
from holdfast.events.log.entries import timestamp
from holdfast.kit.tlog.proof_file import ProofFile
from holdfast.kit.tlog.signed_note import Checkpoint, encode_base64

CountEntries = Callable[[int, int], object]
"""Is called with a number of entries that were read, and the number of all."""


class Options(NamedTuple):
    """How something is checked.

    key            the trusted key as a vkey; None: the one that the log serves
    saved_head     the file of the head that was saved before, and is saved now
    person         for whom a receipt is
    log            where the log of a receipt is: an address or a directory; None: where the receipt says
    is_offline     whether a receipt is checked without its log
    mail_line      the line of a mail about the head that the log had then
    witnesses      the vkeys of the witnesses that must have cosigned the head log
    reads_head_log whether every head of the log is looked up in the head log
    """

    key: str | None = None
    saved_head: Path | None = None
    person: str | None = None
    log: str | None = None
    is_offline: bool = False
    mail_line: str | None = None
    witnesses: Sequence[str] = ()
    reads_head_log: bool = False


async def check(target: str, options: Options, progress: CountEntries) -> VerificationReport:
    """Check what a target names: the address of a log or of a page with a link to it, a directory, or a file.

    Raises `VerificationError` if it cannot be checked.
    """
    async with http_client() as client:
        thing = HttpLog(client, await log_address(client, target)) if _is_address(target) else _local_target(target)
        if (options.witnesses or options.reads_head_log) and (options.is_offline or isinstance(thing, ProofFile)):
            raise VerificationError("Witnesses and the head log are checked with a log: give its address.")
        match thing:
            case ProofFile():
                return await _check_proof_file(client, thing, options)
            case ReceiptFile():
                source = None if options.is_offline else _log_of_receipt(client, thing, options.log)
                return await _check_receipt(source, thing, options, progress)
            case _:
                return await _check_log(thing, options, progress)


def _is_address(target: str) -> bool:
    return target.startswith(("http://", "https://"))


def _local_target(target: str) -> LogSource | ReceiptFile | ProofFile:
    """What a path names. Raises `VerificationError`."""
    path = Path(target)
    if path.is_dir():
        return DirectoryLog(path)
    if not path.is_file():
        raise VerificationError(f"{target} is neither an address nor a file.")
    return parse_file(path.read_bytes())


def _log_of_receipt(client: httpx2.AsyncClient, file: ReceiptFile, log: str | None) -> LogSource:
    address = log or file.receipt.content.log
    return HttpLog(client, address) if _is_address(address) else DirectoryLog(Path(address))


async def _check_log(
    source: LogSource,
    options: Options,
    progress: CountEntries,
    watch: PromiseWatch | None = None,
    drawn_list: DrawnList | None = None,
) -> VerificationReport:
    """Check a log. With a watch, its promise is looked for. A drawn list is filled."""
    report = VerificationReport(f"Log {source.name}")
    witnesses = parse_witnesses(options.witnesses)
    key = await key_of(source, options.key)
    report.checked["key"] = key_text(key)
    try:
        head = open_head(await source.get("checkpoint"), key, "The head of the log")
    except BadSignature as error:
        report.findings.append(AuditFinding("fraud", "signature", str(error)))
        return report
    report.checked["head"] = head_text(head.checkpoint)
    saved = _saved_head(options.saved_head, key)
    report.origin = origin = head.checkpoint.origin
    earlier_heads = await _earlier_heads(source, head.checkpoint, saved, key, options, report)
    audit, drawn_list = HeadAudit() if is_head_log(origin) else Audit(origin), drawn_list or DrawnList()

    def read(index: int, entry: bytes) -> None:
        parsed = audit.read(entry)
        drawn_list.read(entry, parsed, audit)
        if watch:
            watch.read(index, parsed)

    hashes = await read_entries(
        source,
        head.checkpoint,
        earlier_heads,
        read,
        lambda count: progress(count, head.checkpoint.size),
    )
    compared, differences = None, list[AuditFinding]()
    if watch is None and hashes.is_whole and isinstance(source, HttpLog) and isinstance(audit, Audit):
        compared, differences = await compare_counts(source, key, audit, hashes.end)
    audit.end()
    if source.origin and without_generation(origin) != without_generation(source.origin):
        message = f"The log at {source.origin} calls itself {origin}."
        report.findings.append(AuditFinding("notice", "form", message))
    report.findings += hashes.findings
    lost = list[AuditFinding]()
    if saved and saved.checkpoint.origin != origin:
        lost = _check_predecessor(saved.checkpoint, audit.earlier_log)
    report.findings += lost
    report.findings += audit.findings
    report.findings += drawn_list.findings(origin)
    frozen = await check_freeze_proof(source, origin, drawn_list, key, witnesses)
    report.findings += await _check_repeated(source, origin, drawn_list, options, progress)
    report.findings += differences
    report.further = audit.further_findings
    if compared:
        report.checked["page"] = compared
    report.figures = figures_of(audit)
    if isinstance(audit, HeadAudit):
        result = check_cosignatures(head.note, witnesses)
    else:
        result = await check_in_head_log(source, head.checkpoint, key, witnesses)
    for part in (frozen, result):
        report.checked |= part.checked
        report.findings += part.findings
    if options.saved_head and hashes.is_whole and hashes.extends_earlier and not lost:
        _save_head(options.saved_head, head)
    return report


async def _earlier_heads(
    source: LogSource,
    head: Checkpoint,
    saved: SignedHead | None,
    key: TrustedKey,
    options: Options,
    report: VerificationReport,
) -> list[EarlierHead]:
    """The heads with which a log must begin: the saved one, that of a mail, and those in the head log."""
    heads: list[EarlierHead] = []
    if options.saved_head:
        report.checked["saved head"] = head_text(saved.checkpoint) if saved else "there was none before"
    if saved and saved.checkpoint.origin == head.origin:
        heads.append(saved_head(saved.checkpoint))
    if options.mail_line:
        mailed = mailed_head(options.mail_line)
        report.checked["mail"] = f"{mailed.size:,} entries, {mailed.digits}"
        heads.append(mailed)
    if options.reads_head_log and not is_head_log(head.origin):
        earlier = await read_listed_heads(source, head, key)
        report.checked["heads"] = f"{len(earlier):,} of this log are in the head log, and were compared with it"
        heads += earlier
    return heads


async def _check_repeated(
    source: LogSource, origin: str, repeated: DrawnList, options: Options, progress: CountEntries
) -> list[AuditFinding]:
    """What is wrong with a list that a log repeats, and with the log before it, whose list it is."""
    if repeated.earlier_origin is None:
        return []
    earlier = source.earlier(origin)
    if earlier is None:
        message = f"The log repeats the freeze of {repeated.earlier_origin}, which is not here to be compared."
        return [AuditFinding("notice", "draw", message)]
    drawn_list = DrawnList()
    report = await _check_log(earlier, _of_earlier_log(options), progress, drawn_list=drawn_list)
    return [*report.findings, *repeated.differences(drawn_list, report.origin)]


def _of_earlier_log(options: Options) -> Options:
    return options._replace(saved_head=None, mail_line=None)


def _save_head(file: Path, head: SignedHead) -> None:
    file.write_text(head.note, encoding="utf-8")


def _saved_head(file: Path | None, key: TrustedKey) -> SignedHead | None:
    """The head that an earlier check has saved. Raises `VerificationError`."""
    if file is None or not file.exists():
        return None
    return open_head(file.read_bytes(), key, f"The head in {file}")


def _check_predecessor(saved: Checkpoint, after: EarlierLog | None) -> list[AuditFinding]:
    """What is wrong with a log that follows another one, of which a head was saved."""
    if after is None or after.origin != saved.origin:
        raise VerificationError(f"The saved head is of another log, {saved.origin}. Name another file for --head.")
    if saved.size > after.size:
        message = (
            f"The saved head of {saved.origin} has {saved.size:,} entries, but this log says that the other ended with "
            f"{after.size:,}: the later ones are lost, as after a restored backup."
        )
        return [AuditFinding("fraud", "consistency", message, 0)]
    if saved.size == after.size and encode_base64(saved.root) != after.root:
        return [AuditFinding("fraud", "consistency", f"This log names another end of {saved.origin}.", 0)]
    return []


async def _check_receipt(
    source: LogSource | None, file: ReceiptFile, options: Options, progress: CountEntries
) -> VerificationReport:
    """Check a receipt; with the source of its log also whether its promise was kept."""
    promise = file.receipt.content
    key = await key_of(source, options.key)
    findings = check_receipt(file, options.person, key)
    watch = PromiseWatch(promise)
    report = VerificationReport("")
    if source and not findings:
        report = await _check_log(source, options, progress, watch)
        # It may be in a log before the newest one.
        earlier = source.earlier(report.origin)
        while earlier and not watch.has_found:
            earlier_report = await _check_log(earlier, _of_earlier_log(options), progress, watch)
            report.findings += earlier_report.findings
            earlier = earlier.earlier(earlier_report.origin)
        findings += watch.findings(dt.datetime.now(dt.UTC))
    report.subject = f"Receipt for {promise.subject}, received at {timestamp(promise.at)}"
    whose = options.person or file.person
    is_open = not any(finding.rule in ("signature", "commitment") for finding in findings)
    opened = f"it is {'' if is_open else 'not '}for {whose}" if whose else "the file does not name it; --person does"
    place = _place(watch) if report.origin else "not looked for in the log"
    report.checked = {"key": key_text(key), "person": opened, "log": place, **report.checked}
    report.findings = [*findings, *report.findings]
    return report


def _place(watch: PromiseWatch) -> str:
    if watch.arrival is None:
        return "it was removed before it was settled" if watch.removal else "not in the log"
    outcome = (watch.placed or watch.arrival).outcome or "joined"
    return f"number {watch.arrival.number}, {outcome}, entry {watch.index}"


async def _check_proof_file(client: httpx2.AsyncClient, proof: ProofFile, options: Options) -> VerificationReport:
    origin = proof.checkpoint.partition("\n")[0]
    if options.is_offline and not options.key:
        raise VerificationError("A proof file is checked offline with the key of the log: give it as --key.")
    key = await key_of(HttpLog(client, address_of_origin(origin)), options.key)
    report = VerificationReport(f"Proof of entry {proof.index} of {origin}", checked={"key": key_text(key)})
    entry, report.findings = check_proof(proof, key)
    if isinstance(entry, ArrivalEntry):
        report.checked["entry"] = f"number {entry.number}, {entry.outcome or 'joined'}, at {timestamp(entry.at)}"
    return report
