"""The bounds of the events service that are settings: rate limits, quotas and event streams."""

from collections.abc import Mapping

from holdfast.accounts.settings import BOUNDS as SIGN_IN_BOUNDS
from holdfast.events.oauth_settings import BOUNDS as OAUTH_BOUNDS
from holdfast.events.settings import ORGANIZER_ADDRESS_SHARE, UPLOADS_PER_PHOTO
from holdfast.kit.contract.bounds import Bound, address_limit, credential_limit, quota
from holdfast.kit.contract.client import WIDE_CONNECTIONS, WIDE_SHARE

STREAMS = Bound(
    name="Open event streams",
    service="events",
    total="`MAX_STREAMS`",
    tenant="`MAX_STREAMS_PER_ORGANIZER` of the console",
    address=f"`MAX_STREAMS_PER_ADDRESS`; a /48 {WIDE_CONNECTIONS} times as many",
    reserved="connections for other requests",
    stranger="Nothing: the address with the most gives way.",
)

LIMITS: Mapping[str, Bound] = {
    "messages": credential_limit("Messages to `/mcp`", "events", "`MCP_RATE_LIMIT`", "a second", who="a key or an app"),
    "registrations": credential_limit(
        "Registrations over the API", "events", "`API_REGISTRATION_RATE_LIMIT`", "a minute"
    ),
    "photos": credential_limit(
        "Photos that are fetched from an address",
        "events",
        "`API_PHOTO_UPLOAD_RATE_LIMIT`",
        "a minute",
    ),
    "uploads": credential_limit(
        "Addresses for uploads of photos",
        "events",
        f"{UPLOADS_PER_PHOTO} times `API_PHOTO_UPLOAD_RATE_LIMIT`",
        "a minute",
    ),
    "organizer registration": address_limit(
        "Organizers that register", "events", "`API_ORGANIZER_REGISTER_RATE_LIMIT`", "an hour"
    ),
    "refused organizer registration": address_limit(
        "Registrations of organizers that are refused",
        "events",
        "`API_ORGANIZER_REGISTER_REFUSED_RATE_LIMIT`",
        "an hour",
    ),
    "organizer registration of an address": Bound(
        name="Registrations of organizers with one e-mail address",
        service="events",
        total="`API_ORGANIZER_REGISTER_EMAIL_RATE_LIMIT` an hour above the shares",
        tenant="-",
        address=f"{ORGANIZER_ADDRESS_SHARE} an hour; a /48 {WIDE_SHARE} times as many",
        reserved="the shares",
        stranger="It can use up what is above the shares.",
    ),
    "keys": credential_limit(
        "New API keys", "events", "`API_KEY_CREATION_RATE_LIMIT`", "an hour", who="all keys of an organizer together"
    ),
    "queue joins": credential_limit(
        "Places in waiting rooms over the API", "events", "`API_QUEUE_JOIN_RATE_LIMIT`", "a minute"
    ),
    "waiting room joins": address_limit(
        "Places that pages of waiting rooms give", "events", "`QUEUE_PAGE_JOIN_RATE_LIMIT`", "a minute"
    ),
    "forms": address_limit(
        "Registration forms, and registrations that people cancel", "events", "`FORM_RATE_LIMIT`", "a minute"
    ),
    "forms of an event": Bound(
        name="New registrations for one event by forms",
        service="events",
        total="`FORM_EVENT_RATE_LIMIT` a minute above the shares, and what is in progress then",
        tenant="-",
        address=f"`FORM_EVENT_ADDRESS_RATE_LIMIT` a minute; a /48 {WIDE_SHARE} times as many",
        reserved="the shares",
        stranger="With 200 addresses it can use up what is above the shares.",
    ),
    "wrong links": address_limit(
        "Links to registrations and data that were never made", "events", "`WRONG_LINK_RATE_LIMIT`", "a minute"
    ),
    **SIGN_IN_BOUNDS,
    **OAUTH_BOUNDS,
}
"""The bound of each rate limit of the service, by the name of the limit."""

QUOTAS = (
    quota("Active API keys", "events", "`ORGANIZER_MAX_KEYS`"),
    quota("Events that are neither cancelled nor over", "events", "`ORGANIZER_MAX_EVENTS`"),
    quota("Bytes of text in all events", "events", "`ORGANIZER_MAX_TEXT_BYTES`"),
    quota("Queues", "events", "`ORGANIZER_MAX_QUEUES`"),
    quota("Photos and uploads", "events", "`ORGANIZER_MAX_PHOTOS`"),
)
