"""The signature of the app proxy: only queries signed by the platform are accepted, for 90 seconds.

The official package `shopifyapp` is the oracle: whatever is believed here, it believes too.
"""

import itertools
import time
from collections.abc import Sequence
from urllib.parse import quote, urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from shopify_app import ShopifyApp

from holdfast.inventory.shopify.signatures import proxy_message, proxy_signature, sign_proxy_query, verify_proxy_query
from holdfast.kit.contract.problems import Problem

SECRET, OLD = b"hush", b"the secret before"
SHOP = "shop-name.myshopify.com"
NOW = 1_763_640_000.5
PREFIX = "/apps/inventory"

Pairs = list[tuple[str, str]]


def parameters(at: float = NOW, /, **changes: str) -> Pairs:
    defaults = {
        "shop": SHOP,
        "logged_in_customer_id": "",
        "path_prefix": PREFIX,
        "timestamp": str(int(at)),
    }
    return list({**defaults, **changes}.items())


def query(pairs: Pairs, secret: bytes = SECRET) -> bytes:
    """A query signed as the platform signs it."""
    return urlencode([*pairs, ("signature", proxy_signature(pairs, secret))]).encode()


def outcome(query: bytes, secrets: Sequence[bytes] = (SECRET, OLD), now: float = NOW) -> str | Problem:
    """The shop, or the refusal."""
    try:
        return verify_proxy_query(query, secrets, now)
    except Problem as problem:
        return problem


def is_believed(query: bytes, secrets: Sequence[bytes] = (SECRET, OLD), now: float = NOW) -> bool:
    result = outcome(query, secrets, now)
    if isinstance(result, Problem):
        assert (result.code, result.status) == ("invalid_signature", 401)
        return False
    assert result.endswith(".myshopify.com")
    return True


def oracle_believes(query: bytes) -> bool:
    app = ShopifyApp("id", SECRET.decode(), OLD.decode())
    url = f"https://app.example.com/storefront/availability?{query.decode('latin-1')}"
    return app.verify_app_proxy_req({"method": "GET", "headers": {}, "url": url, "body": ""}).ok


def test_the_signature_of_the_documented_example_is_the_documented_one() -> None:
    pairs = [
        ("extra", "1"),
        ("extra", "2"),
        ("shop", "shop-name.myshopify.com"),
        ("logged_in_customer_id", "1"),
        ("path_prefix", "/apps/awesome_reviews"),
        ("timestamp", "1317327555"),
    ]

    assert proxy_signature(pairs, b"hush") == "4c68c8624d737112c91818c11017d24d334b524cb5c2b8ba08daa056f7395ddb"


def test_a_query_signed_by_the_platform_names_the_shop() -> None:
    assert verify_proxy_query(query(parameters()), [SECRET], NOW) == SHOP
    assert verify_proxy_query(query(parameters(logged_in_customer_id="7245123")), [SECRET], NOW) == SHOP
    assert verify_proxy_query(query(parameters(path_prefix="/community/stock_1-a")), [SECRET], NOW) == SHOP


def test_parameters_may_come_in_any_order_and_escaping() -> None:
    name, *rest = query(parameters()).split(b"&")

    assert is_believed(b"&".join([*rest, name]))
    assert is_believed(query(parameters()).replace(b"%2F", b"/"))
    assert is_believed(query(parameters()).replace(b".myshopify", b"%2emyshopify"))


def test_an_old_secret_is_accepted_while_it_is_configured() -> None:
    signed = query(parameters(), OLD)

    assert is_believed(signed, (SECRET, OLD))
    assert not is_believed(signed, (SECRET,))
    assert not is_believed(signed, ())


@pytest.mark.parametrize(
    ("seconds", "believed"), [(0, True), (90, True), (-90, True), (90.5, False), (-90.5, False), (86_400, False)]
)
def test_a_signature_is_valid_for_90_seconds_before_and_after_its_time(seconds: float, believed: bool) -> None:
    assert is_believed(query(parameters(NOW)), now=int(NOW) + seconds) is believed


@pytest.mark.parametrize("missing", ["shop", "logged_in_customer_id", "path_prefix", "timestamp", "signature"])
def test_every_parameter_of_the_platform_is_needed(missing: str) -> None:
    pairs = [pair for pair in parameters() if pair[0] != missing]

    assert not is_believed(urlencode(pairs).encode() if missing == "signature" else query(pairs))


