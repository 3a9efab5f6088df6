"""Bounds: what is limited, who shares it, and what one stranger can take of it.

Whatever has a limit that several callers share takes a `Bound`, so that each limit names the share of each owner.
`python -m tests.bounds` writes all of them into `docs/deploy/bounds.md`.
"""

from typing import Literal

from msgspec import Struct


class Bound(Struct, frozen=True, kw_only=True):
    """A resource with a limit.

    name        the resource, as a plural: "Photos that wait for their check"
    service     the service that has it
    total       the limit of all owners together, in one process unless it says otherwise
    tenant      the share of one organizer or shop
    address     the share of one IPv4 address, or of one IPv6 network of /64, and that of a network of /48
    reserved    what is kept for partners, signing in and operators
    stranger    what one stranger can take from others at most
    """

    name: str
    service: Literal["both", "events", "inventory"]
    total: str
    tenant: str
    address: str
    reserved: str
    stranger: str
