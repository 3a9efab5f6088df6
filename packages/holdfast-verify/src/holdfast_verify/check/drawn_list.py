"""The list of a draw, as a log has it: the entries, the freeze and the confirmations, and what is wrong with them."""

import datetime as dt
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from holdfast_verify.audit.audit import Audit, AuditFinding, HeadAudit
from holdfast_verify.audit.draw import check_cosigned_freeze, check_draw
from holdfast_verify.audit.entries import (
    AuditedEntry,
    ConfirmationsEntry,
    FreezeEntry,
    decode_foreign,
)
from holdfast_verify.formats.signed_note import Checkpoint
from holdfast_verify.formats.tree import append, leaf_hash


class DrawnList:
    """The entries of a log that may have a draw, and its list.

    freeze       its freeze; None: the log has none
    confirmed    the numbers that were confirmed before the freeze
    """

    def __init__(self) -> None:
        self.freeze: FreezeEntry | None = None
        self.confirmed = set[int]()
        self._entries: list[bytes] = []

    @property
    def earlier_origin(self) -> str | None:
        """The origin of the earlier log whose list this is; None: it is that of the log itself."""
        return self.freeze.origin if self.freeze else None

    def read(self, content: bytes, entry: AuditedEntry | None, audit: Audit | HeadAudit) -> None:
        """Look at the next entry, which an audit has just read."""
        if not isinstance(audit, Audit) or not audit.may_be_drawn:
            self._entries.clear()
            return
        self._entries.append(content)
        match entry:
            case ConfirmationsEntry(numbers=numbers) if self.freeze is None:
                self.confirmed.update(numbers)
            case FreezeEntry() if self.freeze is None:
                self.freeze = entry
            case _:
                pass

    def findings(self, origin: str) -> list[AuditFinding]:
        """What is wrong with the draw of the log with this origin. Without a draw nothing is."""
        if not any(_is_of_draw(entry) for entry in self._entries):
            return []
        try:
            entries = [decode_foreign(entry) for entry in self._entries]
        except ValueError:
            return [AuditFinding("fraud", "draw", "The draw cannot be checked: an entry of the log cannot be read.")]
        faults = check_draw(entries, origin, self._root_at)
        return [AuditFinding("fraud", "draw", fault) for fault in faults]

    def differences(self, earlier: "DrawnList", earlier_origin: str) -> Sequence[AuditFinding]:
        """What it repeats wrongly of the list that the log before it has."""
        findings: list[AuditFinding] = []
        if self.freeze != (earlier.freeze and replace(earlier.freeze, origin=earlier.freeze.origin or earlier_origin)):
            message = f"The freeze that this log repeats is not the one that {earlier_origin} has."
            findings.append(AuditFinding("fraud", "draw", message))
        if self.confirmed != earlier.confirmed:
            message = f"The confirmations that this log repeats are not those that {earlier_origin} has."
            findings.append(AuditFinding("fraud", "draw", message))
        return findings

    def cosignature_faults(self, head: Checkpoint, cosigned_at: Mapping[str, dt.datetime]) -> list[str]:
        """What is wrong with the freeze, by a head of the log that the witnesses with these names cosigned then."""
        try:
            entries = [decode_foreign(entry) for entry in self._entries]
            return check_cosigned_freeze(entries, head, cosigned_at, self._root_at)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            return []  # an entry cannot be read, as `findings` says

    def _root_at(self, size: int) -> bytes:
        return append(0, {}, [leaf_hash(entry) for entry in self._entries[:size]]).root


def _is_of_draw(entry: bytes) -> bool:
    return entry.startswith((b'{"kind":"freeze"', b'{"kind":"draw"', b'{"kind":"confirmations"')) or b'"draw":' in entry
