"""Connected accounts in both versions of the API, and the links to the page on which they are finished."""

from collections.abc import Collection
from typing import Any

import stripe

from holdfast_demo.stripe.errors import StripeRefusal, missing
from holdfast_demo.stripe.processor_state import LINK_SECONDS, ProcessorState, moment, with_nulls
from holdfast_demo.stripe.store import StripeObject, new_id

KIND = "account"
LINK = "account_link"
COUNTRY = "DE"
"""The country of the platform, and of accounts that name none."""
CAPABILITIES = "_wanted"
"""The member of an account with the capabilities that were requested for it. Stored accounts have it."""


def create_v1(processor: ProcessorState, params: StripeObject) -> StripeObject:
    """Create an account of version 1."""
    if "type" in params and "controller" in params:
        raise StripeRefusal("You may only specify one of these parameters: type, controller.", param="controller")
    controller = params.get("controller", {})
    capabilities = params.get("capabilities", {})
    requested = sorted(name for name, options in capabilities.items() if options.get("requested"))
    dashboard = controller.get("stripe_dashboard", {}).get("type", params.get("type", "full"))
    if dashboard in {"express", "none", "custom"} and not requested:
        raise StripeRefusal("You must request at least one capability for this account.", param="capabilities")
    account = _new(processor, 1, params.get("email"), params.get("country"), params.get("metadata", {}))
    account[CAPABILITIES] = requested
    account["_dashboard"] = dashboard
    account["_fees"] = controller.get("fees", {}).get("payer", "account")
    account["_losses"] = controller.get("losses", {}).get("payments", "stripe")
    account["_recipient_only"] = params.get("tos_acceptance", {}).get("service_agreement") == "recipient"
    return v1(processor.store.put(account))


def create_v2(processor: ProcessorState, params: StripeObject) -> StripeObject:
    """Create an account of version 2."""
    if not processor.accounts_v2:
        raise StripeRefusal("Accounts v2 is not enabled for your platform.", code="accounts_v2_access_blocked")
    configuration = params.get("configuration", {})
    recipient, merchant = configuration.get("recipient"), configuration.get("merchant")
    if (recipient or merchant) and "contact_email" not in params:
        raise StripeRefusal("contact_email is required for merchants and recipients.", param="contact_email")
    responsible = params.get("defaults", {}).get("responsibilities", {})
    if "dashboard" in params and not responsible:
        message = "defaults.responsibilities is required when a dashboard is given."
        raise StripeRefusal(message, param="defaults.responsibilities")
    if params.get("dashboard") == "express" and set(responsible.values()) & {"stripe"}:
        raise StripeRefusal(
            "An account with the Express dashboard needs fees_collector and losses_collector to be the application.",
            code="account_controller_express_dash_without_application_losses_or_fees",
        )
    country = params.get("identity", {}).get("country")
    account = _new(processor, 2, params.get("contact_email"), country, params.get("metadata", {}))
    requested = {
        "transfers": _requested(recipient, "stripe_balance", "stripe_transfers"),
        "card_payments": _requested(merchant, "card_payments"),
    }
    account[CAPABILITIES] = sorted(name for name, is_requested in requested.items() if is_requested)
    account["_configurations"] = sorted(configuration)
    account["_dashboard"] = params.get("dashboard")
    account["_fees"] = responsible.get("fees_collector")
    account["_losses"] = responsible.get("losses_collector", "stripe")
    account["_name"] = params.get("display_name")
    processor.store.put(account)
    processor.store_thin_event("v2.core.account.created", account["id"], {})
    return v2(account, params.get("include", ()))


def _requested(configuration: StripeObject | None, *path: str) -> bool:
    node: Any = (configuration or {}).get("capabilities", {})
    for name in path:
        node = node.get(name, {})
    return bool(node.get("requested"))


def _new(
    processor: ProcessorState, version: int, email: str | None, country: str | None, metadata: StripeObject
) -> StripeObject:
    account: StripeObject = {
        "id": new_id("acct"),
        "object": KIND,
        "created": processor.clock.now(),
        "metadata": metadata,
    }
    return {**account, "email": email, "_country": (country or COUNTRY).upper(), "_version": version, "_done": False}


