"""Demo payments as a process of their own, with the API that tests of other processes use."""

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import stripe

from tests.demo.stripe.processor import ACCOUNT_V2

KEY = "sk_test_of_the_tests"


@pytest.fixture
def address(tmp_path: Path) -> Generator[str]:
    program = [sys.executable, "-m", "holdfast_demo.stripe", "--port", "0", "--for-tests", "--key", KEY]
    with subprocess.Popen([*program, "--file", str(tmp_path / "file")], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.terminate()


def test_the_demo_processor_is_controlled_from_another_process(address: str) -> None:
    client = stripe.StripeClient(KEY, base_addresses={"api": address})
    account = client.v2.core.accounts.create(ACCOUNT_V2)
    with httpx2.Client(base_url=f"{address}/_test", trust_env=False) as tests:

        def ask(path: str, /, **arguments: Any) -> Any:
            answer = tests.post(f"/{path}", json=arguments)
            assert answer.status_code == 200, answer.text
            return answer.json()

        ask("finish", account=account.id)
        price = {"currency": "eur", "unit_amount": 2500, "product_data": {"name": "Life drawing"}}
        params: Any = {
            "mode": "payment",
            "line_items": [{"quantity": 1, "price_data": price}],
            "payment_intent_data": {"application_fee_amount": 250, "transfer_data": {"destination": account.id}},
            "success_url": "https://events.example/done",
        }
        ask("plan", kind="after", path="/checkout")
        with pytest.raises(stripe.APIError):
            client.v1.checkout.sessions.create(params, {"idempotency_key": "checkout:7"})
        session = client.v1.checkout.sessions.create(params, {"idempotency_key": "checkout:7"})
        ask("webhooks", hold=True)
        ask("pay", session=session.id)
        assert [session["id"] for session in ask("things", kind="checkout.session")] == [session.id]
        assert ask("books")["balances"][account.id] == {"eur": 2250}
        refusal = tests.post("/pay", json={"session": session.id})
        assert refusal.status_code == 400
        assert tests.post("/pay", json={"sesion": session.id}).status_code == 400
        ask("advance", seconds=5)


def test_the_api_for_tests_is_off_by_default() -> None:
    program = [sys.executable, "-m", "holdfast_demo.stripe", "--port", "0"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        answer = httpx2.post(f"{address}/_test/books", trust_env=False)
        process.terminate()

    assert answer.status_code == 401
