"""The signature of a webhook. The official package `shopifyapp` is the oracle where it is right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shopify_app import ShopifyApp

from holdfast.inventory.shopify.signatures import is_webhook_signed, sign_webhook

SECRET, OLD = b"hush", b"the secret before"
BODY = b'{"id":820982911946154508}'
SIGNED = b"qBvrsZF7RfB1iS6BX6IHqJTp5L911P7intnPeTPsH0I="


def oracle_believes(body: str, claimed: str) -> bool:
    app = ShopifyApp("id", SECRET.decode(), OLD.decode())
    headers = {"X-Shopify-Hmac-Sha256": claimed, "X-Shopify-Shop-Domain": "some-shop.myshopify.com"}
    return app.verify_webhook_req({"method": "POST", "headers": headers, "url": "https://a.test/w", "body": body}).ok


def test_a_body_has_the_signature_that_openssl_makes() -> None:
    assert sign_webhook(BODY, SECRET) == SIGNED
    assert is_webhook_signed(BODY, SIGNED, [SECRET])


def test_an_old_secret_is_accepted_while_it_is_configured() -> None:
    assert is_webhook_signed(BODY, sign_webhook(BODY, OLD), [SECRET, OLD])
    assert not is_webhook_signed(BODY, sign_webhook(BODY, OLD), [SECRET])
    assert not is_webhook_signed(BODY, SIGNED, [])


@pytest.mark.parametrize(
    "claimed", [b"", SIGNED[:-1], SIGNED + b"=", SIGNED + b"\n", SIGNED.lower(), b"\xff" * 44, "é".encode() * 22]
)
def test_an_invalid_signature_is_refused(claimed: bytes) -> None:
    assert not is_webhook_signed(BODY, claimed, [SECRET, OLD])


def test_a_body_that_differs_in_one_byte_is_refused() -> None:
    assert not is_webhook_signed(BODY.replace(b":", b": "), SIGNED, [SECRET])
    assert not is_webhook_signed(b"", SIGNED, [SECRET])


@given(st.text(), st.sampled_from([SECRET, OLD]))
def test_a_webhook_signed_here_is_accepted_here_and_by_the_oracle(rest: str, secret: bytes) -> None:
    body = f"{{{rest}"
    claimed = sign_webhook(body.encode(), secret)

    assert is_webhook_signed(body.encode(), claimed, [SECRET, OLD])
    assert oracle_believes(body, claimed.decode())


@given(st.text().filter(lambda body: not body.startswith("{")))
def test_a_signed_body_that_does_not_begin_as_an_object_is_no_webhook(body: str) -> None:
    claimed = sign_webhook(body.encode(), SECRET)

    assert oracle_believes(body, claimed.decode())
    assert not is_webhook_signed(body.encode(), claimed, [SECRET])


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_bytes_of_any_kind_are_refused(body: bytes, claimed: bytes) -> None:
    assert not is_webhook_signed(body, claimed, [SECRET, OLD])


def test_the_oracle_fails_for_a_signature_that_is_not_ascii() -> None:
    """It fails instead of refusing: behind it, a stranger gets the error page of the service."""
    with pytest.raises(TypeError):
        oracle_believes("{}", "é" * 44)

    assert not is_webhook_signed(b"{}", ("é" * 44).encode(), [SECRET])


def test_the_oracle_is_wrong_about_bodies_that_are_not_text() -> None:
    """It takes texts only, so that a body that is not UTF-8 cannot be given to it as it came."""
    body = b"{\xff\xfe"

    assert is_webhook_signed(body, sign_webhook(body, SECRET), [SECRET])
    assert not oracle_believes(body.decode("utf-8", "replace"), sign_webhook(body, SECRET).decode())