def find(processor: ProcessorState, id: str) -> StripeObject:
    """The account with an id, of either version. Raises `StripeRefusal`."""
    account = processor.store.find(KIND, id)
    if account is None:
        message = f"The provided key does not have access to account '{id}' (or that account does not exist)."
        raise StripeRefusal(message, status=403, code="account_invalid")
    return account


def find_v2(processor: ProcessorState, id: str) -> StripeObject:
    """The account of version 2 with an id. Raises `StripeRefusal`."""
    account = processor.store.find(KIND, id)
    if account is None:
        raise missing("v2.core.account", id, "")
    if account["_version"] == 1:
        raise StripeRefusal("V1 Account ID cannot be used in V2 Account APIs.", code="v1_account_instead_of_v2_account")
    return account


def v1(account: StripeObject) -> StripeObject:
    """An account as version 1 shows it."""
    is_done, requested = account["_done"], account[CAPABILITIES]
    due = [] if is_done else ["external_account", "tos_acceptance.date", "tos_acceptance.ip"]
    requirements: StripeObject = {
        "alternatives": [],
        "current_deadline": None,
        "currently_due": due,
        "disabled_reason": None if is_done else "requirements.past_due",
        "errors": [],
        "eventually_due": due,
        "past_due": due,
        "pending_verification": [],
    }
    body: StripeObject = {
        **{name: value for name, value in account.items() if not name.startswith("_")},
        "capabilities": dict.fromkeys(requested, "active" if is_done else "inactive"),
        "charges_enabled": is_done and not account.get("_recipient_only", False),
        "controller": {
            "fees": {"payer": "application" if account["_fees"] != "stripe" else "account"},
            "is_controller": True,
            "losses": {"payments": account["_losses"]},
            "requirement_collection": "stripe",
            "stripe_dashboard": {"type": account["_dashboard"]},
            "type": "application",
        },
        "country": account["_country"],
        "default_currency": "eur",
        "details_submitted": is_done,
        "payouts_enabled": is_done,
        "requirements": requirements,
        "type": account["_dashboard"] if account["_dashboard"] in {"custom", "express", "standard"} else "none",
    }
    return with_nulls(stripe.Account, body)


def v2(account: StripeObject, include: Collection[str]) -> StripeObject:
    """An account as version 2 shows it: members that are not requested are null."""
    is_done = account["_done"]
    recipient: StripeObject = {"applied": "recipient" in account["_configurations"]}
    if "transfers" in account[CAPABILITIES]:
        recipient["capabilities"] = {"stripe_balance": {"stripe_transfers": _status(is_done)}}
    merchant: StripeObject = {"applied": "merchant" in account["_configurations"]}
    if "card_payments" in account[CAPABILITIES]:
        merchant["capabilities"] = {"card_payments": _status(is_done)}
    configuration = {
        name: value
        for name, value in {"recipient": recipient, "merchant": merchant}.items()
        if f"configuration.{name}" in include and value["applied"]
    }
    body: StripeObject = {
        "id": account["id"],
        "object": "v2.core.account",
        "applied_configurations": account["_configurations"],
        "configuration": configuration or None,
        "contact_email": account["email"],
        "created": moment(account["created"]),
        "dashboard": account["_dashboard"],
        "display_name": account["_name"],
        "livemode": False,
        "metadata": account["metadata"],
    }
    if "defaults" in include:
        responsible = {"fees_collector": account["_fees"], "losses_collector": account["_losses"]}
        body["defaults"] = {"responsibilities": {**responsible, "requirements_collector": "stripe"}}
    if "identity" in include:
        body["identity"] = {"country": account["_country"].lower()}
    if "requirements" in include:
        body["requirements"] = {"entries": []}
    return with_nulls(stripe.v2.core.Account, body)


def _status(is_done: bool) -> StripeObject:
    details: list[StripeObject] = [] if is_done else [{"code": "requirements_past_due", "resolution": "provide_info"}]
    return {"status": "active" if is_done else "restricted", "status_details": details}


def link_v1(processor: ProcessorState, params: StripeObject) -> StripeObject:
    """A new link to the page on which an account is finished."""
    account = find(processor, params["account"])
    if params["type"] != "account_onboarding":
        raise StripeRefusal("Only account_onboarding links can be made for this account.", param="type")
    link = new_link(processor, account["id"], _url(params, "refresh_url", ""), _url(params, "return_url", ""))
    members = {name: link[name] for name in ("object", "created", "expires_at", "url")}
    return with_nulls(stripe.AccountLink, members)


