"""Asks the platform whether a shop has the app, before anything of the shop is ended or deleted.

A webhook alone ends nothing: a forged one could end any shop. The platform is asked with the access token of the shop,
which is refreshed first if it has expired. If the platform accepts no token of the shop, it is asked for one as the app
itself.
"""

from functools import partial

from holdfast.inventory.installs import sql
from holdfast.inventory.installs.access import ask
from holdfast.inventory.installs.model import Install
from holdfast.inventory.installs.scopes_changed import READ_GRANTED_SCOPES
from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.resources import Steps
from holdfast.inventory.shopify.platform import PlatformRefusal, PlatformUnreachable
from holdfast.inventory.shopify.token_endpoint import SHOP_GONE
from holdfast.kit.contract.problems import Problem

NO_SHOP = frozenset({"404", SHOP_GONE})
"""Codes of refusals for a shop that does not exist: of the Admin API, and of the token endpoint."""


async def find_ended_install(steps: Steps, shop_id: int) -> Install | None:
    """Return the install of a shop that, as the platform says, does not have the app; None if the shop has it.

    None also without an install. Raises `PlatformUnreachable` and `PlatformRefusal` if the platform does not say.
    """
    install = await steps.read(partial(sql.find_install, shop_id=shop_id))
    return None if install is None or await _has_app(steps, install) else install


async def _has_app(steps: Steps, install: Install) -> bool:
    try:
        await ask(steps, install.shop_id, READ_GRANTED_SCOPES)
    except Problem as problem:
        if problem.type is not SHOP_NOT_CONNECTED:
            raise
    except PlatformRefusal as refused:
        if refused.code not in NO_SHOP:
            raise
    else:
        return True
    has_app = await steps.resources.token_endpoint.has_app(install.domain)
    if has_app is None and await steps.read(partial(sql.find_tokens, shop_id=install.shop_id)):
        # The tokens could not be tried, or came just now: the platform has refused none of them.
        raise PlatformUnreachable(
            "The platform does not say whether the shop has the app, and has not refused its tokens."
        )
    return bool(has_app)
