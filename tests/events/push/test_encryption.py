"""Messages are encrypted as RFC 8291 says, and signed as RFC 8292 says."""

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import ECKey

from holdfast.events.push.encryption import (
    CURVE,
    BrowserKeys,
    SenderKey,
    base64url_decode,
    base64url_encode,
    decrypt,
    encrypt,
    read_browser_keys,
    sender_keys,
)
from holdfast.kit.security.service_secret import Secret

# The example of RFC 8291, section 5 and appendix A.
MESSAGE = b"When I grow up, I want to be a watermelon"
OWN_KEY = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
BROWSER_KEY = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
P256DH = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
BODY = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95"
    "bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def private_key(text: str) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(base64url_decode(text), "big"), CURVE)


def test_a_message_is_encrypted_as_in_the_example_of_the_rfc() -> None:
    keys = read_browser_keys(P256DH, AUTH)

    body = encrypt(MESSAGE, keys, salt=base64url_decode(SALT), own_key=private_key(OWN_KEY))

    assert base64url_encode(body) == BODY
    assert decrypt(body, private_key(BROWSER_KEY), base64url_decode(AUTH)) == MESSAGE


@given(message=st.binary(max_size=3_900), auth=st.binary(min_size=16, max_size=16))
def test_every_message_is_read_by_its_browser_and_by_no_other(message: bytes, auth: bytes) -> None:
    browser, other = private_key(BROWSER_KEY), private_key(OWN_KEY)
    keys = BrowserKeys(base64url_decode(P256DH), auth)

    body = encrypt(message, keys)

    assert decrypt(body, browser, auth) == message
    assert body != encrypt(message, keys)
    with pytest.raises(ValueError, match="not encrypted for this browser"):
        decrypt(body, other, auth)


@pytest.mark.parametrize(
    ("p256dh", "auth"),
    [("", AUTH), (P256DH[:-4], AUTH), (P256DH, AUTH[:-3]), ("B" + "A" * 86, AUTH), ("é", AUTH), (P256DH, "")],
)
def test_invalid_browser_keys_are_refused(p256dh: str, auth: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_browser_keys(p256dh, auth)


def test_a_signature_for_a_push_service_names_the_sender_and_is_valid_for_less_than_a_day() -> None:
    key = SenderKey(b"x" * 32)

    kind, _, parameters = key.authorization("https://push.example", "https://events.example").partition(" ")
    token, named = parameters.split(", ")
    point = base64url_decode(named.removeprefix("k="))
    public_key = ECKey.import_key(
        {"kty": "EC", "crv": "P-256", "x": base64url_encode(point[1:33]), "y": base64url_encode(point[33:])}
    )
    read = jwt.decode(token.removeprefix("t="), public_key, algorithms=["ES256"])

    assert kind == "vapid"
    assert (read.claims["aud"], read.claims["sub"]) == ("https://push.example", "https://events.example")
    assert msgspec.json.decode(base64url_decode(token.removeprefix("t=").split(".")[0])) == {
        "typ": "JWT",
        "alg": "ES256",
    }


def test_the_key_follows_from_the_secret_and_the_old_one_stays_while_it_is_replaced() -> None:
    before, after = Secret(b"a" * 32), Secret(b"b" * 32, old=b"a" * 32)

    assert [key.public_key for key in sender_keys(before)] == [key.public_key for key in sender_keys(before)]
    assert sender_keys(after)[1].public_key == sender_keys(before)[0].public_key
    assert sender_keys(after)[0].public_key != sender_keys(before)[0].public_key