@pytest.mark.parametrize("twice", ["shop", "logged_in_customer_id", "path_prefix", "timestamp"])
def test_a_repeated_parameter_is_refused(twice: str) -> None:
    again = (twice, dict(parameters())[twice])

    assert not is_believed(query([*parameters(), again]))
    assert not is_believed(query(parameters()) + b"&" + urlencode([again]).encode())


def test_a_second_signature_is_refused() -> None:
    signed = query(parameters())
    second = signed.rpartition(b"&")[2]

    assert not is_believed(signed + b"&" + second)


@pytest.mark.parametrize(
    "changes",
    [
        {"shop": "evil.example.com"},
        {"shop": "Shop-Name.myshopify.com"},
        {"shop": "shop.myshopify.com.evil.example"},
        {"shop": "shop.myshopify.com\n"},
        {"shop": "-shop.myshopify.com"},
        {"shop": ""},
        {"timestamp": "176364000"},
        {"timestamp": "+1763640000"},
        {"timestamp": "1763640000.0"},
        {"timestamp": "١٧٦٣٦٤٠٠٠٠"},
        {"logged_in_customer_id": "x"},
        {"logged_in_customer_id": "1,2"},
        {"path_prefix": "/apps"},
        {"path_prefix": "/apps/a/b"},
        {"path_prefix": "/other/inventory"},
        {"path_prefix": "apps/inventory"},
    ],
)
def test_a_malformed_parameter_is_refused_even_if_it_is_signed(changes: dict[str, str]) -> None:
    assert not is_believed(query(parameters(**changes)))


@pytest.mark.parametrize(
    "claimed",
    ["", "0" * 63, "0" * 64, "0" * 65, "é" * 64, "\U0001d7d8" * 64, "g" * 64, "0" * 64 + "\n", " " + "0" * 63],
)
def test_an_invalid_signature_is_refused(claimed: str) -> None:
    assert not is_believed(f"{urlencode(parameters())}&signature={quote(claimed)}".encode())


def test_a_signature_in_upper_case_is_refused() -> None:
    head, _, claimed = query(parameters()).rpartition(b"=")

    assert not is_believed(head + b"=" + claimed.upper())


def test_raw_bytes_beyond_ascii_are_refused() -> None:
    assert not is_believed(query(parameters()) + "é".encode())
    assert not is_believed(query(parameters()).replace(b"shop=", b"shop=\xff"))
    assert not is_believed(query(parameters()).replace(b"shop=", b"shop=%ff"))


def test_the_oracle_fails_for_a_signature_that_is_not_ascii() -> None:
    """It fails instead of refusing: behind it, a stranger gets the error page of the service."""
    request = f"{urlencode(parameters(time.time()))}&signature={quote('é' * 64)}".encode()

    with pytest.raises(TypeError):
        oracle_believes(request)
    assert not is_believed(request, now=time.time())


def test_a_signed_message_cannot_be_split_into_a_request_for_another_shop() -> None:
    timestamp = str(int(time.time()))
    hidden = f"1shop=victim.myshopify.comtimestamp={timestamp}z="
    pairs = [("a", hidden), *parameters(int(timestamp), shop="attacker.myshopify.com")]
    claimed = proxy_signature(pairs, SECRET)
    # The same characters in the same order, cut at other places.
    rest = "".join(f"{name}={value}" for name, value in sorted(pairs[1:]))
    forged = [("a", "1"), ("shop", "victim.myshopify.com"), ("timestamp", timestamp), ("z", rest)]
    assert proxy_signature(forged, SECRET) == claimed
    request = urlencode([*forged, ("signature", claimed)]).encode()

    assert oracle_believes(request)
    assert not is_believed(request, now=time.time())


@pytest.mark.parametrize(
    "extra",
    [
        [("utm_source", "mail")],
        [("a", ""), ("z", "1"), ("size", "L")],
        [("extra", "1"), ("extra", "2")],
        [("variant", "gid://shopify/ProductVariant/1"), ("q", "a=b&c=d")],
        [("ö", "straße")],
    ],
    ids=str,
)
def test_further_signed_parameters_are_accepted(extra: Pairs) -> None:
    signed = query([*extra, *parameters()])

    assert verify_proxy_query(signed, [SECRET], NOW) == SHOP
    assert oracle_believes(query([*extra, *parameters(time.time())]))
    assert not is_believed(signed + b"&unsigned=1")
    assert not is_believed(query(parameters()) + b"&" + urlencode(extra).encode())


