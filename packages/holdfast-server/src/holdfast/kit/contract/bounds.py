"""Bounds: what is limited, who shares it, and what one stranger can take of it.

Whatever has a limit that several callers share takes a `Bound`, so that each limit names the share of each owner.
`python -m tests.programs.bounds` writes all of them into `docs/deploy/bounds.md`.
"""

from typing import Literal

from msgspec import Struct

NOT_BY_STRANGERS = "Nothing: strangers cannot cause it."

BoundedService = Literal["both", "events", "inventory"]


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
    service: BoundedService
    total: str
    tenant: str
    address: str
    reserved: str
    stranger: str


def cache_bound(name: str, service: BoundedService, total: str, *, lost: str = "is made again") -> Bound:
    """The bound of a cache, which refuses nothing: when it is full, it drops what was used longest ago.

    lost    what happens to an entry that was dropped
    """
    return Bound(
        name=name,
        service=service,
        total=total,
        tenant="none",
        address="none",
        reserved="-",
        stranger=f"Time: what others use is dropped, and {lost} when they ask for it.",
    )


def bound_without_strangers(*, name: str, service: BoundedService, total: str, tenant: str) -> Bound:
    """The bound of what only organizers, merchants, partners and the service itself can cause."""
    return Bound(
        name=name,
        service=service,
        total=total,
        tenant=tenant,
        address="none",
        reserved="-",
        stranger=NOT_BY_STRANGERS,
    )


def address_limit(name: str, service: BoundedService, setting: str, per: str) -> Bound:
    """The bound of requests that are counted by the address that they come from.

    A network of /48 may send `WIDE_SHARE` times as many.
    """
    return Bound(
        name=name,
        service=service,
        total="none",
        tenant="-",
        address=f"{setting} {per}",
        reserved="-",
        stranger="Nothing: each address is counted for itself.",
    )


def credential_limit(name: str, service: BoundedService, setting: str, per: str, *, who: str = "a key") -> Bound:
    """The bound of requests that are counted by the credential with which they come."""
    return Bound(
        name=name,
        service=service,
        total="none",
        tenant=f"{setting} {per} for {who}",
        address="-",
        reserved="-",
        stranger="Nothing: each credential is counted for itself.",
    )


def quota(name: str, service: BoundedService, setting: str) -> Bound:
    """The bound of what is stored for one tenant."""
    return Bound(
        name=name,
        service=service,
        total="none",
        tenant=setting,
        address="none: a stranger who registers an organizer has its share",
        reserved="-",
        stranger="Room on the disk: as much for each organizer that it registers.",
    )
