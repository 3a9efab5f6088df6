"""The pages on which people pay, as browsers get them."""

from tests.demo.stripe.processor import ProcessorScene

CARD = {"card": "4242 4242 4242 4242", "name": "Ada", "email": "ada@example.com"}


async def test_a_person_pays_and_returns_to_the_page_they_came_from(scene: ProcessorScene) -> None:
    session = await scene.session()
    assert session.url is not None

    page = await scene.http.get(session.url)
    paid = await scene.http.post(session.url, data=CARD)

    assert page.status_code == 200
    assert "€25.00" in page.text
    assert "Life drawing" in page.text
    assert "no money moves" in page.text
    assert "This is a demonstration" in page.text
    assert "https://events.example/back" in page.text
    assert paid.status_code == 303
    assert paid.headers["location"] == f"https://events.example/done?session={session.id}"
    seen = await scene.do(scene.client.v1.checkout.sessions.retrieve, session.id)
    assert seen.payment_status == "paid"
    assert seen.customer_details is not None
    assert seen.customer_details.email == "ada@example.com"


async def test_the_page_to_pay_cannot_be_framed_and_its_form_leads_only_to_the_shop(scene: ProcessorScene) -> None:
    session = await scene.session()

    page = await scene.http.get(f"/pay/{session.id}")

    assert page.headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert "form-action 'self' https://events.example;" in page.headers["content-security-policy"]


async def test_a_declined_card_is_reported_and_can_be_replaced(scene: ProcessorScene) -> None:
    session = await scene.session()

    declined = await scene.http.post(f"/pay/{session.id}", data={**CARD, "card": "4000000000000002"})
    wrong = await scene.http.post(f"/pay/{session.id}", data={"card": "1234"})
    paid = await scene.http.post(f"/pay/{session.id}", data=CARD)

    assert declined.status_code == 402
    assert "Your card was declined." in declined.text
    assert "This is not the number of a card." in wrong.text
    assert paid.status_code == 303


async def test_a_person_who_pays_too_late_reads_so(scene: ProcessorScene) -> None:
    ended, paid = await scene.session(), await scene.session()
    await scene.do(scene.client.v1.checkout.sessions.expire, ended.id)
    scene.processor.pay(paid.id)

    late = await scene.http.post(f"/pay/{ended.id}", data=CARD)
    again = await scene.http.post(f"/pay/{paid.id}", data=CARD)
    unknown = await scene.http.post("/pay/cs_test_none", data=CARD)

    assert late.status_code == 410
    assert "no longer open for payment" in late.text
    assert "This is paid." in again.text
    assert unknown.status_code == 404
    assert len(scene.processor.things("charge")) == 1


async def test_a_session_that_expired_while_its_page_was_open_cannot_be_paid(scene: ProcessorScene) -> None:
    session = await scene.session()
    scene.processor.webhooks.hold = True

    scene.processor.clock.advance(1861)
    late = await scene.http.post(f"/pay/{session.id}", data=CARD)

    assert late.status_code == 410
    assert scene.processor.balance("cardholders") == {}


async def test_titles_of_products_are_escaped_on_the_page_to_pay(scene: ProcessorScene) -> None:
    title = "</dt><script>alert(1)</script>"
    price = {"currency": "eur", "unit_amount": 2500, "product_data": {"name": title}}
    session = await scene.session(line_items=[{"quantity": 2, "price_data": price}])

    page = await scene.http.get(f"/pay/{session.id}")

    assert "<script>" not in page.text
    assert "2 \u00d7" in page.text
    assert "€50.00" in page.text


async def test_the_books_of_the_demo_are_on_its_first_page(scene: ProcessorScene) -> None:
    empty = await scene.http.get("/")
    assert "Demo payments: no money moves." in empty.text
    account = await scene.account()
    session = await scene.session(account)
    payment = scene.processor.pay(session.id)["payment_intent"]
    back = {"payment_intent": payment, "amount": 500, "reverse_transfer": True}
    await scene.do(scene.client.v1.refunds.create, back)

    page = await scene.http.get("/")

    assert "Nothing was paid yet." in empty.text
    for text in (
        "to <bdi>ada@example.com</bdi>",
        "€25.00",
        "of which €2.50 is the fee of the platform",
        "€5.00 went back",
        "€17.50",
        "€1.88",
    ):
        assert text in page.text
