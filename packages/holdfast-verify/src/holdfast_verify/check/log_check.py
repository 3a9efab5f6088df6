"""The check of the logs of an event or a queue, or of the head logs: all that are there, oldest first."""

import asyncio
from itertools import pairwise

from msgspec import structs

from holdfast_verify.audit.audit import Audit, AuditFinding, HeadAudit
from holdfast_verify.audit.entries import AuditedEntry
from holdfast_verify.check.catching_up import LogFollower
from holdfast_verify.check.generations import (
    Generations,
    LogGeneration,
    ReadLog,
    check_succession,
    find_generations,
    read_log,
)
from holdfast_verify.check.log_reader import EarlierHead, earlier_head_of, head_in_mail_line, open_head
from holdfast_verify.check.log_source import HttpLog, LogSource, without_generation
from holdfast_verify.check.options import CheckProgress, Options
from holdfast_verify.check.promise_watch import PromiseWatch
from holdfast_verify.check.public_counts import compare_counts
from holdfast_verify.check.report import VerificationReport, figures_of, head_text, key_text
from holdfast_verify.check.stored_heads import (
    MAX_WAIT_SECONDS,
    PublishedHeads,
    SavedHead,
    check_cosignatures,
    check_freeze_proof,
    check_in_head_log,
    check_published_heads,
    check_saved_head,
    is_head_log,
    parse_witnesses,
    read_published_heads,
    read_saved_head,
)
from holdfast_verify.check.trusted_key import BadSignature, TrustedKey
from holdfast_verify.formats.entries import timestamp
from holdfast_verify.formats.signed_note import Checkpoint


