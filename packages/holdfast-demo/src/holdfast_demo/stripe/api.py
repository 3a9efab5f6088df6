"""The operations of the API: their parameters and their functions, lists in pages, and expanded members."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import stripe.params as v1
import stripe.params.v2.core as v2
from stripe.params import checkout

from holdfast_demo.stripe import accounts, disputes, payments, refunds, sessions
from holdfast_demo.stripe.errors import StripeRefusal, missing
from holdfast_demo.stripe.processor_state import ProcessorState, list_object, moment
from holdfast_demo.stripe.store import StripeObject

MAX_EXPAND_DEPTH = 4

KINDS = {
    "payment_intent": "payment_intent",
    "latest_charge": "charge",
    "charge": "charge",
    "transfer": "transfer",
    "application_fee": "application_fee",
    "source_transaction": "charge",
    "originating_transaction": "charge",
    "transfer_reversal": "transfer_reversal",
    "source_refund": "refund",
}
"""The members that can be expanded, and the kinds of objects that they name."""

PAGING = frozenset("limit starting_after ending_before expand".split())


def list_page(processor: ProcessorState, kind: str, path: str, params: StripeObject) -> StripeObject:
    """A page of the list of a kind, newest first. Raises `StripeRefusal`.

    params    the position and size of the page, and the values that members must have
    """
    max_count = params.get("limit", 10)
    if not 1 <= max_count <= 100:
        raise StripeRefusal("Limit can range between 1 and 100.", code="parameter_invalid_integer", param="limit")
    after, before = params.get("starting_after", ""), params.get("ending_before", "")
    if after and before:
        raise StripeRefusal("Only one of starting_after and ending_before can be given.", param="ending_before")
    created = params.get("created", {})
    bounds = {"gte": created, "lte": created} if isinstance(created, int) else created
    equal = {name: value for name, value in params.items() if name not in PAGING | {"created"}}
    result = processor.store.page(kind, equal, bounds, after=after, before=before, max_count=max_count)
    answer = list_object(result.things, path, result.has_more)
    return with_expansions(processor, answer, params.get("expand", ()))


def with_expansions(processor: ProcessorState, thing: StripeObject, paths: Sequence[str]) -> StripeObject:
    """An object with some members expanded, such as `payment_intent.latest_charge`. Raises `StripeRefusal`."""
    for path in paths:
        parts = path.split(".")
        if len(parts) > MAX_EXPAND_DEPTH:
            raise StripeRefusal("You cannot expand more than 4 levels of a property.", param="expand", checked=True)
        _expand(processor, thing, parts, path)
    return thing


def _expand(processor: ProcessorState, thing: StripeObject, parts: Sequence[str], path: str) -> None:
    name, *deeper = parts
    if thing["object"] == "list" and name == "data":
        for item in cast(Sequence[StripeObject], thing["data"]):
            _expand(processor, item, deeper, path)
        return
    if thing["object"] == "checkout.session" and name == "line_items":
        thing[name] = list_object(thing["_items"], f"/v1/checkout/sessions/{thing['id']}/line_items")
        return
    if name not in KINDS or name not in thing:
        message = f"This property cannot be expanded ({path})."
        raise StripeRefusal(message, param="expand", checked=True)
    value = thing[name]
    if isinstance(value, str):
        value = processor.store.find(KINDS[name], value)
        if value is None:
            raise missing(KINDS[name], thing[name])
        thing[name] = value
    if deeper and value is not None:
        _expand(processor, value, deeper, path)


@dataclass(frozen=True)
class Call:
    """A parsed request.

    id        the id in its path
    account   the connected account that it is made for; empty: the platform
    """

    path: str
    id: str
    params: StripeObject
    account: str = ""


@dataclass(frozen=True)
class Operation:
    """An operation.

    path       with `{id}` in place of the id of an object
    params     the typed dictionary of stripe-python
    modelled   the names in it that the double supports
    action     the function that does it
    scoped     whether it can be called for a connected account
    """

    method: str
    path: str
    params: type
    modelled: frozenset[str]
    action: Callable[[ProcessorState, Call], StripeObject]
    scoped: bool = False

    @property
    def is_v2(self) -> bool:
        return self.path.startswith("/v2/")


def _get(kind: str) -> Callable[[ProcessorState, Call], StripeObject]:
    return lambda processor, call: _expanded(processor, processor.store.get(kind, call.id), call)


def _list(kind: str) -> Callable[[ProcessorState, Call], StripeObject]:
    return lambda processor, call: list_page(processor, kind, call.path, call.params)


def _do(
    action: Callable[[ProcessorState, StripeObject], StripeObject],
) -> Callable[[ProcessorState, Call], StripeObject]:
    return lambda processor, call: _expanded(processor, action(processor, call.params), call)


def _expanded(processor: ProcessorState, thing: StripeObject, call: Call) -> StripeObject:
    return with_expansions(processor, thing, call.params.get("expand", ()))


def _expire(processor: ProcessorState, call: Call) -> StripeObject:
    return _expanded(processor, sessions.expire(processor, call.id), call)


def _reversals(processor: ProcessorState, call: Call) -> StripeObject:
    processor.store.get(payments.TRANSFER, call.id)
    return list_page(processor, refunds.REVERSAL, call.path, {**call.params, "transfer": call.id})


def _event_v2(processor: ProcessorState, call: Call) -> StripeObject:
    event = processor.store.get("v2.core.event", call.id)
    return {**event, "created": moment(event["created"]), "data": event["_data"]}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PAGE = PAGING
_SESSION = _words(
    "mode ui_mode success_url cancel_url customer_email client_reference_id line_items locale "
    "allowed_payment_method_types expires_at payment_intent_data metadata submit_type expand"
)
_ACCOUNT = _words(
    "type controller capabilities email country metadata business_type business_profile default_currency "
    "tos_acceptance expand"
)
_ACCOUNT_V2 = _words("configuration contact_email dashboard defaults display_name identity include metadata")
_LINK = _words("account type refresh_url return_url collection_options expand")
_LINK_V2 = _words("account use_case")
_REFUND = _words("amount charge payment_intent reason metadata refund_application_fee reverse_transfer expand")
_DISPUTE = _words("evidence submit expand")
_EXPAND, _INCLUDE, _NONE = _words("expand"), _words("include"), _words("")
_CREATED = _PAGE | {"created"}

OPERATIONS = (
    Operation("POST", "/v1/accounts", v1.AccountCreateParams, _ACCOUNT, _do(accounts.create_v1)),
    Operation("GET", "/v1/accounts/{id}", v1.AccountRetrieveParams, _EXPAND, lambda processor, call: accounts.v1(accounts.find(processor, call.id))),
    Operation("POST", "/v1/account_links", v1.AccountLinkCreateParams, _LINK, _do(accounts.link_v1)),
    Operation("POST", "/v1/checkout/sessions", checkout.SessionCreateParams, _SESSION, _do(sessions.create)),
    Operation("GET", "/v1/checkout/sessions", checkout.SessionListParams, _CREATED | {"payment_intent", "status"}, _list(sessions.KIND)),
    Operation("GET", "/v1/checkout/sessions/{id}", checkout.SessionRetrieveParams, _EXPAND, _get(sessions.KIND)),
    Operation("POST", "/v1/checkout/sessions/{id}/expire", checkout.SessionExpireParams, _EXPAND, _expire),
    Operation("GET", "/v1/checkout/sessions/{id}/line_items", checkout.SessionLineItemListParams, _NONE, lambda processor, call: sessions.line_items(processor, call.id)),
    Operation("GET", "/v1/payment_intents", v1.PaymentIntentListParams, _CREATED, _list(payments.INTENT)),
    Operation("GET", "/v1/payment_intents/{id}", v1.PaymentIntentRetrieveParams, _EXPAND, _get(payments.INTENT)),
    Operation("GET", "/v1/charges", v1.ChargeListParams, _CREATED | {"payment_intent"}, _list(payments.CHARGE)),
    Operation("GET", "/v1/charges/{id}", v1.ChargeRetrieveParams, _EXPAND, _get(payments.CHARGE)),
    Operation("POST", "/v1/refunds", v1.RefundCreateParams, _REFUND, _do(refunds.create)),
    Operation("GET", "/v1/refunds", v1.RefundListParams, _CREATED | {"charge", "payment_intent"}, _list(refunds.KIND)),
    Operation("GET", "/v1/refunds/{id}", v1.RefundRetrieveParams, _EXPAND, _get(refunds.KIND)),
    Operation("GET", "/v1/disputes", v1.DisputeListParams, _CREATED | {"charge", "payment_intent"}, _list(disputes.KIND)),
    Operation("GET", "/v1/disputes/{id}", v1.DisputeRetrieveParams, _EXPAND, _get(disputes.KIND)),
    Operation("POST", "/v1/disputes/{id}", v1.DisputeUpdateParams, _DISPUTE, lambda processor, call: _expanded(processor, disputes.answer(processor, call.id, call.params), call)),
    Operation("POST", "/v1/disputes/{id}/close", v1.DisputeCloseParams, _EXPAND, lambda processor, call: _expanded(processor, disputes.decide(processor, call.id, "lost"), call)),
    Operation("GET", "/v1/transfers", v1.TransferListParams, _CREATED | {"destination"}, _list(payments.TRANSFER)),
    Operation("GET", "/v1/transfers/{id}", v1.TransferRetrieveParams, _EXPAND, _get(payments.TRANSFER)),
    Operation("GET", "/v1/transfers/{id}/reversals", v1.TransferReversalListParams, _PAGE, _reversals),
    Operation("GET", "/v1/application_fees", v1.ApplicationFeeListParams, _CREATED | {"charge"}, _list(payments.FEE)),
    Operation("GET", "/v1/application_fees/{id}", v1.ApplicationFeeRetrieveParams, _EXPAND, _get(payments.FEE)),
    Operation("GET", "/v1/balance", v1.BalanceRetrieveParams, _NONE, lambda processor, call: payments.balance(processor, call.account), scoped=True),
    Operation("GET", "/v1/events", v1.EventListParams, _CREATED | {"type"}, _list("event")),
    Operation("GET", "/v1/events/{id}", v1.EventRetrieveParams, _NONE, _get("event")),
    Operation("POST", "/v2/core/accounts", v2.AccountCreateParams, _ACCOUNT_V2, lambda processor, call: accounts.create_v2(processor, call.params)),
    Operation("GET", "/v2/core/accounts/{id}", v2.AccountRetrieveParams, _INCLUDE, lambda processor, call: accounts.v2(accounts.find_v2(processor, call.id), call.params.get("include", ()))),
    Operation("POST", "/v2/core/account_links", v2.AccountLinkCreateParams, _LINK_V2, lambda processor, call: accounts.link_v2(processor, call.params)),
    Operation("GET", "/v2/core/events/{id}", v2.EventRetrieveParams, _NONE, _event_v2),
)  # fmt: skip


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(path.replace("{id}", "(?P<id>[A-Za-z0-9_]+)"))


_PATTERNS: list[tuple[Operation, Any]] = [(operation, _pattern(operation.path)) for operation in OPERATIONS]


def find(method: str, path: str) -> tuple[Operation, str]:
    """The operation of a request, and the id in its path. Raises `StripeRefusal`."""
    for operation, pattern in _PATTERNS:
        if operation.method == method and (matched := pattern.fullmatch(path)):
            return operation, matched.groupdict().get("id", "")
    message = f"Unrecognized request URL ({method}: {path}). Please see https://stripe.com/docs"
    raise StripeRefusal(message, status=404, checked=True)
