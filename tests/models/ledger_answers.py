"""What the inventory service answers, in the words of the model of the ledger."""

from tests.models.ledger import Answer


def change_answer(answer: Answer) -> Answer:
    """What is compared of a change."""
    return {
        "version": answer["version"],
        "entries": [entry(made) for made in answer["entries"]],
        "pools": [pool_now(pool) for pool in answer["pools"]],
        "affected": [[variant["variant_gid"], variant["before"], variant["after"]] for variant in answer["affected"]],
        "hold": answer["hold"] and answer["hold"]["id"],
    }


def refusal(body: Answer) -> str:
    """A refusal in the words of the model."""
    if body["code"] == "not_enough_stock":
        return f"{body['code']} in {body['pool_id']}: {body['available']}, not {body['requested']}"
    return body["code"]


def entry(data: Answer) -> Answer:
    """What is compared of an entry of the ledger."""
    names = "id version hold_id pool_id kind delta held_delta reverts_id balance_after held_after".split()
    return {name: data[name] for name in names}


def pool_now(pool: Answer) -> Answer:
    """What is compared of a pool."""
    return {name: pool[name] for name in ("id", "on_hand", "held", "buffer", "available", "version")}
