"""Where people come back to from the pages of the payment processor."""

from holdfast.kit.secrets import Secret, Signer

DONE = "/payouts/done"
AGAIN = "/payouts/again"


def again_path(secret: Secret, organizer_id: int) -> str:
    """The path that makes a new link for an organizer, after one that does not work any more.

    Whoever has it can give the processor a bank account for this organizer, as with the link itself.
    """
    return f"{AGAIN}/{organizer_id}-{_signer(secret).sign(str(organizer_id))}"


def organizer_of(secret: Secret, text: str) -> int | None:
    """The organizer whom such a path names; None if this service did not make it."""
    id, _, signature = text.partition("-")
    if not (id.isascii() and id.isdigit() and len(id) < 19 and _signer(secret).accepts(id, signature)):
        return None
    return int(id)


def _signer(secret: Secret) -> Signer:
    return secret.signer("payouts", 32)
