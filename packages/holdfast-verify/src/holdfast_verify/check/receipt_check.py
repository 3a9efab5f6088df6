"""The check of a receipt: by itself, with its log, and with the registration that the service shows."""

import datetime as dt
from typing import NamedTuple

import httpx2

from holdfast_verify.audit.audit import AuditFinding
from holdfast_verify.check.catching_up import Difference, wait_until_equal
from holdfast_verify.check.log_check import LogCheck
from holdfast_verify.check.log_source import LogSource, MissingFile, VerificationError, fetch
from holdfast_verify.check.options import CheckProgress, Options
from holdfast_verify.check.promise_watch import STATUS_TEXTS, PromiseWatch
from holdfast_verify.check.receipts import ForeignReceiptFile, check_receipt, parse_file
from holdfast_verify.check.report import VerificationReport, key_text
from holdfast_verify.check.trusted_key import key_of
from holdfast_verify.formats.entries import timestamp

NO_LINK = "The page of the registration was not compared with the log: give its link as --registration."


class PublicStatus(NamedTuple):
    """What the service shows as the status of a registration; `removed`: it shows none."""

    status: str

    def __str__(self) -> str:
        return STATUS_TEXTS.get(self.status, self.status)


async def check_receipt_file(
    client: httpx2.AsyncClient,
    source: LogSource | None,
    file: ForeignReceiptFile,
    options: Options,
    progress: CheckProgress,
) -> VerificationReport:
    """Check a receipt; with the source of its log also whether its promise was kept, and what came later."""
    promise = file.receipt.content
    key = await key_of(source, options.key)
    findings = check_receipt(file, options.person, key)
    watch = PromiseWatch(promise)
    check: LogCheck | None = None
    report = VerificationReport("")
    if source and not findings:
        check = LogCheck(source, options, key, progress, watch)
        report = await check.run()
        if report.origin:
            findings += watch.findings(dt.datetime.now(dt.UTC))
    report.subject = f"Receipt for {promise.subject}, received at {timestamp(promise.at)}"
    checked = {"key": key_text(key), "person": _person_text(file, options, findings)}
    if report.origin:
        checked["log"] = watch.summary()
        for number, sentence in enumerate(watch.later_changes, start=1):
            checked[f"later {number}"] = sentence
        checked["now"] = watch.last_status()
    else:
        report.not_checked.append("The log was not read: whether it has the arrival, and what came later, is unknown.")
    if check and report.origin:
        await _compare_registration(client, check, file, options, report, progress)
    report.checked = {**checked, **report.checked}
    report.findings = [*findings, *report.findings]
    return report


def _person_text(file: ForeignReceiptFile, options: Options, findings: list[AuditFinding]) -> str:
    person = options.person or file.person
    if not person:
        return "not checked: the file does not name the id of the person; give it as --person"
    is_open = not any(finding.rule in ("signature", "commitment") for finding in findings)
    return f"the receipt was {'' if is_open else 'not '}made for the id {person}"


async def _compare_registration(
    client: httpx2.AsyncClient,
    check: LogCheck,
    file: ForeignReceiptFile,
    options: Options,
    report: VerificationReport,
    progress: CheckProgress,
) -> None:
    """Compare the status that the service shows on the page of the registration with the one in the log."""
    watch = check.watch
    if watch is None or file.receipt.content.ticket is not None:
        return
    if not options.registration:
        report.not_checked.append(NO_LINK)
        return
    if check.follower is None:
        report.not_checked.append("The page of the registration was not compared: the log has ended, or is wrong.")
        return
    link = options.registration

    if await _read_status(client, link, file, watch.status) is None:
        report.not_checked.append("The page of the registration was not compared: it does not tell its status.")
        return

    async def read_public() -> PublicStatus:
        return PublicStatus(await _read_status(client, link, file, watch.status) or "")

    def logged() -> PublicStatus:
        return PublicStatus(watch.status or "pending")

    sentence = "The page of the registration shows {public}. The log leads to {logged}."
    result = await wait_until_equal(check.follower, read_public, logged, sentence, progress)
    if isinstance(result, Difference):
        report.checked["registration"] = f"{result.public_value}: not what the log says"
        report.findings.append(_difference(result))
    else:
        report.checked["registration"] = f"{result.value}, and so says the log"


def _difference(result: Difference) -> AuditFinding:
    """What is wrong if the service shows something else than its log leads to."""
    if result.public_value == PublicStatus("removed"):  # also after an event, for people who had their data erased
        message = (
            f"The service shows no registration behind the link. The log leads to {result.logged_value}. "
            "If you have not had your data erased, this receipt is the evidence."
        )
        return AuditFinding("notice", "registration", message)
    return AuditFinding("fraud", "registration", f"{result} The service does not do what its log says.")


async def _read_status(
    client: httpx2.AsyncClient, link: str, file: ForeignReceiptFile, logged_status: str | None
) -> str | None:
    """The status that the page of a registration shows; None: it tells none. Raises `VerificationError`."""
    try:
        file_now = await read_own_receipt(client, link)
    except MissingFile:
        # The service forgets rejections a while after the event.
        return "rejected" if logged_status == "rejected" else "removed"
    if file_now.receipt.content.person != file.receipt.content.person:
        raise VerificationError("The link of --registration is of another registration than the receipt.")
    return file_now.status


async def read_own_receipt(client: httpx2.AsyncClient, link: str) -> ForeignReceiptFile:
    """The receipt that the page of a registration offers. Raises `VerificationError`."""
    address = link.partition("#")[0].partition("?")[0].rstrip("/")
    file = parse_file(await fetch(client, f"{address}?receipt"))
    if not isinstance(file, ForeignReceiptFile):
        raise VerificationError(f"{address} is not the link of a registration.")
    return file