class LogCheck:
    """One check of the logs of an event or queue. `run` makes the report.

    watch       looks for the promise of a receipt; None: no receipt is checked
    follower    reads what is logged after the check; None: the newest log is not whole, or has ended
    """

    def __init__(
        self,
        source: LogSource,
        options: Options,
        key: TrustedKey,
        progress: CheckProgress,
        watch: PromiseWatch | None = None,
    ) -> None:
        self._source, self._options, self._key, self._progress = source, options, key, progress
        self._witnesses = parse_witnesses(options.witnesses)
        self._has_newest = without_generation(source.name) == source.name
        self.watch = watch
        self.follower: LogFollower | None = None
        self.report = VerificationReport(f"Log {source.name}", checked={"key": key_text(key)})

    async def run(self) -> VerificationReport:
        """Check the logs. Raises `VerificationError` if that cannot be done."""
        report = self.report
        try:
            generations = await find_generations(self._source, self._key)
        except BadSignature as error:
            report.findings.append(AuditFinding("fraud", "signature", str(error)))
            return report
        origin = report.origin = generations.newest.origin
        saved_head = self._read_saved_head()
        published_heads = await self._read_published_heads(origin)
        if published_heads:
            generations = await self._read_grown_head(generations, published_heads)
        newest = generations.newest
        report.checked["head"] = head_text(newest.head.checkpoint)
        logs = await self._read_logs(generations, saved_head, published_heads or PublishedHeads())
        self._report_source(origin)
        report.findings += generations.findings
        report.not_checked += generations.not_checked
        saved_head_findings = self._check_saved_head(saved_head, logs)
        report.findings += saved_head_findings
        self._check_mailed_head(logs)
        if published_heads:
            self._report_published(published_heads, generations)
        for log in logs:
            self._report_log(log, is_newest=log is logs[-1])
        self._check_successions(logs)
        await self._check_freezes(logs)
        await self._compare_counts(logs[-1])
        await self._check_head_log(newest)
        report.figures = figures_of(logs[-1].audit)
        self._report_unchecked(logs)
        if self._options.saved_head and logs[-1].hashes.is_whole and not saved_head_findings:
            self._options.saved_head.write_text(newest.head.note, encoding="utf-8")
        return report

    def _read_saved_head(self) -> SavedHead | None:
        file = self._options.saved_head
        saved_head = read_saved_head(file, self._key) if file else None
        if saved_head:
            self.report.checked["saved head"] = head_text(saved_head.checkpoint)
        return saved_head

    async def _read_published_heads(self, origin: str) -> PublishedHeads | None:
        if not self._options.reads_head_log or is_head_log(origin):
            return None
        try:
            return await read_published_heads(self._source, origin, self._key, self._progress)
        except BadSignature as error:
            return PublishedHeads(findings=[AuditFinding("fraud", "signature", str(error))])

    async def _read_grown_head(self, generations: Generations, published_heads: PublishedHeads) -> Generations:
        """The logs again, if the head log has larger heads of the newest one: it may have grown meanwhile."""
        for attempt in range(MAX_WAIT_SECONDS):
            newest = generations.newest
            largest = published_heads.largest(newest.origin)
            if largest is None or largest.size <= newest.size:
                break
            if attempt:
                self._progress.wait(f"The head log has a head of {largest.size:,} entries; waiting for it.")
                await asyncio.sleep(1)
            head = open_head(await newest.source.get("checkpoint"), self._key, "The head of the log")
            if head.checkpoint.origin != newest.origin:  # a further log has begun meanwhile
                return await find_generations(self._source, self._key)
            generations.logs[-1] = LogGeneration(newest.source, head)
        return generations

    async def _read_logs(
        self, generations: Generations, saved_head: SavedHead | None, published_heads: PublishedHeads
    ) -> list[ReadLog]:
        logs, heads = list[ReadLog](), dict[str, Checkpoint]()
        mailed_head = head_in_mail_line(self._options.mail_line) if self._options.mail_line else None
        for generation in generations.logs:
            earlier_heads = published_heads.up_to(generation)
            earlier_heads += [mailed_head] if mailed_head else []
            if saved_head and saved_head.checkpoint.origin == generation.origin:
                earlier_heads.append(earlier_head_of(saved_head.checkpoint))
            audit = HeadAudit(heads) if is_head_log(generation.origin) else Audit(generation.origin)
            log = await read_log(generation, audit, earlier_heads, self._progress, self._watch_entry)
            if isinstance(audit, HeadAudit):
                heads = audit.heads
            logs.append(log)
        self._begin_following(logs[-1])
        for log in logs:
            log.audit.end()
        return logs

    def _watch_entry(self, index: int, content: bytes, entry: AuditedEntry | None) -> None:
        if self.watch:
            self.watch.read(index, entry)

    def _begin_following(self, newest_log: ReadLog) -> None:
        audit = newest_log.audit
        if not isinstance(audit, Audit) or not isinstance(newest_log.generation.source, HttpLog):
            return
        if newest_log.hashes.is_whole and audit.opening and not audit.closing:
            self.follower = LogFollower(newest_log.generation.source, self._key, audit, newest_log.hashes.end)
            if self.watch:
                self.follower.readers.append(self.watch.read)

    def _report_source(self, origin: str) -> None:
        named = self._source.origin
        if named and without_generation(origin) != without_generation(named):
            message = f"The log at {named} calls itself {origin}."
            self.report.findings.append(AuditFinding("notice", "form", message))

    def _check_saved_head(self, saved_head: SavedHead | None, logs: list[ReadLog]) -> list[AuditFinding]:
        if saved_head is None:
            return []
        return [
            *([saved_head.finding] if saved_head.finding else []),
            *check_saved_head(saved_head.checkpoint, logs, has_newest=self._has_newest),
        ]

    def _check_mailed_head(self, logs: list[ReadLog]) -> None:
        """Compare the line of a mail: one of the logs must begin with it."""
        if not self._options.mail_line:
            return
        mailed_head = head_in_mail_line(self._options.mail_line)
        self.report.checked["mail"] = f"{mailed_head.size:,} entries, {mailed_head.digits}"
        contradictions = [log.hashes.contradicted.get(mailed_head) for log in logs]
        if all(contradictions) and (finding := contradictions[-1]):
            self.report.findings.append(finding)

    def _report_published(self, published_heads: PublishedHeads, generations: Generations) -> None:
        findings = check_published_heads(published_heads, generations.logs, has_newest=self._has_newest)
        count = sum(map(len, published_heads.heads.values()))
        self.report.checked["heads"] = f"{count:,} of this log are in the head log, and were compared with it"
        self.report.findings += findings

    def _report_log(self, log: ReadLog, *, is_newest: bool) -> None:
        """Add what is wrong with one log."""
        heads_of_head_log = [finding for head, finding in log.hashes.contradicted.items() if self._is_published(head)]
        findings = [
            *log.hashes.findings,
            *heads_of_head_log,
            *log.audit.findings,
            *log.drawn_list.findings(log.origin),
        ]
        self.report.findings += [
            finding if is_newest else structs.replace(finding, log=log.origin) for finding in findings
        ]
        self.report.further += log.audit.further_findings

    def _is_published(self, head: EarlierHead) -> bool:
        return head.name.startswith("entry ")

    def _check_successions(self, logs: list[ReadLog]) -> None:
        """Compare each log with the one before it."""
        for before, after in pairwise(logs):
            succession = check_succession(before, after)
            self.report.findings += succession.findings
            self.report.not_checked += [succession.not_checked] if succession.not_checked else []
            if after.drawn_list.earlier_origin:
                self.report.findings += after.drawn_list.differences(before.drawn_list, before.origin)
        if earlier := logs[0].drawn_list.earlier_origin:
            message = f"The log repeats the freeze of {earlier}, which is not here to be compared."
            self.report.findings.append(AuditFinding("notice", "draw", message))

    async def _check_freezes(self, logs: list[ReadLog]) -> None:
        """Compare the freeze of each list with what witnesses cosigned."""
        for log in logs:
            result = await check_freeze_proof(
                log.generation.source, log.origin, log.drawn_list, self._key, self._witnesses
            )
            self.report.checked |= result.checked
            self.report.findings += result.findings

    async def _compare_counts(self, newest_log: ReadLog) -> None:
        audit, report = newest_log.audit, self.report
        if not isinstance(audit, Audit):
            return
        if self.follower:
            result = await compare_counts(self.follower, self._progress)
            report.findings += [result.finding] if result.finding else []
            report.not_checked += [result.not_compared] if result.not_compared else []
            if result.compared:
                report.checked["page"] = result.compared
        elif audit.closing:
            at = timestamp(audit.closing.at)
            report.not_checked.append(
                f"The log ended at {at} ({audit.closing.reason}). What happened since is in no log."
            )
        else:
            report.not_checked.append("The counts on the page were not compared with the log.")

    async def _check_head_log(self, newest: LogGeneration) -> None:
        if is_head_log(newest.origin):
            result = check_cosignatures(newest.head.note, self._witnesses)
        else:
            result = await check_in_head_log(
                newest.source, newest.head.checkpoint, self._key, self._witnesses, self._progress
            )
        self.report.checked |= result.checked
        self.report.findings += result.findings
        self.report.not_checked += result.not_checked

    def _report_unchecked(self, logs: list[ReadLog]) -> None:
        """Add what was not checked, and how to check it."""
        options, not_checked = self._options, self.report.not_checked
        oldest = logs[0].audit.opening if isinstance(logs[0].audit, Audit) else None
        if oldest and (oldest.seated or oldest.waiting):
            not_checked.append(
                f"{oldest.seated:,} seats were taken and {oldest.waiting:,} people waited before the log began. "
                "How they got there is in no log."
            )
        if not self._has_newest:
            not_checked.append(
                "Later logs, if there are any, were not read: give the address without the number at its end."
            )
        if "saved head" not in self.report.checked and not options.mail_line:
            sentence = "No earlier head was compared, so a log that was rewritten is not found. "
            not_checked.append(
                sentence + "This head is saved now, for the next time."
                if options.saved_head
                else sentence
                + "Save the head with --head for the next time, or give the line of a mail with --mail-line."
            )
        if not options.reads_head_log and not is_head_log(self.report.origin):
            not_checked.append("The heads that the service has published were not compared: --head-log does.")
        if not self._witnesses:
            not_checked.append("No witness was asked whether others are shown the same: --witness names one.")
        if not self._key.is_pinned:
            not_checked.append(
                "The key is the one that the log itself serves: compare it with another person, or give it with --key."
            )
