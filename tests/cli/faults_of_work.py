"""Faults of background work, and of what was counted."""

from holdfast.kit.process.checks.inspection import CheckLimits
from tests.cli.planted_faults import EVENT, SHOP, Fault

FAULTS = {
    "two accounts with one mailbox": Fault(
        "events mailboxes",
        "These accounts have the mailbox of another account, under another spelling: ",
        "erase the other one by its id.",
        "insert into users (public_id, email)"
        " values ('aaaaaaaa', 'joe@münchen.de'), ('bbbbbbbb', 'joe@xn--mnchen-3ya.de')",
        status="warning",
    ),
    "a mail that waits": Fault(
        "events mails",
        "A mail has waited for 1 hour: 451 later.",
        "holdfast events mail list",
        "insert into mails (kind, thread, recipient, arguments, inserted_at, error)"
        " values ('seat', 'a', 'ann@example.com', '{}', now() - interval '1 hour', '451 later')",
    ),
    "a mail that was refused": Fault(
        "inventory mails",
        "1 mail was refused within 7 days, last: 550 unknown.",
        "holdfast inventory mail retry ID",
        "insert into mails (kind, thread, recipient, arguments, ended_at, outcome, error)"
        " values ('link', 'a', 'ann@example.com', '{}', now(), 'failed', '550 unknown')",
        status="warning",
    ),
    "a job that failed for good": Fault(
        "events jobs",
        "1 job has failed for good, last: cancel_events.",
        "holdfast events jobs --retry ID",
        "insert into procrastinate_jobs (queue_name, task_name, status) values ('default', 'cancel_events', 'failed')",
    ),
    "processes that leave the work to others": Fault(
        "events leaders",
        "Processes run, and none of them does the background work.",
        "Start one: holdfast events worker.",
        running=2,
    ),
    "a leader that has stalled": Fault(
        "events leaders",
        "A process that does background work (from this machine) has done nothing for 0 seconds.",
        "End that process and start it again. Its session in PostgreSQL has the number ",
        session="holdfast events leaders 12345678",
        running=1,
        limits=CheckLimits(max_idle_seconds=-1),
    ),
    "a registration that nobody settles": Fault(
        "events due work", "A registration waits to be settled for 1 hour.", "holdfast events worker", EVENT, running=1
    ),
    "entries of a log that nobody seals": Fault(
        "events due work",
        "An arrival or a change waits to be sealed into a public log for 1 hour.",
        "holdfast events worker",
        EVENT
        + """
        insert into logs (event_id) select id from events on conflict do nothing;
        insert into log_pending (log_id, kind, at, details)
        select id, 'close', now() - interval '1 hour', '{"reason": "over"}' from logs
        """,
        running=1,
    ),
    "seats that were counted wrong": Fault(
        "events seats",
        "counts 3 seats taken and 0 waiting; it has 0 and 0.",
        "Then stop the service, and run in the database: update events set (registered_count, waitlisted_count)",
        EVENT + "update events set registered_count = 3",
    ),
    "a photo that is gone": Fault(
        "events photos",
        "1 of the 1 newest photos are not in the store: photos/admin/aaaaaaaaaaaaaaaaaaaaaa.jpg.",
        "Restore the photos from the backup",
        "insert into photos (key, state, content_type, content_length)"
        " values ('photos/admin/aaaaaaaaaaaaaaaaaaaaaa.jpg', 'accepted', 'image/jpeg', 9)",
    ),
    "a network that reaches no endpoint of webhooks": Fault(
        "events webhook endpoints",
        "All 3 endpoints to which webhooks are sent fail.",
        "look at its firewall and its DNS",
        "insert into webhook_endpoints (tenant_id, url, types, is_ordered, sealed, failing_since)"
        " select number, 'https://shop.example/', '{}', false, '', now() from generate_series(1, 3) as number",
    ),
    "a webhook that no process sends": Fault(
        "inventory webhook endpoints",
        "A webhook for a program waits for 1 hour.",
        "holdfast inventory worker",
        SHOP
        + "insert into webhook_endpoints (tenant_id, url, types, is_ordered, sealed, next_due_at, leased_until)"
        + " select id, 'https://shop.example/', '{}', false, '', now() - interval '1 hour',"
        + " now() - interval '2 hours' from shops",
        running=1,
    ),
    "a webhook that was given up": Fault(
        "inventory webhooks",
        "1 webhook was given up after many attempts, last orders/updated: no such order.",
        "holdfast inventory webhooks --retry-all",
        SHOP
        + "insert into webhooks (shop_id, webhook_id, topic, due_at, error)"
        + " select id, 'a', 'orders/updated', null, 'no such order' from shops",
    ),
    "a pool that differs from its ledger": Fault(
        "inventory ledger",
        "on_hand 5, its ledger sums to 0",
        "Then correct the pool in the console",
        SHOP + "insert into pools (shop_id, name, unit, version, on_hand) select id, 'Jars', 'jar', 1, 5 from shops",
    ),
}
