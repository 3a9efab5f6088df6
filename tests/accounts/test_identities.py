"""Addresses that were stored before they had one form get it, and pairs of one mailbox are named."""

from holdfast.accounts.addresses import list_different, unify
from tests.helpers.events_service import Service

STORED = {
    "aaaaaaaa": "joe@xn--mnchen-3ya.de",
    "bbbbbbbb": "ann\u200b@example.com",
    "cccccccc": "eve@example.com.",
    "dddddddd": "eve@example.com",
    "eeeeeeee": "no-mail@[127.0.0.1]",
}


async def addresses(service: Service) -> dict[str, str]:
    rows = await service.run_sql("select public_id, email from users where public_id = any(%(ids)s)", ids=[*STORED])
    return {str(id): str(email) for id, email in rows}


async def test_a_stored_address_becomes_its_identity_unless_another_account_has_it(service: Service) -> None:
    for public_id, email in STORED.items():
        await service.run_sql(
            "insert into users (public_id, email) values (%(id)s, %(email)s)", id=public_id, email=email
        )

    unified = await unify(service.database, "users")
    left = await service.database.read(lambda reader: list_different(reader, "users"))

    assert unified == (2, 0)
    assert await addresses(service) == {
        **STORED,
        "aaaaaaaa": "joe@münchen.de",
        "bbbbbbbb": "ann@example.com",
    }
    assert [address.email for address in left] == ["eve@example.com."]
    assert await unify(service.database, "users") == (0, 0)


async def test_an_account_that_is_locked_is_left_for_later(service: Service) -> None:
    """Before, the loop ended with an error after a second, and began again and again."""
    for public_id in ("aaaaaaaa", "bbbbbbbb"):
        await service.run_sql(
            "insert into users (public_id, email) values (%(id)s, %(email)s)", id=public_id, email=STORED[public_id]
        )

    async with service.database.pool.connection() as connection, connection.transaction():
        await connection.execute("select from users where public_id = 'aaaaaaaa' for update")
        unified = await unify(service.database, "users")

    assert unified == (1, 1)
    assert await unify(service.database, "users") == (1, 0)
    assert (await addresses(service))["aaaaaaaa"] == "joe@münchen.de"
