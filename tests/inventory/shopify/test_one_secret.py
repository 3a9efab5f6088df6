"""The client secret signs four kinds of messages: no message of one kind is accepted as one of another.

Each kind is signed here as the platform signs it, with the parts that others choose: a visitor of a storefront chooses
parameters of the proxy, the person who begins an install chooses its `state`, a merchant chooses names in webhooks.
"""

import base64
import hmac
import re
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.inventory.shopify import platform_tokens, signatures
from holdfast.inventory.shopify.platform_tokens import InvalidSessionToken
from holdfast.kit.contract.problems import Problem

SECRET = b"hush"
NOW = int(time.time())
SHOP, VICTIM = "mallory.myshopify.com", "victim.myshopify.com"
CLIENT = "client"
PLATFORMS = (
    *(("shop", SHOP), ("logged_in_customer_id", ""), ("path_prefix", "/apps/holdfast"), ("timestamp", str(NOW))),
)

Pairs = Sequence[tuple[str, str]]


def proxy_message(chosen: Pairs) -> bytes:
    """What the platform signs for a visitor who opens an address of the proxy with these parameters."""
    grouped: dict[str, list[str]] = {}
    for name, value in (*chosen, *PLATFORMS):
        grouped.setdefault(name, []).append(value)
    return "".join(sorted(f"{name}={','.join(values)}" for name, values in grouped.items())).encode()


def query_message(chosen: Mapping[str, str]) -> bytes:
    """What the platform signs of a query in which a stranger has chosen some values."""
    query = {**chosen, "shop": SHOP, "timestamp": str(NOW), "host": "YWRtaW4"}
    return signatures.query_message(query).encode()


def webhook_message(chosen: Any) -> bytes:
    return msgspec.json.encode({"shop_domain": SHOP, **chosen})


def session_message(user: str) -> bytes:
    """What the platform signs of a session token."""
    parts = ({"alg": "HS256"}, {"dest": f"https://{SHOP}", "sub": user})
    return b".".join(base64.urlsafe_b64encode(msgspec.json.encode(part)).rstrip(b"=") for part in parts)


def hex_signature(message: bytes) -> str:
    return hmac.digest(SECRET, message, "sha256").hex()


def is_webhook(message: bytes) -> bool:
    claimed = base64.b64encode(bytes.fromhex(hex_signature(message)))
    return signatures.is_webhook_signed(message, claimed, [SECRET])


def is_proxy_request(message: bytes) -> bool:
    """Whether parameters can be cut out of a message that are accepted as those of the proxy."""
    parts = re.fullmatch(rb"logged_in_customer_id=(.*)path_prefix=(.*)shop=(.*)timestamp=(.*)", message, re.DOTALL)
    if parts is None:
        return False  # no other parameters are accepted
    names = ("logged_in_customer_id", "path_prefix", "shop", "timestamp")
    pairs = [*zip(names, parts.groups(), strict=True), ("signature", hex_signature(message).encode())]
    return _is_accepted(lambda: signatures.verify_proxy_query(urlencode(pairs).encode(), [SECRET], NOW))


def is_query(message: bytes) -> bool:
    """Whether parameters can be cut out of a message that are accepted as those of an install."""
    pairs = [pair.partition(b"=")[::2] for pair in message.split(b"&")]
    cut = [
        (quote(name.replace(b"%3D", b"=")), quote(value.replace(b"%26", b"&").replace(b"%25", b"%")))
        for name, value in pairs
    ]
    query = "&".join(f"{name}={value}" for name, value in [*cut, ("hmac", hex_signature(message))])
    return _is_accepted(lambda: signatures.verify_query(query.encode(), [SECRET], NOW))


def is_session_token(message: bytes) -> bool:
    signature = base64.urlsafe_b64encode(bytes.fromhex(hex_signature(message))).rstrip(b"=")
    token = (message + b"." + signature).decode("latin-1")
    return _is_accepted(lambda: platform_tokens.verify_session_token(token, CLIENT, [SECRET], NOW))


def _is_accepted(verify: Callable[[], object]) -> bool:
    try:
        verify()
    except (Problem, InvalidSessionToken):
        return False
    return True


class Kind(NamedTuple):
    """A kind of messages: what is chosen in one, how it is made of that, and whether a message is accepted as one."""

    chosen: st.SearchStrategy[Any]
    message: Callable[[Any], bytes]
    accepts: Callable[[bytes], bool]


FORGERIES = [
    '\n{"a":"', '","myshopify_domain":"victim.myshopify.com","b":"', '"}', "~", "{", "}", "!", " ", "",
    "a", "&", "=", "&shop=victim.myshopify.com", f"1&host=x&shop={VICTIM}&state=s&timestamp={NOW}&z=",
    f"logged_in_customer_id=path_prefix=/apps/xshop={VICTIM}timestamp={NOW}", "path_prefix=/apps/x", "code", "eyJ", ".",
    "shop", "timestamp", str(NOW), "host", VICTIM, "path_prefix", "logged_in_customer_id", "%26", "%",
]  # fmt: skip
text = st.sampled_from(FORGERIES) | st.text(max_size=20)

KINDS = {
    "proxy": Kind(st.lists(st.tuples(text, text), max_size=6), proxy_message, is_proxy_request),
    "query": Kind(st.dictionaries(text, text, max_size=5), query_message, is_query),
    "webhook": Kind(st.dictionaries(text, text, max_size=5), webhook_message, is_webhook),
    "session token": Kind(text, session_message, is_session_token),
}


@pytest.mark.parametrize(("made", "reader"), [*permutations(KINDS, 2)])
@settings(max_examples=50)
@given(data=st.data())
def test_no_message_of_one_kind_is_accepted_as_one_of_another(made: str, reader: str, data: st.DataObject) -> None:
    message = KINDS[made].message(data.draw(KINDS[made].chosen))

    assert not KINDS[reader].accepts(message), message


def test_a_message_is_accepted_as_its_own_kind() -> None:
    """So the test above can fail."""
    assert is_proxy_request(proxy_message([]))
    assert is_query(query_message({"code": "c", "state": "s"}))
    assert is_webhook(webhook_message({}))
    claims = {"iss": f"https://{SHOP}/admin", "dest": f"https://{SHOP}", "aud": CLIENT, "sub": "1"}
    token = platform_tokens.sign_session_token({**claims, "exp": NOW + 60, "nbf": NOW}, SECRET)
    assert is_session_token(token.rpartition(".")[0].encode())


def test_a_visitor_cannot_have_the_proxy_sign_a_webhook() -> None:
    message = proxy_message([('\n{"a":"', f'","myshopify_domain":"{VICTIM}","b":"'), ("~", '"}')])

    assert msgspec.json.decode(message)["myshopify_domain"] == VICTIM
    assert not is_webhook(message)


def test_a_visitor_cannot_have_the_proxy_sign_the_end_of_an_install() -> None:
    message = proxy_message([("code", f"1&host=x&shop={VICTIM}&state=s&timestamp={NOW}&z=")])

    assert [part.partition(b"=")[0] for part in message.split(b"&")] == [
        b"code",
        b"host",
        b"shop",
        b"state",
        b"timestamp",
        b"z",
    ]
    assert not is_query(message)


def test_an_install_query_is_never_accepted_as_a_storefront_request() -> None:
    state = f"logged_in_customer_id=path_prefix=/apps/holdfastshop={VICTIM}timestamp={NOW}"

    assert not is_proxy_request(query_message({"code": "c", "state": state}))
