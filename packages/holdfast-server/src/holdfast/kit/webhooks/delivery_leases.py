"""Leases of endpoints of webhooks: the right of one process to send to an endpoint for a while.

An endpoint is unreliable if its last batch delivered nothing, or if a message took long in its last turn.
"""

from typing import Any, LiteralString

from holdfast.kit.background.leases import LeasedRow, RowTable
from holdfast.kit.postgres.database import Tx

TABLE = RowTable("webhook_endpoints", "id", due_at="leased_until")
"""Fences of leases use it. `LEASE` and `SECONDS_UNTIL_DUE` say which endpoints are due."""

# Tenants take turns: of each, the endpoints that were leased longest ago come first.
LEASE: LiteralString = """
    with leased as materialized (
        select tenant_id, count(*) as leases from webhook_endpoints
         where lease_id is not null and leased_until > clock_timestamp() group by tenant_id),
    due as materialized (
        select id, tenant_id, leased_until, failing_since is not null or is_slow as is_unreliable,
               row_number() over (partition by tenant_id order by leased_until, id) as turn
          from webhook_endpoints
         where status = 'active' and next_due_at <= now() and leased_until <= clock_timestamp()
           and id <> all(%(excluded)s)),
    ranked as materialized (
        select id, leased_until, is_unreliable,
               row_number() over (partition by is_unreliable order by leased_until, id) as rank
          from due left join leased using (tenant_id)
         where turn + coalesce(leases, 0) <= %(of_tenant)s),
    chosen_endpoint as materialized (
        select id from webhook_endpoints
         where id = any(array(
                select id from ranked where not is_unreliable or rank <= %(unreliable)s
                 order by leased_until, id limit %(limit)s))
           and next_due_at <= now() and leased_until <= clock_timestamp()
           for no key update skip locked)
    update webhook_endpoints
       set leased_until = clock_timestamp() + %(seconds)s * interval '1 second', lease_id = %(lease_id)s,
           next_due_at = clock_timestamp() + %(seconds)s * interval '1 second', attempts = attempts + 1
     where id = any(array(select id from chosen_endpoint))
    returning id, attempts, lease_id, failing_since is not null or is_slow as is_unreliable
"""

SECONDS_UNTIL_DUE: LiteralString = """
    select extract(epoch from min(greatest(next_due_at, leased_until)) - clock_timestamp())::float8
      from webhook_endpoints
     where status = 'active' and next_due_at is not null and id <> all(%(excluded)s)
"""


async def give_back(tx: Tx[Any], row: LeasedRow, pause: float, is_slow: bool) -> None:
    """Let other processes lease an endpoint, after a pause in seconds. It is due when the next of its deliveries is.

    If something that was stored since it was leased has made it due, it stays due.

    is_slow    whether a message took long in this turn
    """
    await tx.run(
        """
        update webhook_endpoints
           set lease_id = null, leased_until = clock_timestamp() + %(pause)s * interval '1 second',
               is_slow = %(is_slow)s,
               next_due_at = least(
                    case when next_due_at <= clock_timestamp() then next_due_at end,
                    (select min(due_at) from webhook_deliveries
                      where endpoint_id = %(id)s and status = 'waiting' and due_at is not null))
         where id = %(id)s and lease_id = %(lease_id)s
        """,
        {"id": row.key, "lease_id": row.lease_id, "pause": pause, "is_slow": is_slow},
    )
