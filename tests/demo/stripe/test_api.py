"""Refusals of the API: stripe-python raises the same errors as for Stripe."""

import json
from typing import Any

import pytest
import stripe

from holdfast_demo.stripe.errors import Fault
from tests.demo.stripe.processor import ACCOUNT_V1, ACCOUNT_V2, ProcessorScene, run_processor

DESTINATION = "payment_intent_data[transfer_data][destination]"
AMOUNT = "line_items[0][price_data][unit_amount]"
PRODUCT = "line_items[0][price_data][product_data]"
BODIES = [
    (b"[]", "application/json"),
    (b"{", "application/json"),
    (b"[" * 100_000, "application/json"),
    (b"\xff", "application/json"),
    (b"contact_email=a", "application/x-www-form-urlencoded"),
    (b"x" * 1_000_001, "application/json"),
]
VERSIONS = [
    ("latest", "/v1/balance", 400),
    ("2026-10-28.endive", "/v1/balance", 200),
    ("", "/v1/balance", 200),
    ("", "/v2/core/accounts/acct_1", 400),
]
FORMS = [b"mode=payment&mode=payment", b"mode[=1", b"mode=payment&mode[a]=1", b"%ff=1", b"a"]

SESSIONS: list[tuple[str, Any, str, str | None]] = [
    ("sucess_url", "https://a.example", "sucess_url", "parameter_unknown"),
    ("line_items.0.price_data.amount", 5, "line_items[0][price_data][amount]", "parameter_unknown"),
    ("payment_intent_data.fee", 5, "payment_intent_data[fee]", "parameter_unknown"),
    ("line_items.0.price_data.currency", None, "line_items[0][price_data][currency]", "parameter_missing"),
    ("line_items.0.price_data.product_data", None, PRODUCT, "parameter_missing"),
    ("payment_intent_data", {"transfer_data": {"amount": 5}}, DESTINATION, "parameter_missing"),
    ("success_url", None, "success_url", "parameter_missing"),
    ("line_items", None, "line_items", "parameter_missing"),
    ("mode", None, "mode", "parameter_missing"),
    ("line_items.0.quantity", None, "line_items[0]", None),
    ("line_items.0.quantity", "one", "line_items[0][quantity]", "parameter_invalid_integer"),
    ("line_items.0.price_data.unit_amount", 25.5, AMOUNT, "parameter_invalid_integer"),
    ("mode", "pay", "mode", None),
    ("locale", "klingon", "locale", None),
    ("success_url", "/done", "success_url", "url_invalid"),
    ("success_url", "javascript:alert(1)", "success_url", "url_invalid"),
    ("customer_email", "nobody", "customer_email", "email_invalid"),
    ("customer_email", "", "customer_email", "parameter_invalid_empty"),
    ("metadata", {"a" * 41: "1"}, f"metadata[{'a' * 41}]", None),
    ("metadata", {"a": "1" * 501}, "metadata[a]", None),
    ("metadata", {str(number): "1" for number in range(51)}, "metadata", None),
    ("metadata", "text", "metadata", None),
    ("line_items", "text", "line_items", None),
    ("expand", ["customer"], "expand", None),
    ("expand", ["a.b.c.d.e"], "expand", None),
]  # fmt: skip

ACCOUNTS: list[tuple[str, Any, str | None]] = [
    ("contact_mail", "a@example.com", "contact_mail"),
    ("dashboard", "big", "dashboard"),
    ("defaults.responsibilities", {"fees_collector": "application"}, "defaults.responsibilities.losses_collector"),
    ("configuration.recipient.capabilities.stripe_balance.stripe_transfers.requested", "true", None),
    ("contact_email", 7, "contact_email"),
    ("contact_email", None, "contact_email"),
    ("include", ["everything"], "include.0"),
]

AS_JSON = {"Content-Type": "application/json", "Stripe-Version": "2026-10-28.endive"}


def with_change(params: Any, path: str, value: Any) -> Any:
    """Parameters with one of them changed; None takes it away."""
    place: Any = params
    *parts, last = path.split(".")
    for part in parts:
        place = place[int(part) if part.isdecimal() else part]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return params


async def test_invalid_parameters_of_a_session_are_refused_by_name(
    scene: ProcessorScene, subtests: pytest.Subtests
) -> None:
    account = await scene.account()
    for path, value, param, code in SESSIONS:
        with subtests.test(path=path, value=value):
            params = with_change(scene.params(account), path, value)

            refusal = await scene.refuses(scene.client.v1.checkout.sessions.create, params)

            assert (refusal.status, refusal.param, refusal.code) == (400, param, code)
    assert scene.processor.things("checkout.session") == []


