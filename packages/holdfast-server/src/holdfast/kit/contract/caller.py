"""Callers: the senders of requests, with any credential, as operations, rate limits and ledgers see them."""

from collections.abc import Hashable
from typing import Literal

from msgspec import Struct

from holdfast.kit.contract.client import path_of

Principal = Literal["api_key", "access_token", "person", "platform", "stranger", "system"]

Owner = tuple[Hashable, ...]
"""The owner of a share of what is limited, such as `("strangers", "address 192.0.2.1")`. Each part has a share of the
one before.
"""

STRANGERS = "strangers"
"""The first part of an owner that is known by its address only."""


class Caller(Struct, frozen=True):
    """The sender of a request.

    principal  an API key, an access token, a signed-in person, a request that a platform signed, a caller without a
               credential, or the service itself
    name       the name by which ledgers record it, and by which limits of a single caller count, such as `key 7`
    id         the id of its API key or grant, or of the person's session or account; 0: it has none
    tenant_id  the organizer or shop that the caller belongs to; None: it is unrestricted
    scopes     the scopes that it has; None: everything that its tenant may do
    program    what the program of an agent calls itself, unchecked, at most 64 characters; empty: not stated
    limit_id   the id of the daily limit that a person has set for its credential; 0: it has none
    asks_first whether a person must approve what it wants to change
    is_agent   whether it calls a tool of the endpoint for agents
    """

    principal: Principal
    name: str
    id: int
    tenant_id: int | None
    scopes: frozenset[str] | None = None
    program: str = ""
    limit_id: int = 0
    asks_first: bool = False
    is_agent: bool = False

    @property
    def is_admin(self) -> bool:
        return self.tenant_id is None

    @property
    def tenant(self) -> int:
        """The tenant, in a service where every caller has one."""
        assert self.tenant_id is not None
        return self.tenant_id

    @property
    def account(self) -> str:
        """The name for limits that all credentials of a tenant share; without a tenant, the caller's own name."""
        return f"tenant {self.tenant_id}" if self.tenant_id else self.name

    @property
    def owner(self) -> Owner:
        """The owner whose share the work of this caller uses: its tenant, its address, or itself."""
        if self.tenant_id:
            return (self.tenant_id,)
        return (STRANGERS, *path_of(self.name)) if self.principal == "stranger" else (self.name,)

    def may_access(self, tenant_id: int) -> bool:
        return self.tenant_id is None or self.tenant_id == tenant_id

    def has(self, scope: str | None) -> bool:
        return scope is None or self.scopes is None or scope in self.scopes


def api_key(
    id: int,
    tenant_id: int | None,
    scopes: frozenset[str] | None = None,
    limit_id: int | None = None,
    *,
    asks_first: bool = False,
) -> Caller:
    """The caller with an API key. A key without a tenant is an admin key, which is unrestricted."""
    return Caller("api_key", f"key {id}", id, tenant_id, scopes, limit_id=limit_id or 0, asks_first=asks_first)


def access_token(tenant_id: int, scopes: frozenset[str] | None = None) -> Caller:
    """The caller with an access token that acts for a tenant."""
    return Caller("access_token", f"tenant {tenant_id}", 0, tenant_id, scopes)


def person(id: int, tenant_id: int = 0) -> Caller:
    """The caller that is a signed-in person, who may have no tenant."""
    return Caller("person", f"person {id}", id, tenant_id)


def platform(tenant_id: int) -> Caller:
    """The caller that is the platform of a tenant's shop; it signed the request."""
    return Caller("platform", f"platform of {tenant_id}", 0, tenant_id)


def partner(name: str) -> Caller:
    """The caller that is a partner of the operator, such as the payment processor; it signed the request."""
    return Caller("platform", name, 0, 0)


def stranger(address: str) -> Caller:
    """The caller without a credential. It owns nothing, and limits count it by its address (`client.address`)."""
    return Caller("stranger", address, 0, 0)


def system(tenant_id: int | None = None) -> Caller:
    """The service itself, or an operator at its command line."""
    return Caller("system", "system", 0, tenant_id)


ADMIN = system()
