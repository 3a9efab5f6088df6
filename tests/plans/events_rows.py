"""What the events service has stored after years: an organizer with much of everything, and a thousand others."""

from typing import Any

from tests.plans.filling import copies, fill_accounts, fill_webhooks

ORGANIZERS, EVENTS, REGISTRATIONS = 1_000, 15_000, 60_000

OTHER = "100 + g % 1000"
"""The organizer of a row that is one of the others'."""

HANDLE = "translate(lpad((g + {first})::text, 8, '0'), '0123456789', 'abcdefghij')"


DRAWN = 57_601
"""An event whose draw is made."""

STRANGERS = range(150, 160)
"""Organizers whose address nobody has proved."""


def fill(connection: Any) -> None:
    """Fill the database of a scene in which organizer 1 has events 1, 2 and 3, queue 1, and everything else once."""
    _people(connection)
    _events(connection)
    _registrations(connection)
    _payments(connection)
    _queues(connection)
    _draws_of_events(connection)
    _logs(connection)
    _rest(connection)
    fill_accounts(connection, "person", 10_000)
    fill_webhooks(connection)


def _people(connection: Any) -> None:
    named = {"public_id": HANDLE.format(first=1_000_000), "name": "'Organizer ' || g", "slug": "'other-' || g"}
    copies(connection, "users", ORGANIZERS, "id = 1", id="99 + g", email="'o' || g || '@example.com'", **named)
    named = {"public_id": HANDLE.format(first=2_000_000), "email": "'person' || g || '@example.com'"}
    one = "email = 'ann@example.com'"
    copies(connection, "users", 3 * REGISTRATIONS, one, id="10000 + g", **named, data_link_at="null")
    connection.execute(f"update users set proved_at = null where id between {STRANGERS[0]} and {STRANGERS[-1]}")
    hashed = {"hash": "sha256(('key ' || g)::bytea)", "name": "'Key ' || g"}
    copies(connection, "api_keys", 5 * ORGANIZERS, "id = 1", id="1000 + g", user_id=OTHER, **hashed)


def _events(connection: Any) -> None:
    for first, organizer in ((1_000, "1"), (50_000, OTHER)):
        when = f"now() + (g - {EVENTS // 2}) * interval '1 hour'"
        changed = {"id": f"{first} + g", "organizer_id": organizer, "datetime": when, "recurs_from": when}
        copies(connection, "events", EVENTS, "id = 1", **changed, image_keys="'{}'", title="'Event ' || g")
        when = "now() + interval '1 year' + g * interval '1 hour'"
        changed = {"id": f"{first + 20_000} + g", "organizer_id": organizer, "datetime": when, "recurs_from": when}
        copies(connection, "events", 2_000, "id = 2", **changed, title="'Moving ' || g")
        key = f"'photos/' || ({organizer}) || '/' || lpad((g + {first})::text, 22, '0') || '.jpg'"
        one = "key = (select min(key) from photos)"
        copies(
            connection, "photos", EVENTS, one, key=key, organizer_id=organizer, idle_since="null", scaling_due="null"
        )
        one = "key = (select min(key) from event_photos where event_id = 1) and event_id = 1"
        copies(connection, "event_photos", EVENTS, one, event_id=f"{first} + g", key=key)
    connection.execute(
        f"""
        insert into price_changes (event_id, reason, original_price, new_price, timestamp)
        select 2, 'tick', 1500, 1501, now() - g * interval '10 minutes' from generate_series(1, {REGISTRATIONS}) as g;
        insert into price_changes (event_id, reason, original_price, new_price, timestamp)
        select 21000 + g % 2000, 'tick', 1500, 1501, now() - g * interval '1 minute'
          from generate_series(1, {REGISTRATIONS}) as g;
        insert into event_texts (event_id, version, digest, html, summary)
        select id, version, digest, html, summary from events, event_texts
         where event_id = 1 and id <> 1 on conflict do nothing;
        insert into event_owners (event_id, organizer_id) select id, organizer_id from events on conflict do nothing;
        insert into mail_paragraphs (event_id, kind, text) select 1000 + g, 'seat', 'Bring a pencil.'
          from generate_series(1, {EVENTS}) as g
        """
    )


