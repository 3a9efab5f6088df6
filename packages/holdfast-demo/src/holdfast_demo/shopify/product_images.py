"""Pictures of products, as the platform's servers of files have them: a jar on a ground of a colour of its own."""

import hashlib

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast_demo.shopify.model import Product
from holdfast_demo.shopify.platform_state import PlatformState

FOLDER = "files/products"

SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 96 96" width="240" height="240">
<rect width="96" height="96" fill="hsl({hue} 45% 88%)"/>
<rect x="30" y="20" width="36" height="10" rx="4" fill="hsl({hue} 35% 32%)"/>
<rect x="24" y="33" width="48" height="46" rx="11" fill="hsl({hue} 55% 46%)"/>
<rect x="32" y="46" width="32" height="18" rx="3" fill="hsl({hue} 45% 94%)"/>
<rect x="37" y="52" width="22" height="3" rx="1.5" fill="hsl({hue} 35% 40%)"/>
<rect x="41" y="58" width="14" height="2" rx="1" fill="hsl({hue} 35% 40%)"/>
</svg>
"""


def address(world: PlatformState, shop: str, product: Product) -> str:
    """The address of the picture of a product."""
    return f"{world.at(shop)}/{FOLDER}/{product.id}.svg"


def routes(world: PlatformState) -> list[BaseRoute]:
    """The route of the pictures."""

    async def picture(request: Request) -> Response:
        product = world.store.find(Product, request.path_params["shop"], request.path_params["id"])
        if product is None:
            return PlainTextResponse("Not found", 404)
        hue = hashlib.sha256(product.title.encode()).digest()[0] * 360 // 256
        return Response(SVG.format(hue=hue), media_type="image/svg+xml", headers={"cache-control": "max-age=3600"})

    return [Route(f"/{{shop}}/{FOLDER}/{{id:int}}.svg", picture)]
