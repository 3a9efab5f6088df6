"""The checks of `holdfast verify`: of a log, of a receipt, of a proof file."""

import re
from pathlib import Path

import httpx2

from holdfast_verify.audit.audit import AuditFinding
from holdfast_verify.audit.entries import ArrivalEntry
from holdfast_verify.check.log_check import LogCheck
from holdfast_verify.check.log_source import (
    LOG_PATH,
    DirectoryLog,
    HttpLog,
    LogSource,
    MissingFile,
    VerificationError,
    address_of_origin,
    http_client,
    log_address,
    without_generation,
)
from holdfast_verify.check.options import CheckProgress, Options
from holdfast_verify.check.promise_watch import STATUS_TEXTS
from holdfast_verify.check.receipt_check import check_receipt_file, read_own_receipt
from holdfast_verify.check.receipts import ForeignReceiptFile, check_proof, parse_file
from holdfast_verify.check.report import VerificationReport, key_text
from holdfast_verify.check.trusted_key import key_of
from holdfast_verify.formats.entries import timestamp
from holdfast_verify.formats.proof_file import ProofFile

_REGISTRATION = re.compile(r"https?://[^/?#]+/registrations/[^/?#]+/?(?:[?#].*)?")


async def check(target: str, options: Options, progress: CheckProgress) -> VerificationReport:
    """Check what a target names: an address of a log, of a page with a link to it, or of a registration; a file.

    Raises `VerificationError` if it cannot be checked.
    """
    async with http_client() as client:
        thing: LogSource | ForeignReceiptFile | ProofFile
        if _REGISTRATION.fullmatch(target):
            thing, options = await _read_registration(client, target), options._replace(registration=target)
        elif _is_address(target):
            thing = HttpLog(client, await log_address(client, target))
        else:
            thing = _local_target(target)
        if (options.witnesses or options.reads_head_log) and (options.is_offline or isinstance(thing, ProofFile)):
            raise VerificationError("Witnesses and the head log are checked with a log: give its address.")
        match thing:
            case ProofFile():
                return await _check_proof_file(client, thing, options)
            case ForeignReceiptFile():
                source = None if options.is_offline else _log_of_receipt(client, thing, options.log)
                return await check_receipt_file(client, source, thing, options, progress)
            case _:
                return await LogCheck(thing, options, await key_of(thing, options.key), progress).run()


def _is_address(target: str) -> bool:
    return target.startswith(("http://", "https://"))


async def _read_registration(client: httpx2.AsyncClient, link: str) -> ForeignReceiptFile:
    try:
        return await read_own_receipt(client, link)
    except MissingFile as error:
        raise VerificationError(
            f"The service shows no registration with a receipt at {link}. Check the receipt that you have saved."
        ) from error


def _local_target(target: str) -> LogSource | ForeignReceiptFile | ProofFile:
    """What a path names. Raises `VerificationError`."""
    path = Path(target)
    if path.is_dir():
        return DirectoryLog(path)
    if not path.is_file():
        raise VerificationError(f"{target} is neither an address nor a file.")
    return parse_file(path.read_bytes())


def _log_of_receipt(client: httpx2.AsyncClient, file: ForeignReceiptFile, log: str | None) -> LogSource:
    if log and not _is_address(log):
        return DirectoryLog(Path(log))
    address = log or file.receipt.content.log
    if not _is_address(address):
        raise VerificationError("The receipt does not name the address of a log.")
    return HttpLog(client, address)


async def _check_proof_file(client: httpx2.AsyncClient, proof: ProofFile, options: Options) -> VerificationReport:
    origin = proof.checkpoint.partition("\n")[0]
    if options.is_offline and not options.key:
        raise VerificationError("A proof file is checked offline with the key of the log: give it as --key.")
    key = await key_of(HttpLog(client, address_of_origin(origin)), options.key)
    report = VerificationReport(f"Proof of entry {proof.index} of {origin}", checked={"key": key_text(key)})
    entry, report.findings = check_proof(proof, key)
    if options.log:
        named = LOG_PATH.fullmatch(options.log.partition("://")[2])
        if named is None or without_generation(named[1]) != without_generation(origin):
            message = f"The proof is of another log, {origin}."
            report.findings.append(AuditFinding("fraud", "path", message))
    else:
        report.not_checked.append(
            f"Whether you meant this log, {origin}, was not compared: --log names the one that you mean."
        )
    if isinstance(entry, ArrivalEntry):
        got = STATUS_TEXTS[entry.outcome] if entry.outcome else "an entry"
        report.checked["entry"] = f"number {entry.number:,}, {got}, at {timestamp(entry.at)}"
    report.not_checked += [
        "The log was not read: whether the order is right, and what came later for this number, is unknown.",
        "Whose number it is, was not checked: a receipt shows that.",
    ]
    return report