def _registrations(connection: Any) -> None:
    one = "event_id = 1 and user_id = (select id from users where email = 'ann@example.com')"
    at = {"received_at": "now() - g * interval '1 second'", "settled_at": "now() - g * interval '1 second'"}
    for first, event in ((10_000, "1"), (10_000, f"1001 + g % {EVENTS}"), (70_000, f"50001 + g % {EVENTS}")):
        changed = {"event_id": event, "user_id": f"{first} + g", "arrival": f"1000000 + {first} + g", **at}
        if first == 70_000:
            changed["organizer_id"] = f"100 + ({event} - 50000) % 1000"
        status = f"case when g % 10 = 0 and {event} = 1 then 'waitlisted' else 'registered' end::registration_status"
        copies(connection, "registrations", REGISTRATIONS, one, **changed, status=status)
    waiting = REGISTRATIONS // 10
    connection.execute(
        f"""
        update events set capacity = registered_count + {REGISTRATIONS - waiting}, waitinglist_capacity = 1000000,
                          registered_count = registered_count + {REGISTRATIONS - waiting},
                          waitlisted_count = waitlisted_count + {waiting} where id = 1;
        update events set capacity = 1000, registered_count = {REGISTRATIONS // EVENTS}
         where id between 1001 and {1000 + EVENTS} or id between 50001 and {50_000 + EVENTS};
        insert into searched_events (event_id) select distinct event_id from registrations
            on conflict do nothing;
        insert into searched_registrations (event_id, user_id, words, received_at, arrival)
        select event_id, user_id, searched_words(email, coalesce(registrations.name, users.name)), received_at, arrival
          from registrations join users on users.id = user_id
            on conflict do nothing;
        update searched_events set places = 10000, received_at = (select max(received_at) from registrations
                                                    where event_id = searched_events.event_id);
        insert into check_in_scans (event_id, id, user_id, device, told_at, stored_at, is_entry, changed)
        select 1, gen_random_uuid(), 10000 + g, 'Door', now() - interval '1 day', now(), true, g
          from generate_series(1, {REGISTRATIONS // 2}) as g;
        insert into check_in_scans (event_id, id, user_id, device, told_at, stored_at, is_entry, changed)
        select 1001 + g % {EVENTS}, gen_random_uuid(), 10000 + g, 'Door', now() - interval '1 day', now(),
               true, 100000 + g from generate_series(1, {REGISTRATIONS // 2}) as g;
        insert into own_cancellations (event_id, arrival, cancelled_at, had_seat, next_arrival)
        select 1001 + g % {EVENTS}, 10000000 + g, now() - interval '1 day', true, 20000000 + g
          from generate_series(1, {REGISTRATIONS // 2}) as g;
        insert into push_subscriptions (event_id, user_id, organizer_id, digest, sealed, language, forget_at)
        select events.id, 10000 + g, organizer_id, sha256(g::text::bytea), '', 'en', now() + g * interval '1 minute'
          from generate_series(1, {REGISTRATIONS // 2}) as g join events on events.id = 1
        """
    )


