"""The tables of the page on prices are those of a real sale and of the policy."""

from tests.docs.sale import PAGE, history, page_with_tables, policy_table, sale_table
from tests.helpers.events_service import Service


async def test_the_page_on_prices_shows_a_real_sale_and_every_price_of_it_is_what_the_policy_gives(
    service: Service,
) -> None:
    rows = await history(service)

    assert [row.price for row in rows] == [row.by_policy for row in rows]
    assert {row.reason for row in rows} == {"init", "registration", "tick", "manual_change", "other"}
    assert page_with_tables({"policy": policy_table(), "sale": sale_table(rows)}) == PAGE.read_text(encoding="utf-8")
