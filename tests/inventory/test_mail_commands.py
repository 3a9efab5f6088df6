"""The commands on mails to merchants: listing those that were not sent, and trying them again."""

from pathlib import Path

import psycopg
import pytest

from tests.inventory.operators import ShopOperator

WAITS = """
    insert into mails (kind, thread, recipient, arguments)
    values ('low_stock', 'low stock 1 1', %s, '{"pool_id": 1, "merchant_id": 1}') returning id
"""


@pytest.fixture
def operator(inventory_url: str, tmp_path: Path) -> ShopOperator:
    return ShopOperator(inventory_url, tmp_path)


def test_mails_to_merchants_that_failed_or_wait_are_listed_and_tried_again(
    operator: ShopOperator, inventory_url: str
) -> None:
    with psycopg.connect(inventory_url) as connection:
        [(waiting,)] = connection.execute(WAITS, ["ada@example.com"]).fetchall()
        [(failed,)] = connection.execute(WAITS, ["ben@example.com"]).fetchall()
        connection.execute(
            "update mails set outcome = 'failed', ended_at = now(), attempts = 1, error = '550 no such person'"
            " where id = %s",
            [failed],
        )

    before = [line.split("\t") for line in operator.run("mail", "list").splitlines()]
    retried = operator.run("mail", "retry", str(failed))
    after = [line.split("\t") for line in operator.run("mail", "list").splitlines()]

    assert [(*row[:5], row[-1]) for row in before] == [
        (str(failed), "failed", "low_stock", "ben@example.com", "1", "550 no such person"),
        (str(waiting), "waiting", "low_stock", "ada@example.com", "0", "-"),
    ]
    assert retried == f"Mail {failed} is tried again.\n"
    assert [row[:2] for row in after] == [[str(waiting), "waiting"], [str(failed), "waiting"]]


def test_an_unknown_mail_is_refused_in_one_line(operator: ShopOperator) -> None:
    refusal = operator.run("mail", "retry", "7", status=1)

    assert refusal.startswith("No mail with the id 7 waits or has failed. This was looked for in ")
