"""The signature of the install flow: only queries signed by the platform are accepted, for 90 seconds."""

from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.inventory.shopify.signatures import query_signature, sign_query, verify_query
from holdfast.kit.contract.problems import Problem

SECRET, OLD = b"hush", b"the secret before"
SHOP = "some-shop.myshopify.com"
NOW = 1_763_640_000.5
STATE = "0.6784241404160823"
GIVEN = {"code": "0907a61c0c8d55e99db179b68161bc00", "host": "YWRtaW4", "shop": SHOP, "state": STATE}


def outcome(query: str | bytes, secrets: Sequence[bytes] = (SECRET, OLD), now: float = NOW) -> Mapping[str, str] | None:
    """The parameters; None if the query is refused."""
    try:
        return verify_query(query.encode() if isinstance(query, str) else query, secrets, now)
    except Problem as problem:
        refusal = problem
    assert (refusal.code, refusal.status) == ("invalid_signature", 401)
    return None


def test_the_signature_of_the_documented_example_is_the_documented_one() -> None:
    parameters = {"code": GIVEN["code"], "shop": SHOP, "state": STATE, "timestamp": "1337178173"}

    documented = "700e2dadb827fcc8609e9d5ce208b2e9cdaab9df07390d2cbca10d7c328fc4bf"
    assert query_signature(parameters, SECRET) == documented
    assert outcome(urlencode({**parameters, "hmac": documented}), now=1_337_178_173) == parameters


def test_an_install_query_is_accepted_with_the_present_and_the_old_secret() -> None:
    assert outcome(sign_query(GIVEN, SECRET, NOW)) == {**GIVEN, "timestamp": "1763640000"}
    assert outcome(sign_query(GIVEN, OLD, NOW)) is not None
    assert outcome(sign_query(GIVEN, OLD, NOW), (SECRET,)) is None
    assert outcome(sign_query(GIVEN, SECRET, NOW), ()) is None


@pytest.mark.parametrize(("seconds", "believed"), [(0, True), (90, True), (-90, True), (91, False), (-91, False)])
def test_a_signature_is_valid_for_90_seconds_before_and_after_its_time(seconds: float, believed: bool) -> None:
    assert (outcome(sign_query(GIVEN, SECRET, NOW), now=int(NOW) + seconds) is not None) is believed


@pytest.mark.parametrize("name", ["code", "host", "shop", "state", "timestamp"])
def test_no_parameter_can_be_changed_left_out_or_given_twice(name: str) -> None:
    pairs = parse_qsl(sign_query(GIVEN, SECRET, NOW))

    assert outcome(urlencode([(key, value + "0" if key == name else value) for key, value in pairs])) is None
    assert outcome(urlencode([(key, value) for key, value in pairs if key != name])) is None
    assert outcome(urlencode([*pairs, (name, dict(pairs)[name])])) is None


@pytest.mark.parametrize("claimed", ["", "0" * 63, "0" * 64, "é" * 64, "g" * 64, "\U0001d7d8" * 64, "0" * 64 + "\n"])
def test_an_invalid_signature_is_refused(claimed: str) -> None:
    assert outcome(f"shop={SHOP}&timestamp=1763640000&hmac={quote(claimed)}") is None


@pytest.mark.parametrize(
    "changes", [{"shop": "evil.example.com"}, {"shop": "SOME-SHOP.myshopify.com"}, {"shop": f"{SHOP}\n"}]
)
def test_a_malformed_parameter_is_refused_even_if_it_is_signed(changes: dict[str, str]) -> None:
    assert outcome(sign_query({**GIVEN, **changes}, SECRET, NOW)) is None


def test_a_timestamp_in_other_digits_is_refused_even_if_it_is_signed() -> None:
    parameters = {**GIVEN, "timestamp": "١٧٦٣٦٤٠٠٠٠"}

    assert outcome(urlencode({**parameters, "hmac": query_signature(parameters, SECRET)})) is None


def test_a_signed_message_cannot_be_split_into_other_parameters() -> None:
    """A value with `&` and `=` in it is signed escaped, so it is not the message of the parameters it spells."""
    hidden = {"a": f"1&shop=victim.myshopify.com&timestamp={int(NOW)}", "shop": SHOP, "timestamp": str(int(NOW))}
    claimed = query_signature(hidden, SECRET)

    assert outcome(urlencode({**hidden, "hmac": claimed})) == hidden
    for cut in (
        {"a": "1", "shop": "victim.myshopify.com", "timestamp": str(int(NOW))},
        {"a": "1", "shop": "victim.myshopify.com", "timestamp": f"{int(NOW)}&shop={SHOP}&timestamp={int(NOW)}"},
    ):
        assert outcome(urlencode({**cut, "hmac": claimed})) is None


@given(
    st.dictionaries(st.text(max_size=5), st.text(max_size=9), max_size=3),
    st.dictionaries(st.text(max_size=5), st.text(max_size=9), max_size=3),
)
def test_two_sets_of_parameters_have_the_same_signature_only_if_they_are_the_same(
    one: dict[str, str], other: dict[str, str]
) -> None:
    assert (query_signature(one, SECRET) == query_signature(other, SECRET)) is (one == other)


@given(st.binary())
def test_bytes_of_any_kind_are_refused(query: bytes) -> None:
    assert outcome(query) is None


@given(place=st.integers(0, 10**6), byte=st.integers(0, 255))
def test_a_query_with_a_changed_byte_never_has_other_parameters(place: int, byte: int) -> None:
    signed = bytearray(sign_query(GIVEN, SECRET, NOW).encode())
    signed[place % len(signed)] = byte

    assert outcome(bytes(signed)) in (None, {**GIVEN, "timestamp": "1763640000"})
