"""The page on which somebody fills a cart and pays. Before that, the app's function looks at the cart."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from holdfast.inventory.shopify.double import functions, orders, pages
from holdfast.inventory.shopify.double.errors import Refused
from holdfast.inventory.shopify.double.model import Order, Variant
from holdfast.inventory.shopify.double.orders import Sold
from holdfast.inventory.shopify.double.store import Wanted
from holdfast.inventory.shopify.double.world import World
from holdfast.kit.doubles import serving
from holdfast.kit.pages.site import redirect

MOST_VARIANTS = 18
"""A form has at most twenty fields."""


class Stopped(Exception):
    """The function does not let a cart be paid. The arguments are its messages."""


async def buy(world: World, domain: str, sold: Sequence[Sold], *, language: str = "EN") -> Order:
    """Pay for a cart. Raises `Stopped`, and `Refused` as any sale does."""
    check = functions.cart_check()
    shop = world.shop(domain)
    if check and shop.installed:
        cart = functions.cart(world, shop, sold, language=language, step="CHECKOUT_COMPLETION")
        if messages := await check.errors(cart):
            raise Stopped(*messages)
    return orders.sell(world, domain, sold)


def routes(world: World) -> list[BaseRoute]:
    """The page of a cart."""

    async def show(request: Request) -> Response:
        return _shown(world, request.path_params["shop"], {}, [])

    async def pay(request: Request) -> Response:
        domain, form = request.path_params["shop"], await serving.form(request)
        language = "DE" if request.headers.get("accept-language", "").lower().startswith("de") else "EN"
        try:
            await buy(world, domain, _sold(form), language=language)
        except Stopped as stopped:
            return _shown(world, domain, form, [str(each) for each in stopped.args])
        except Refused as refused:
            return _shown(world, domain, form, [str(refused)])
        return serving.sent(redirect(f"/{domain}"))

    return [Route("/{shop}/cart", show), Route("/{shop}/cart", pay, methods=["POST"])]


def _shown(world: World, domain: str, form: dict[str, str], errors: list[str]) -> Response:
    shop = world.find_shop(domain)
    if shop is None:
        return pages.page("gone.html", 404, why=f"There is no shop {domain}.")
    variants = world.store.some(Variant, domain, Wanted(most=MOST_VARIANTS))
    checks = functions.cart_check() is not None
    status = 422 if errors else 200
    return pages.page("cart.html", status, shop=shop, variants=variants, form=form, errors=errors, checks=checks)


def _sold(form: dict[str, str]) -> list[Sold]:
    """What a form asks for. Raises `Refused`."""
    sold: list[Sold] = []
    for name, text in form.items():
        variant = name.removeprefix("variant-")
        if not variant.isdecimal() or not text.isdecimal() or not (variant + text).isascii() or len(text) > 7:
            raise Refused("A whole number up to 9999999 is expected for each variant.")
        if int(text):
            sold.append(Sold(int(variant), int(text)))
    return sold
