"""The currencies that Stripe charges in, and the amounts that it accepts.

This list is independent of the service's file of currencies: an error in one shows because the other differs. The
minimums are Stripe's for a platform with payouts in the same currency, and the maximum is that of most cards
(docs.stripe.com/currencies).
"""

from holdfast_demo.stripe.errors import StripeRefusal

ZERO_DECIMAL = frozenset("bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf".split())
THREE_DECIMAL = frozenset("bhd jod kwd omr tnd".split())
HUNDREDS = frozenset({"isk", "ugx"})
"""Currencies without a minor unit whose amounts have two decimals, which must be 00."""

SUPPORTED = (
    ZERO_DECIMAL
    | THREE_DECIMAL
    | HUNDREDS
    | frozenset(
        "usd aed afn all amd aoa ars aud awg azn bam bbd bdt bmd bnd bob brl bsd bwp byn bzd cad cdf chf cny cop "
        "crc cve czk dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gtq gyd hkd hnl htg huf idr ils inr jmd kes kgs "
        "khr kyd kzt lak lbp lkr lrd lsl mad mdl mkd mmk mnt mop mur mvr mwk mxn myr mzn nad ngn nio nok npr nzd pab "
        "pen pgk php pkr pln qar ron rsd rub sar sbd scr sek sgd shp sle sos srd std szl thb tjs top try ttd twd tzs "
        "uah uyu uzs wst xcd xcg yer zar zmw".split()
    )
)

MINIMUM = {
    "usd": 50, "aed": 200, "ars": 50, "aud": 50, "brl": 50, "cad": 50, "chf": 50, "cop": 50, "czk": 1500, "dkk": 250,
    "eur": 50, "gbp": 30, "hkd": 400, "huf": 17500, "idr": 50, "ils": 50, "inr": 50, "jpy": 50, "krw": 50, "mxn": 1000,
    "myr": 200, "nok": 300, "nzd": 50, "php": 50, "pln": 200, "ron": 200, "rub": 50, "sek": 300, "sgd": 50, "thb": 1000,
    "zar": 50,
}  # fmt: skip

MAX_AMOUNT = 999_999_999_999
"""Stripe takes amounts of at most twelve digits."""


def minor_unit_digits(currency: str) -> int:
    """How many digits the minor unit of a currency has."""
    return 0 if currency in ZERO_DECIMAL else 3 if currency in THREE_DECIMAL else 2


def require_supported(currency: str, param: str) -> str:
    """The currency in lower case. Raises `StripeRefusal` if Stripe does not charge in it."""
    small = currency.lower()
    if small not in SUPPORTED:
        currencies = ", ".join(sorted(SUPPORTED))
        raise StripeRefusal(
            f"Invalid currency: {currency}. Stripe currently supports these currencies: {currencies}", param=param
        )
    return small


def require_divisible(amount: int, currency: str, param: str) -> None:
    """Raises `StripeRefusal` if an amount of any kind has digits that Stripe requires to be 0."""
    step = _step(currency)
    if amount % step:
        message = f"Invalid {currency.upper()} amount: {amount}. It has to be divisible by {step}."
        raise StripeRefusal(message, code="parameter_invalid_integer", param=param)


def require_chargeable(amount: int, currency: str, param: str) -> None:
    """Raises `StripeRefusal` unless Stripe would charge an amount."""
    require_divisible(amount, currency, param)
    least = MINIMUM.get(currency, _step(currency))
    if amount < least:
        units, part = divmod(least, 10 ** minor_unit_digits(currency))
        text = f"{units}.{part:0{minor_unit_digits(currency)}}" if minor_unit_digits(currency) else str(units)
        message = f"The Checkout Session's total amount due must add up to at least {text} {currency}"
        raise StripeRefusal(message, code="amount_too_small", param=param)
    if amount > MAX_AMOUNT:
        message = f"The Checkout Session's total amount due must be no more than {MAX_AMOUNT} {currency}"
        raise StripeRefusal(message, code="amount_too_large", param=param)


def _step(currency: str) -> int:
    return 100 if currency in HUNDREDS else 10 if currency in THREE_DECIMAL else 1
