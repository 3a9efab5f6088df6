"""Checks when witnesses cosigned the freeze of a list: before its round, or not."""

import datetime as dt
from collections.abc import Sequence

from holdfast_verify.audit.audit import AuditFinding
from holdfast_verify.check.drawn_list import DrawnList
from holdfast_verify.check.head_log import HeadLogResult, open_head_proof
from holdfast_verify.check.log_source import LogSource, MissingFile
from holdfast_verify.check.trusted_key import BadSignature, TrustedKey
from holdfast_verify.formats import beacon
from holdfast_verify.formats.cosignature import CosignatureVerifier, find_cosignature
from holdfast_verify.formats.entries import timestamp

ONLY_KEPT_HEADS = (
    "only somebody who kept a head from before the round can tell whether another list was frozen after it"
)


async def check_freeze_proof(
    source: LogSource, origin: str, drawn_list: DrawnList, key: TrustedKey, witnesses: Sequence[CosignatureVerifier]
) -> HeadLogResult:
    """Compare the freeze of a log with what these witnesses cosigned, and the times with that of the round.

    A log that repeats the freeze of an earlier one has no proof: the earlier one has it.
    """
    if drawn_list.freeze is None or drawn_list.earlier_origin is not None:
        return HeadLogResult()
    try:
        listing = open_head_proof(await source.get("freeze-proof"), origin, key)
        cosigned_at: dict[str, dt.datetime] = {}
        for witness in witnesses:
            cosignature = find_cosignature(listing.head_log.note, witness)
            if cosignature:
                cosigned_at[witness.name] = dt.datetime.fromtimestamp(cosignature.timestamp, dt.UTC)
    except MissingFile:
        findings = [_not_cosigned(witness) for witness in witnesses]
        return HeadLogResult({"freeze": f"no witness cosigned it before the round: {ONLY_KEPT_HEADS}"}, findings)
    except (BadSignature, ArithmeticError, OSError, ValueError) as error:
        return HeadLogResult(findings=[AuditFinding("fraud", "draw", f"The proof of the freeze is wrong: {error}")])
    faults = drawn_list.cosignature_faults(listing.checkpoint, cosigned_at)
    if faults:
        return HeadLogResult(findings=[AuditFinding("fraud", "draw", fault) for fault in faults])
    round_at = timestamp(beacon.time_of(drawn_list.freeze.round))
    texts = [f"{witness} cosigned it at {timestamp(at)}" for witness, at in cosigned_at.items()]
    text = f"{', '.join(texts)}, before the round at {round_at}"
    if not witnesses:
        text = "when witnesses cosigned it was not checked: give the key of one as --witness"
    elif not texts:
        text = f"none of these witnesses cosigned it before the round: {ONLY_KEPT_HEADS}"
    missing = [_not_cosigned(witness) for witness in witnesses if witness.name not in cosigned_at]
    return HeadLogResult({"freeze": text}, missing)


def _not_cosigned(witness: CosignatureVerifier) -> AuditFinding:
    message = f"{witness.name} has not cosigned before the round that the list was frozen."
    return AuditFinding("notice", "witness", message)
