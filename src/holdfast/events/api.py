"""The events service: every operation, one line each. Start reading here.

REST routes, OpenAPI and the API catalog are derived from this table. Routes that do not fit it stand below it.
"""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast.events import jobs
from holdfast.events.events import operations as events
from holdfast.events.keys import operations as keys
from holdfast.events.organizers import operations as organizers
from holdfast.events.pricing import operations as pricing
from holdfast.events.problems import ALL
from holdfast.events.registrations import operations as registrations
from holdfast.events.settings import Database, Settings
from holdfast.events.users import operations as users
from holdfast.kit.keys import KeyRing
from holdfast.kit.limits import Limits
from holdfast.kit.operation import ADDS, OVERWRITES, READS, SETS, Operation
from holdfast.kit.service import Service

VERSION = "1.6.0"

# fmt: off
OPERATIONS = (
    Operation("register_organizer",   "POST   /api/organizers/register", organizers.register, body="organizer", status=201, public=True, limit="organizer registration"),
    Operation("list_organizers",      "GET    /api/organizers", organizers.list, READS, scope="read_events"),
    Operation("list_users",           "GET    /api/users", users.list, READS, scope="read_events"),

    Operation("list_api_keys",        "GET    /api/keys", keys.list, READS, scope="manage_keys"),
    Operation("create_api_key",       "POST   /api/keys", keys.create, ADDS, scope="manage_keys", body="api_key", status=201),
    Operation("revoke_api_key",       "DELETE /api/keys/{id}", keys.revoke, OVERWRITES, scope="manage_keys", status=204),

    Operation("list_events",          "GET    /api/events", events.list, READS, scope="read_events"),
    Operation("create_event",         "POST   /api/events", events.create, ADDS, scope="write_events", body="event", status=201),
    Operation("get_event",            "GET    /api/events/{event_id}", events.get, READS, scope="read_events"),
    Operation("update_event",         "PATCH  /api/events/{event_id}", events.update, OVERWRITES, scope="write_events", body="event"),
    Operation("cancel_event",         "DELETE /api/events/{event_id}", events.cancel, OVERWRITES, scope="write_events"),
    Operation("get_price_history",    "GET    /api/events/{event_id}/price_history", pricing.history, READS, scope="read_events"),

    Operation("list_registrations",   "GET    /api/registrations", registrations.list, READS, scope="read_events"),
    Operation("create_registration",  "POST   /api/registrations", registrations.accept, SETS, scope="write_events", body="registration", status=202, bare=True, limit="registrations"),
    Operation("get_registration",     "GET    /api/registrations/{event_id}/{user_id}", registrations.get, READS, scope="read_events"),
    Operation("update_registration",  "PATCH  /api/registrations/{event_id}/{user_id}", registrations.update, OVERWRITES, scope="write_events", body="registration"),
    Operation("delete_registration",  "DELETE /api/registrations/{event_id}/{user_id}", registrations.delete, OVERWRITES, scope="write_events", status=204),
)
# fmt: on


def routes(settings: Settings) -> list[BaseRoute]:
    """What does not fit the table."""
    catalog = {
        "name": "Holdfast Events",
        "version": VERSION,
        "description": DESCRIPTION,
        "base_url": settings.base_url,
        "authentication": {
            "header": organizers.HEADER,
            "alternative": "Authorization: Bearer <API_KEY>",
            "how_to_get_a_key": "POST /api/organizers/register",
        },
        "documentation": {"openapi": f"{settings.base_url}/openapi.json", "reference": f"{settings.base_url}/docs"},
        "endpoints": [
            {
                "name": each.name,
                "method": each.method,
                "path": each.path,
                "description": each.summary,
                "authentication": "none" if each.public else "api_key",
            }
            for each in OPERATIONS
        ],
    }

    async def show_catalog(_: Request) -> Response:
        return JSONResponse(catalog)

    return [Route("/api", show_catalog)]


DESCRIPTION = (
    "Publish events and take registrations: accepted at once, settled strictly in order of arrival, never more than "
    "there are seats."
)


def service(settings: Settings, database: Database) -> Service:
    """The events service as these settings want it."""
    ring = KeyRing(database, keys.find_callers)
    return Service(
        title="Holdfast Events",
        version=VERSION,
        description=DESCRIPTION,
        base_url=settings.base_url,
        database=database,
        operations=OPERATIONS,
        problems=ALL,
        routes=routes(settings),
        authenticate=ring.caller,
        hearing=[ring.hearing],
        limits=Limits(settings.rate_limit_storage_url, settings.limits),
        loops=jobs.LOOPS,
        periodic=jobs.PERIODIC,
    )
