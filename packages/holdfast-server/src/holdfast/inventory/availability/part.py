"""What availability registers: the routes of storefronts, and the cache of what can be sold."""

from holdfast.inventory.availability.storefront import Storefront
from holdfast.inventory.context import Context
from holdfast.kit.process.part import Endpoints, Part


def endpoints(context: Context) -> Endpoints:
    """The two routes that storefronts read, and the cache behind them."""
    resources = context.database.resources
    storefront = Storefront(
        resources.settings.base_url, resources, context.limits, context.availability, context.streams
    )
    return Endpoints(storefront.routes(), caches=[context.availability.listening])


PART = Part(endpoints=endpoints)