async def test_a_parameter_that_stripe_knows_and_we_do_not_is_refused_in_so_many_words(scene: ProcessorScene) -> None:
    params = scene.params(await scene.account(), allow_promotion_codes=True)

    refusal = await scene.refuses(scene.client.v1.checkout.sessions.create, params)

    assert refusal.message == "Demo payments do not know what Stripe does with 'allow_promotion_codes'."


async def test_invalid_parameters_of_an_account_of_version_2_are_refused(
    scene: ProcessorScene, subtests: pytest.Subtests
) -> None:
    for path, value, param in ACCOUNTS:
        with subtests.test(path=path, value=value):
            params = with_change(json.loads(json.dumps(ACCOUNT_V2)), path, value)

            refusal = await scene.refuses(scene.client.v2.core.accounts.create, params)

            assert (refusal.status, refusal.param) == (400, param or path)


async def test_a_wrong_key_is_unauthorized(scene: ProcessorScene) -> None:
    client = scene.client_with("sk_test_other_key_1234")

    error = await scene.fails(client.v1.balance.retrieve)

    assert isinstance(error, stripe.AuthenticationError)
    assert str(error.user_message) == "Invalid API Key provided: sk_test********1234"
    assert (await scene.http.get("/v1/balance")).status_code == 401


async def test_an_unknown_path_is_not_found(scene: ProcessorScene) -> None:
    refusal = await scene.refuses(scene.client.v1.customers.create, {})

    assert refusal.status == 404
    assert "POST: /v1/customers" in refusal.message


async def test_an_unknown_id_is_not_found(scene: ProcessorScene) -> None:
    refusal = await scene.refuses(scene.client.v1.checkout.sessions.retrieve, "cs_test_none")

    assert (refusal.status, refusal.code, refusal.message) == (
        404,
        "resource_missing",
        "No such checkout.session: 'cs_test_none'",
    )


async def test_a_malformed_version_of_the_api_is_refused(scene: ProcessorScene, subtests: pytest.Subtests) -> None:
    for version, path, status in VERSIONS:
        with subtests.test(version=version, path=path):
            named = {"Stripe-Version": version} if version else {}
            headers = {"Authorization": f"Bearer {scene.processor.key}", **named}

            answer = await scene.http.get(path, headers=headers)

            assert answer.status_code == status, answer.text


async def test_a_body_that_is_no_object_is_refused(scene: ProcessorScene, subtests: pytest.Subtests) -> None:
    for content, kind in BODIES:
        with subtests.test(content=content[:20], kind=kind):
            headers = {**AS_JSON, "Authorization": f"Bearer {scene.processor.key}", "Content-Type": kind}

            answer = await scene.http.post("/v2/core/accounts", content=content, headers=headers)

            assert answer.status_code in {400, 413}
            assert answer.json()["error"]["type"] == "invalid_request_error"


async def test_a_form_that_cannot_be_read_is_refused(scene: ProcessorScene, subtests: pytest.Subtests) -> None:
    kind = "application/x-www-form-urlencoded"
    headers = {"Authorization": f"Bearer {scene.processor.key}", "Content-Type": kind}
    for content in FORMS:
        with subtests.test(content=content):
            answer = await scene.http.post("/v1/checkout/sessions", content=content, headers=headers)

            assert answer.status_code == 400
            assert answer.json()["error"]["type"] == "invalid_request_error"


async def test_a_platform_without_version_2_makes_accounts_of_version_1() -> None:
    async with run_processor(accounts_v2=False) as scene:
        refusal = await scene.refuses(scene.client.v2.core.accounts.create, ACCOUNT_V2)
        made = await scene.do(scene.client.v1.accounts.create, ACCOUNT_V1)

        assert refusal.code == "accounts_v2_access_blocked"
        assert made.id.startswith("acct_")


async def test_an_outage_is_an_error_of_the_api_and_nothing_was_done(scene: ProcessorScene) -> None:
    params = scene.params(await scene.account())
    scene.processor.plan(Fault("down", "/checkout/sessions"))

    error = await scene.fails(scene.client.v1.checkout.sessions.create, params)

    assert isinstance(error, stripe.APIError)
    assert error.http_status == 503
    assert scene.processor.things("checkout.session") == []
