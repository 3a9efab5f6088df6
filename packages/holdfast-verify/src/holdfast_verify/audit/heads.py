"""The audit of the head log: it finds each entry that takes back what an earlier one says of the same log."""

from collections.abc import Mapping

from holdfast_verify.audit.audit import MAX_FINDINGS, AuditFinding
from holdfast_verify.audit.entries import EarlierLog
from holdfast_verify.formats.signed_note import Checkpoint, InvalidNote, encode_base64, parse_checkpoint


class HeadAudit:
    """The audit of one head log. `read` is called with each entry.

    heads          the last head of each log, by origin; at first those of the head log before
    earlier_log    the first entry, if it is the head of a head log: the one before a restored backup
    """

    def __init__(self, heads: Mapping[str, Checkpoint] | None = None) -> None:
        self.findings: list[AuditFinding] = []
        self.further_findings = 0
        self.entries = 0
        self.earlier_log: EarlierLog | None = None
        self.heads = dict(heads or {})

    def read(self, entry: bytes) -> None:
        """Compare the next entry with the earlier ones."""
        index, self.entries = self.entries, self.entries + 1
        try:
            head = parse_checkpoint(entry.decode())
        except (InvalidNote, UnicodeDecodeError):
            self._add("form", f"Entry {index} is not the head of a log.", index)
            return
        if index == 0 and "/log/heads" in head.origin:
            self.earlier_log = EarlierLog(head.origin, head.size, encode_base64(head.root))
        before = self.heads.get(head.origin)
        if before is None or head.size > before.size:
            self.heads[head.origin] = head
        elif head.size < before.size:
            message = f"Entry {index}: the log {head.origin} has {head.size:,} entries, after it had {before.size:,}."
            self._add("heads", message, index)
        else:
            difference = "again" if head == before else "with another root"
            message = f"Entry {index}: the log {head.origin} has {head.size:,} entries as before, {difference}."
            self._add("heads", message, index)

    def end(self) -> None:
        """Judge what only the end of the log shows: nothing."""

    def _add(self, rule: str, message: str, index: int) -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(AuditFinding("fraud", rule, message, index))
        else:
            self.further_findings += 1