def link_v2(processor: ProcessorState, params: StripeObject) -> StripeObject:
    """A new link to the page on which an account of version 2 is finished."""
    account = find_v2(processor, params["account"])
    case = params["use_case"]
    options = case.get("account_onboarding")
    if case["type"] != "account_onboarding" or options is None:
        raise StripeRefusal("use_case.account_onboarding is required.", param="use_case.account_onboarding")
    at = "use_case.account_onboarding."
    link = new_link(processor, account["id"], _url(options, "refresh_url", at), options.get("return_url", ""))
    body: StripeObject = {
        "object": "v2.core.account_link",
        "account": account["id"],
        "created": moment(link["created"]),
        "expires_at": moment(link["expires_at"]),
        "livemode": False,
        "url": link["url"],
        "use_case": case,
    }
    return body


def _url(params: StripeObject, name: str, at: str) -> str:
    if name not in params:
        raise StripeRefusal(f"Missing required param: {at}{name}.", code="parameter_missing", param=f"{at}{name}")
    return require_url(params[name], f"{at}{name}")


def require_url(url: Any, param: str) -> str:
    """Raises `StripeRefusal` unless a text is an absolute address of the web."""
    scheme, _, rest = str(url).partition("://")
    if scheme not in {"http", "https"} or not rest or rest[0] in "/?#" or " " in url:
        message = "Not a valid URL. URLs must begin with http:// or https://."
        raise StripeRefusal(message, code="url_invalid", param=param)
    return url


def new_link(processor: ProcessorState, account: str, refresh: str, back: str) -> StripeObject:
    """A new link to the page on which an account is finished."""
    now = processor.clock.now()
    id = new_id("alink")
    return processor.store.put(
        {
            "id": id,
            "object": LINK,
            "created": now,
            "expires_at": now + LINK_SECONDS,
            "url": f"{processor.address}/connect/{id}",
            "_account": account,
            "_refresh_url": refresh,
            "_return_url": back,
            "_state": "new",
        }
    )


def finish(processor: ProcessorState, link: StripeObject) -> None:
    """Finish an account, as a person does on its page."""
    account = find(processor, link["_account"])
    processor.store.put({**link, "_state": "used"})
    was_done = account["_done"]
    account = processor.store.put({**account, "_done": True})
    id = account["id"]
    if account["_version"] == 2:
        data = {"account_id": id, "configurations": account["_configurations"], "use_case": "account_onboarding"}
        processor.store_thin_event("v2.core.account_link.returned", id, data, related=False)
    if not was_done:
        _store_events_of_change(processor, account)


def restrict(processor: ProcessorState, id: str) -> None:
    """Require more information about a finished account, which gets no payouts until it is finished again."""
    _store_events_of_change(processor, processor.store.put({**find(processor, id), "_done": False}))


def _store_events_of_change(processor: ProcessorState, account: StripeObject) -> None:
    id = account["id"]
    if account["_version"] == 2:
        processor.store_thin_event("v2.core.account[requirements].updated", id, {})
        capability = "v2.core.account[configuration.recipient].capability_status_updated"
        processor.store_thin_event(capability, id, {"updated_capability": "stripe_balance.stripe_transfers"})
    processor.store_event("account.updated", v1(account), account=id)


def require_destination(processor: ProcessorState, id: str, param: str) -> StripeObject:
    """The account that a payment is transferred to. Raises `StripeRefusal` if it cannot get payments."""
    account = processor.store.find(KIND, id)
    if account is None:
        raise missing("destination", id, param, 400)
    if "transfers" not in account[CAPABILITIES] or not account["_done"]:
        raise StripeRefusal(
            "Your destination account needs to have at least one of the following capabilities enabled: transfers, "
            "crypto_transfers, legacy_payments",
            code="insufficient_capabilities_for_transfer",
            param=param,
        )
    if account["_losses"] != "application":
        message = "Destination charges need an account for whose losses the application is responsible."
        raise StripeRefusal(message, param=param)
    return account