CUT = st.sampled_from(
    "shop= victim.myshopify.com timestamp= 1763640000 path_prefix= /apps/x logged_in_customer_id= a z = 1 ,".split()
)


@given(st.lists(st.tuples(st.lists(CUT, max_size=3), st.lists(CUT, max_size=8)), min_size=1, max_size=3), st.data())
def test_parameters_added_by_a_stranger_never_make_the_signed_text_name_another_shop(
    added: list[tuple[list[str], list[str]]], data: st.DataObject
) -> None:
    extra = [("".join(name) or "a", "".join(value)) for name, value in added]
    pairs = [pair for pair in extra if pair[0] not in dict(parameters())] + parameters(shop="attacker.myshopify.com")
    claimed, text = proxy_signature(pairs, SECRET), proxy_message(pairs)
    places = sorted(data.draw(st.sets(st.integers(1, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in itertools.pairwise([0, *places, len(text)])]
    cut = [(name, value) for name, _, value in (piece.partition("=") for piece in pieces)]
    result = outcome(urlencode([*cut, ("signature", claimed)]).encode())

    assert isinstance(result, Problem) or result == "attacker.myshopify.com"


def test_a_cut_that_hides_the_shop_in_a_further_parameter_is_refused() -> None:
    forged_tail = "logged_in_customer_id=path_prefix=/apps/inventoryshop=attacker.myshopify.com"
    stamp = str(int(NOW))
    hidden = f"logged_in_customer_id=path_prefix={PREFIX}shop=victim.myshopify.comtimestamp={stamp}z="
    signed = [("a", hidden), *parameters(shop="attacker.myshopify.com")]
    forged = [("a", ""), *parameters(shop="victim.myshopify.com"), ("z", f"{forged_tail}timestamp={stamp}")]
    assert proxy_signature(forged, SECRET) == proxy_signature(signed, SECRET)

    assert not is_believed(query(forged))
    assert not is_believed(query(signed))


@given(
    shop=st.from_regex(r"[a-z0-9][a-z0-9-]{0,59}\.myshopify\.com", fullmatch=True),
    customer=st.from_regex("[0-9]{0,20}", fullmatch=True),
    prefix=st.from_regex("/(a|apps|community|tools)/[A-Za-z0-9_-]{1,30}", fullmatch=True),
    secret=st.sampled_from([SECRET, OLD]),
)
def test_a_query_signed_here_is_accepted_here_and_by_the_oracle(
    shop: str, customer: str, prefix: str, secret: bytes
) -> None:
    now = time.time()
    signed = sign_proxy_query(shop, secret, now, customer=customer, prefix=prefix).encode()

    assert verify_proxy_query(signed, (SECRET, OLD), now) == shop
    assert oracle_believes(signed)


noise = st.sampled_from(
    [
        b"shop=victim.myshopify.com",
        b"logged_in_customer_id=1",
        b"timestamp=",
        b"signature=",
        b"path_prefix=%2Fa%2Fb",
        b"extra",
        b"=",
        b"",
        b"%",
        b"%00",
        b"+",
        b"#",
        b";",
        b"\xff",
    ]
)


@given(st.permutations(range(5)), st.lists(noise | st.binary(max_size=12) | st.integers(0, 4), max_size=4))
@example([0, 1, 2, 3, 4], [])
@example([4, 2, 3, 1, 0], [])
@example([0, 1, 2, 3, 4], [4])
def test_a_query_that_the_oracle_refuses_is_never_accepted(order: Sequence[int], more: Sequence[int | bytes]) -> None:
    signed = query(parameters(time.time())).split(b"&")
    pieces = [
        *(signed[place] for place in order),
        *(signed[piece] if isinstance(piece, int) else piece for piece in more),
    ]
    request = b"&".join(pieces)

    believed = is_believed(request, now=time.time())
    assert believed is (not more)
    assert not believed or oracle_believes(request)


@given(st.binary())
def test_bytes_of_any_kind_are_refused(request: bytes) -> None:
    assert not is_believed(request)


@given(place=st.integers(0, 10**6), byte=st.integers(0, 255))
def test_a_query_with_a_changed_byte_never_names_another_shop(place: int, byte: int) -> None:
    signed = bytearray(query(parameters()))
    signed[place % len(signed)] = byte

    result = outcome(bytes(signed))
    assert result == SHOP or isinstance(result, Problem)