def _payments(connection: Any) -> None:
    one = "id = (select min(id) from payments)"
    for first, event in ((100_000, "3"), (200_000, f"50001 + g % {EVENTS}")):
        named = {"session_id": f"'cs_' || ({first} + g)", "intent_id": f"'pi_' || ({first} + g)"}
        changed = {"event_id": event, "user_id": "10000 + g", "arrival": f"2000000 + {first} + g", "due_at": "null"}
        changed |= {"inserted_at": "now() - g * interval '1 minute'", "refunded": "0", "kept": "0"}
        copies(connection, "payments", REGISTRATIONS // 2, one, id=f"{first} + g", **changed, **named)
        changed = {"payment_id": f"{first} + g", "refund_id": f"'re_' || ({first} + g)", "due_at": "null"}
        copies(connection, "refunds", 10_000, "id = (select min(id) from refunds)", id=f"{first} + g", **changed)
    organizers = {"organizer_id": "99 + g", "account_id": "'acct_' || g", "due_at": "null"}
    copies(connection, "payout_accounts", ORGANIZERS, "organizer_id = 1", **organizers)
    connection.execute(
        """
        insert into ended_payout_accounts (account_id, organizer_id)
        select 'acct_ended_' || organizer_id, organizer_id from payout_accounts;
        insert into processor_events (id, kind, object_id) select 'evt_' || g, 'charge.updated', 'ch_' || g
          from generate_series(1, 50000) as g;
        insert into disputes (dispute_id, intent_id, state, amount, due_at)
        select 'du_' || id, intent_id, 'lost', amount, null from payments where intent_id like 'pi_1%' and id % 4 = 0
        """
    )


def _queues(connection: Any) -> None:
    for first, organizer in ((1_000, "1"), (10_000, OTHER)):
        copies(connection, "queues", 2_000, "id = 1", id=f"{first} + g", organizer_id=organizer, title="'Queue ' || g")
    connection.execute(
        """
        insert into queue_visitors (queue_id, visitor_id, ticket)
        select 1, 'visitor ' || g, 10 + g from generate_series(1, 80000) as g;
        insert into queue_visitors (queue_id, visitor_id, ticket)
        select 10001 + g % 2000, 'visitor ' || g, 1 + g from generate_series(1, 40000) as g;
        update queues set tickets = 100000 where id = 1;
        update queues set tickets = 100000, serving = 100000, paced_at = now() where id > 1;
        insert into queue_releases (queue_id, first_ticket, last_ticket, released_at)
        select 10001 + g % 2000, g, g, now() - g * interval '1 second' from generate_series(1, 20000) as g;
        insert into queue_freezes (queue_id, origin, entries, size, root, round, frozen_at)
        select id, 'log ' || id, 60000, 60000, sha256('root'), 5, now() from queues where id = 1 or id > 10000;
        insert into queue_draws (queue_id, round, signature, seed, order_hash, drawn_at)
        select queue_id, round, decode(repeat('00', 48), 'hex'), root, root, now() from queue_freezes;
        insert into queue_places (queue_id, number, places)
        select queue_id, g, array_agg(256 * g + 256 - place) from queue_draws
         cross join generate_series(0, 234) as g cross join generate_series(0, 255) as place
         where queue_id <= 10100 group by queue_id, g;
        update queues set draw_at = now(), draw_round = 5, draw_round_at = now(), draw_entries = 60000, drawn_at = now()
         where id = 1 or id > 10000
        """
    )


def _draws_of_events(connection: Any) -> None:
    """Events that were drawn, and the last thousand of one that get their places now."""
    one = "event_id = 1 and user_id = (select id from users where email = 'ann@example.com')"
    entered = {"received_at": "now() - interval '1 hour'", "settled_at": "now()", "status": "'in_draw'"}
    entered |= {"user_id": "69000 + g", "arrival": "5000000 + g", "log_number": "59000 + g", "notify": "false"}
    copies(connection, "registrations", 1_000, one, event_id=f"{DRAWN}", organizer_id="701", **entered)
    connection.execute(
        f"""
        insert into event_entries (event_id, ticket, user_id, entered_at)
        select {DRAWN}, g, 10000 + g, now() - interval '1 hour' from generate_series(1, 60000) as g;
        insert into event_freezes (event_id, origin, entries, size, root, round, frozen_at)
        select 50000 + g, 'event ' || g, 60000, 60000, sha256('root'), 5, now() from generate_series(7002, 9000) as g;
        insert into event_draws (event_id, round, signature, seed, order_hash, drawn_at)
        select event_id, round, decode(repeat('00', 48), 'hex'), root, root, now() from event_freezes;
        insert into event_drawn_tickets (event_id, number, tickets)
        select event_id, g, array_agg(256 * g + place order by place) from event_draws
         cross join generate_series(0, 234) as g cross join generate_series(1, 256) as place
         where event_id between {DRAWN} - 50 and {DRAWN} + 50 group by event_id, g;
        insert into event_confirmations (event_id, number, tickets)
        select event_id, g, array_agg(1000 * g + place order by place) from event_draws
         cross join generate_series(0, 29) as g cross join generate_series(1, 1000) as place
         where event_id between {DRAWN} - 50 and {DRAWN} + 50 group by event_id, g;
        update events
           set draw_at = now(), draw_round = 5, draw_round_at = now(), draw_entries = 60000, drawn_at = now(),
               draw_confirmed = 30000,
               takes_entries = id = {DRAWN}, draw_placed = case when id = {DRAWN} then 59000 else 60000 end
         where id in (select event_id from event_draws)
        """
    )


def _logs(connection: Any) -> None:
    connection.execute(
        f"""
        insert into logs (event_id, arrivals) select 50000 + g, 10 from generate_series(1, {EVENTS}) as g;
        insert into log_heads (log_id, origin, size, root, arrivals, signed_size, checkpoint, sealed_at)
        select logs.id, 'host/' || logs.id, 12, root, 10, 12, checkpoint, sealed_at
          from logs, (select * from log_heads limit 1) as one where event_id > 50000;
        insert into freeze_proofs (log_id, size, proof, witnesses, cosigned_at)
        select id, 12, 'proof', array['witness.example.org'], array[now()] from logs where event_id > 50000;
        insert into log_tiles (log_id, level, number, hashes)
        select id, 0, 0, decode(repeat('00', 12 * 32), 'hex') from logs where event_id > 50000;
        insert into log_entries (log_id, number, arrivals_before, entries)
        select id, 0, 0, 'entry' from logs where event_id > 50000;
        insert into log_tiles (log_id, level, number, hashes)
        select id, 0, g, sha256('leaf') from logs, generate_series(1, {REGISTRATIONS}) as g where event_id = 1;
        insert into log_entries (log_id, number, arrivals_before, entries)
        select id, g, 256 * g, 'entry' from logs, generate_series(1, {REGISTRATIONS}) as g where event_id = 1
        """
    )


def _rest(connection: Any) -> None:
    connection.execute(
        f"""
        insert into agent_actions (organizer_id, by_key_id, operation, event_id, user_id, done_at)
        select case g % 2 when 0 then 1 else {OTHER} end, 1, 'create_registration', 1000 + g % {EVENTS}, 10000 + g,
               now() - g * interval '1 minute'
          from generate_series(1, {REGISTRATIONS}) as g
        """
    )
    connection.execute(
        f"""
        insert into agent_requests (tenant_id, key_id, digest, operation, sealed, status, ended_at)
        select case g % 2 when 0 then 1 else {OTHER} end, 1, sha256(('request ' || g)::bytea), 'create_event', '',
               'done', now()
          from generate_series(1, {REGISTRATIONS}) as g
        """
    )
    connection.execute(
        """
        insert into mails (kind, thread, recipient, arguments, ended_at, outcome)
        select 'seat', 'registration 1 ' || g, 'person' || g || '@example.com',
               jsonb_build_object('event_id', 1, 'user_id', 10000 + g), now(), 'sent'
          from generate_series(1, 60000) as g;
        insert into mails (kind, thread, recipient, arguments, ended_at, outcome)
        select 'seat', 'registration ' || g, 'person' || g || '@example.com',
               jsonb_build_object('event_id', 50001 + g % 15000, 'user_id', 70000 + g), now(), 'sent'
          from generate_series(1, 60000) as g;
        insert into mails (kind, thread, recipient, arguments, due_at)
        select 'seat', 'later ' || g, 'person' || g || '@example.com',
               jsonb_build_object('organizer_id', 1 + g % 500), now() + interval '1 day'
          from generate_series(1, 20000) as g;
        insert into idempotency_answers (id, fingerprint, sealed)
        select sha256(('answer ' || g)::bytea), sha256('call'), '' from generate_series(1, 60000) as g;
        insert into oauth_clients (id, name, redirect_uris) select 'client-' || g, 'App', '{https://app.example/}'
          from generate_series(1, 5000) as g;
        insert into oauth_grants (account_id, tenant_id, client_id, scopes, expires_at)
        select 99 + g % 1000, 99 + g % 1000, 'client-' || (1 + g % 5000), '{read_events}', now() + interval '30 days'
          from generate_series(1, 20000) as g;
        insert into agent_limits (tenant_id, client_id, daily_limit, allowed)
        select distinct tenant_id, client_id, 20, 20 from oauth_grants where client_id <> 'app';
        insert into agent_limits (tenant_id, key_id, daily_limit, allowed)
        select user_id, id, 20, 20 from api_keys where id > 1000;
        insert into oauth_access_tokens (hash, grant_id, scopes, expires_at)
        select sha256(('access ' || g)::bytea), g, '{read_events}', now() + interval '1 hour'
          from generate_series(1, 20000) as g;
        insert into oauth_refresh_tokens (hash, grant_id, expires_at)
        select sha256(('refresh ' || g)::bytea), g, now() + interval '30 days' from generate_series(1, 20000) as g;
        insert into oauth_codes (hash, grant_id, redirect_uri, challenge, expires_at)
        select sha256(('code ' || g)::bytea), g, 'https://app.example/', repeat('x', 43), now() + interval '1 minute'
          from generate_series(1, 20000) as g;
        insert into oauth_subjects (hash, issuer, subject, user_id)
        select sha256(convert_to('https://id.example' || e'\\n' || 'subject ' || g, 'UTF8')), 'https://id.example',
               'subject ' || g, 10000 + g from generate_series(1, 20000) as g
        """
    )
