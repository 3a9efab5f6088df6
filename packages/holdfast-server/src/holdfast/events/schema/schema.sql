-- The schema of the events service, to read. `python -m tests.programs.schema` makes it from the
-- migrations, and nothing is applied from it. The tables of the job library are left out.


CREATE TYPE dispute_state AS ENUM (
    'unknown',
    'inquiry',
    'open',
    'won',
    'lost',
    'closed'
);

CREATE TYPE log_entry_kind AS ENUM (
    'open',
    'arrivals',
    'change',
    'freeze',
    'draw',
    'release',
    'close',
    'head',
    'places',
    'confirmations'
);

CREATE TYPE payment_state AS ENUM (
    'opening',
    'open',
    'paid',
    'ended',
    'refused'
);

CREATE TYPE photo_state AS ENUM (
    'awaited',
    'accepted',
    'doomed'
);

CREATE TYPE price_change_reason AS ENUM (
    'init',
    'registration',
    'tick',
    'manual_change',
    'other'
);

CREATE TYPE pricing_mode AS ENUM (
    'free',
    'fixed',
    'dynamic'
);

CREATE TYPE recurrence_frequency AS ENUM (
    'none',
    'days',
    'weeks',
    'months',
    'years'
);

CREATE TYPE refund_state AS ENUM (
    'wanted',
    'made',
    'refused'
);

CREATE TYPE registration_status AS ENUM (
    'pending',
    'held',
    'registered',
    'waitlisted',
    'rejected',
    'in_draw'
);

CREATE TYPE user_role AS ENUM (
    'user',
    'organizer',
    'admin'
);

CREATE FUNCTION announce() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    -- An announcement that is being sent is locked. The sender finds later changes by itself.
    if new.cancelled_at is not null then
        delete from mail_announcements
         where id in (select id from mail_announcements where event_id = new.id for update skip locked);
        insert into mail_announcements (event_id, kind) values (new.id, 'event_cancelled');
        perform pg_notify('holdfast', 'mail_announcements ');
        return null;
    end if;
    update mail_announcements set announced_at = clock_timestamp()
     where id in (select id from mail_announcements where event_id = new.id and due_at > now() for update skip locked);
    if not found then
        insert into mail_announcements (event_id, kind, due_at)
        values (new.id, 'event_changed', now() + interval '10 minutes');
    end if;
    return null;
end $$;

CREATE FUNCTION blocked_by_dispute(intent text) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    select max(case when state = 'lost' then 'lost' else 'open' end) from disputes
     where intent_id = intent and (state = 'lost' or (state in ('unknown', 'inquiry', 'open') and not refundable))
$$;

CREATE FUNCTION changed_by() RETURNS text
    LANGUAGE sql STABLE
    AS $$
    select coalesce(nullif(current_setting('holdfast.changed_by', true), ''), 'organizer')
$$;

CREATE FUNCTION check_changed_reference() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform from users where id = new.user_id for key share;
    if not found then
        raise foreign_key_violation using
            message = format('A registration names account %s, which does not exist.', new.user_id),
            constraint = 'registrations_user_id_fkey', table = 'registrations';
    end if;
    perform from event_owners where event_id = new.event_id and organizer_id = new.organizer_id for key share;
    if not found then
        raise foreign_key_violation using
            message = format('A registration of event %s names organizer %s, who never owned the event.',
                             new.event_id, new.organizer_id),
            constraint = 'registrations_event_id_fkey', table = 'registrations';
    end if;
    return null;
end $$;

CREATE FUNCTION check_draw() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    broken text = case
        when num_nonnulls(new.draw_at, new.draw_round, new.draw_round_at) not in (0, 3) or new.draw_round <= 0
        then 'a_draw_names_its_round'
        when new.draw_entries not between 0 and 2147483647 then tg_table_name || '_draw_entries_check'
        when new.drawn_at is not null and (new.draw_at is null or new.draw_entries is null)
        then 'only_a_frozen_list_is_drawn'
        when new.drawn_at is not null and new.draw_void_at is not null then 'a_void_draw_draws_nobody'
    end;
begin
    if broken is null and tg_table_name = 'events' then
        broken = case when new.draw_placed < 0 then 'events_draw_placed_check'
                      when new.draw_confirmed < 0 or new.draw_confirmed > new.draw_entries
                      then 'events_draw_confirmed_check' end;
    end if;
    if broken is not null then
        raise check_violation using
            message = format('The draw of %s %s breaks the rule %s.', rtrim(tg_table_name, 's'), new.id, broken),
            constraint = broken, table = tg_table_name;
    end if;
    return null;
end $$;

CREATE SEQUENCE check_in_changes
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE FUNCTION check_queues() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    missing bigint;
begin
    with queue as (
        select id from queues where id = any(array(select queue_id from after)) order by id for key share)
    select queue_id into missing from after where queue_id not in (select id from queue) limit 1;
    if found then
        raise foreign_key_violation using
            message = format('A visitor names queue %s, which does not exist.', missing),
            constraint = 'queue_visitors_queue_id_fkey', table = 'queue_visitors';
    end if;
    return null;
end $$;

CREATE FUNCTION check_references() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    missing record;
begin
    with owner as (
        -- Not a former owner, whose row a hand-over may be deleting.
        select event_id, organizer_id from event_owners
         where event_id = any(array(select event_id from after))
           and (event_id, organizer_id) in (select event_id, organizer_id from after)
         order by event_id, organizer_id for key share),
    person as (
        select id from users where id = any(array(select user_id from after)) order by id for key share)
    select after.event_id, after.organizer_id, after.user_id, person.id is null as without_person into missing
      from after
      left join owner using (event_id, organizer_id)
      left join person on person.id = after.user_id
     where owner.event_id is null or person.id is null
     limit 1;
    if not found then
        return null;
    end if;
    if missing.without_person then
        raise foreign_key_violation using
            message = format('A registration names account %s, which does not exist.', missing.user_id),
            constraint = 'registrations_user_id_fkey', table = 'registrations';
    end if;
    raise foreign_key_violation using
        message = format('A registration of event %s names organizer %s, who never owned the event.',
                         missing.event_id, missing.organizer_id),
        constraint = 'registrations_event_id_fkey', table = 'registrations';
end $$;

CREATE FUNCTION count_calendar_changes() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    new.calendar_sequence = old.calendar_sequence + 1;
    return new;
end $$;

CREATE FUNCTION count_passed_seats() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    update events set seats_passed_on = seats_passed_on + 1 where id = new.event_id;
    return null;
end $$;

CREATE FUNCTION count_seats() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    if tg_op = 'INSERT' then
        -- What is accepted counts when it is settled. To find that out costs less than to begin the update.
        if not exists (select from after where status in ('registered', 'held', 'waitlisted')) then
            return null;
        end if;
        update events set registered_count = registered_count + change.registered,
                          waitlisted_count = waitlisted_count + change.waitlisted
          from (select event_id, count(*) filter (where status in ('registered', 'held')) as registered,
                                 count(*) filter (where status = 'waitlisted') as waitlisted
                  from after where status in ('registered', 'held', 'waitlisted') group by event_id) as change
         where events.id = change.event_id;
    elsif tg_op = 'DELETE' then
        update events set registered_count = registered_count - change.registered,
                          waitlisted_count = waitlisted_count - change.waitlisted
          from (select event_id, count(*) filter (where status in ('registered', 'held')) as registered,
                                 count(*) filter (where status = 'waitlisted') as waitlisted
                  from before where status in ('registered', 'held', 'waitlisted') group by event_id) as change
         where events.id = change.event_id;
    else
        update events set registered_count = registered_count + change.registered,
                          waitlisted_count = waitlisted_count + change.waitlisted
          from (select event_id, sum(delta) filter (where status in ('registered', 'held')) as registered,
                                 sum(delta) filter (where status = 'waitlisted') as waitlisted
                  from (select event_id, status, 1 as delta from after
                        union all
                        select event_id, status, -1 from before) as deltas
                 group by event_id) as summed
          cross join lateral (select summed.event_id, coalesce(summed.registered, 0) as registered,
                                     coalesce(summed.waitlisted, 0) as waitlisted) as change
         where events.id = change.event_id and (change.registered <> 0 or change.waitlisted <> 0);
    end if;
    return null;
end $$;

CREATE FUNCTION fold_text(whole text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
declare
    folded text;
begin
    if octet_length(whole) = length(whole) then
        return lower(whole);
    end if;
    -- A letter with marks becomes the letter and its marks. The marks are dropped, and what is not visible.
    folded := lower(regexp_replace(normalize(replace(whole, '´', ''''), nfkd),
        '[\u00AD\u0300-\u036F\u0483-\u0487\u0591-\u05C7\u0610-\u061A\u0640\u064B-\u065F\u0670\u06D6-\u06DC'
        '\u06DF-\u06E8\u06EA-\u06ED\u061C\u180B-\u180F\u1AB0-\u1AFF\u1DC0-\u1DFF\u200B-\u200F\u202A-\u202E'
        '\u2060-\u206F\u20D0-\u20FF\uFE00-\uFE0F\uFE20-\uFE2F\uFEFF]', '', 'g'));
    -- Letters that have no mark to drop, and punctuation that keyboards do not have.
    if folded ~ '[ßæœþøłđðħıŧŋĸƀɓƈɖɗƒɠɨƙƚɲɵƥƭʈʉʋƴƶɛɔəς’‘‚‛ʼʻʹʾʿ`′“”„«»‐‒–—―−⁃·•]' then
        folded := translate(folded,
            'øłđðħıŧŋĸƀɓƈɖɗƒɠɨƙƚɲɵƥƭʈʉʋƴƶɛɔəς’‘‚‛ʼʻʹʾʿ`′“”„«»‐‒–—―−⁃·•',
            'olddhitnkbbcddfgiklnopttuvyzeoeσ''''''''''''''''''''''"""""-------  ');
        folded := replace(replace(replace(replace(folded, 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'þ', 'th');
    end if;
    return normalize(folded, nfc);
end $$;

CREATE FUNCTION forget_amount() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    new.amount_paid = 0;
    return new;
end $$;

CREATE FUNCTION forget_cancellation() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    new.cancels_at = null;
    return new;
end $$;

CREATE FUNCTION forget_move() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    new.reason = null;
    return new;
end $$;

CREATE FUNCTION forget_networks() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    new.registered_from = null;
    update photos set networks = null where organizer_id = new.id and networks is not null;
    return new;
end $$;

CREATE FUNCTION found_registrations(event bigint, part text) RETURNS TABLE(person bigint, at timestamp with time zone, number bigint)
    LANGUAGE plpgsql STABLE ROWS 100
    SET enable_seqscan TO 'off'
    AS $$
declare
    searched_parts constant bigint[] := word_parts(event, part);
    patterns constant text[] := search_patterns(part);
begin
    -- No index is searched for `is not distinct from`, so none with everything of the event is read.
    return query select user_id, received_at, arrival from searched_registrations
                  where parts(event_id, words) @> searched_parts and event_id is not distinct from event
                    and words like all (patterns);
end $$;

CREATE FUNCTION free_refunds() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    update refunds set due_at = now()
      from payments where payments.id = payment_id and payments.intent_id = new.intent_id and refunds.state = 'wanted';
    -- The name of the channel and a space: it must match PAYMENTS_CHANNEL in seats/held_seats.py.
    perform pg_notify('holdfast', 'payments ');
    return null;
end $$;

CREATE FUNCTION give_back() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    if tg_op = 'UPDATE' and new.reason = 'no_show' then
        -- The seat was kept for the person until the event began, so the organizer keeps the money.
        update payments set kept = amount - refunded
         where event_id = old.event_id and user_id = old.user_id and arrival = old.arrival and state = 'paid';
        return null;
    end if;
    update payments set ends_at = least(ends_at, now()), due_at = now()
     where event_id = old.event_id and user_id = old.user_id and arrival = old.arrival
       and state in ('opening', 'open');
    insert into refunds (payment_id, amount, reason)
    select id, amount - refunded - kept, 'seat_lost' from payments
     where event_id = old.event_id and user_id = old.user_id and arrival = old.arrival
       and state = 'paid' and refunded + kept < amount;
    -- The name of the channel and a space: it must match PAYMENTS_CHANNEL in seats/held_seats.py.
    perform pg_notify('holdfast', 'payments ');
    return null;
end $$;

CREATE FUNCTION give_back_all() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    update payments set ends_at = least(ends_at, now()), due_at = now()
     where event_id = new.id and state in ('opening', 'open');
    insert into refunds (payment_id, amount, reason)
    select id, amount - refunded - kept, 'event_cancelled' from payments
     where event_id = new.id and state = 'paid' and refunded + kept < amount;
    -- The name of the channel and a space: it must match PAYMENTS_CHANNEL in seats/held_seats.py.
    perform pg_notify('holdfast', 'payments ');
    return null;
end $$;

CREATE FUNCTION guard_event() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    if new.deleted_at is not null then
        update events set queue_id = null where queue_id = new.id;
    else
        update events set queue_id = new.id where id = new.event_id;
    end if;
    return null;
end $$;

CREATE FUNCTION hand_event_over() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    -- First: the job that ends a hand-over back to the same organizer is through before, or finds nothing to end.
    delete from event_hand_overs where event_id = new.id and organizer_id = new.organizer_id;
    insert into event_owners (event_id, organizer_id) values (new.id, new.organizer_id) on conflict do nothing;
    insert into event_hand_overs (event_id, organizer_id, handed_to)
    select event_id, organizer_id, new.organizer_id from event_owners
     where event_id = new.id and organizer_id <> new.organizer_id
        on conflict (event_id, organizer_id) do update set handed_to = excluded.handed_to, last_user_id = 0;
    return null;
end $$;

CREATE FUNCTION hand_queue_over() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    update queues set organizer_id = new.organizer_id where id = new.queue_id;
    return null;
end $$;

CREATE FUNCTION has_webhooks() RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return exists (select from webhook_endpoints);
end $$;

CREATE FUNCTION hide_pending_arrivals(account bigint) RETURNS void
    LANGUAGE sql
    AS $$
    update log_pending
       set user_ids = null, nonces = array_fill(null::uuid, array[cardinality(user_ids)]),
           visitor_ids = array(
               select person_commitment('event ' || logs.event_id, coalesce(registrations.logged_as, users.public_id),
                                        arrived.nonce)
                 from unnest(user_ids, nonces) with ordinality as arrived (user_id, nonce, place)
                 left join users on users.id = arrived.user_id
                 left join registrations on (registrations.event_id, registrations.user_id)
                                          = (logs.event_id, arrived.user_id)
                order by place)
      from logs
     where logs.id = log_id and user_ids @> array[account]
$$;

CREATE FUNCTION keep_draws() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    is_of_queue boolean = tg_table_name like 'queue%';
    drawn bigint = to_jsonb(old) -> case when is_of_queue then 'queue_id' else 'event_id' end;
begin
    if tg_op = 'DELETE' then
        if is_of_queue and not exists (select from queues where id = drawn and deleted_at is null)
           or not is_of_queue and not exists (select from events where id = drawn) then
            return old;
        end if;
    end if;
    raise integrity_constraint_violation using
        message = format('The draw of %s %s cannot change.', case when is_of_queue then 'queue' else 'event' end, drawn),
        table = tg_table_name;
end $$;

CREATE FUNCTION keep_joined_queues() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    kept bigint;
begin
    select queue_id into kept from before
     cross join lateral (select queue_id from queue_visitors where queue_id = before.id limit 1) as its_visitor
     limit 1;
    if found then
        raise foreign_key_violation using
            message = format('Queue %s has visitors.', kept),
            constraint = 'queue_visitors_queue_id_fkey', table = 'queue_visitors';
    end if;
    return null;
end $$;

CREATE FUNCTION keep_logged_id() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform hide_pending_arrivals(old.id);
    update registrations set logged_as = old.public_id
     where user_id = old.id and nonce is not null and logged_as is null;
    return new;
end $$;

CREATE FUNCTION keep_owners_of_registrations() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    kept record;
begin
    select its_registration.* into kept from before
     cross join lateral (select event_id, organizer_id from registrations
                          where event_id = before.event_id and organizer_id = before.organizer_id
                          limit 1) as its_registration
     limit 1;
    if found then
        raise foreign_key_violation using
            message = format('Event %s has registrations with organizer %s.', kept.event_id, kept.organizer_id),
            constraint = 'registrations_event_id_fkey', table = 'registrations';
    end if;
    return null;
end $$;

CREATE FUNCTION keep_registered_people() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    kept bigint;
begin
    select user_id into kept from before
     cross join lateral (select user_id from registrations where user_id = before.id limit 1) as its_registration
     limit 1;
    if found then
        raise foreign_key_violation using
            message = format('Account %s has registrations.', kept),
            constraint = 'registrations_user_id_fkey', table = 'registrations';
    end if;
    return null;
end $$;

CREATE FUNCTION log_changed_registrations() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    -- Nearly all statements settle. To find that out costs less than to begin the insert.
    if not exists (select from before where status not in ('pending', 'in_draw'))
       and not exists (select from after where log_number is null) then
        return null;
    end if;
    -- Registrations that an older version settles, during an upgrade, have no number.
    with logged as (
        insert into log_pending (log_id, kind, details)
        select log.id, 'change',
               jsonb_strip_nulls(jsonb_build_object(
                   'number', log_number, 'received_at', case when was = 'pending' then log_time(received_at) end,
                   'from', was, 'to', becomes, 'by', case when was = 'pending' then 'service' else changed_by() end,
                   'reason', reason))
          from (select arrival, max(event_id) as event_id, max(log_number) as log_number,
                       max(received_at) as received_at, max(was) as was, max(becomes) as becomes,
                       max(reason) as reason
                  from (select arrival, status as was, null::registration_status as becomes, null::bigint as event_id,
                               null::bigint as log_number, null::timestamptz as received_at, null as reason
                          from before
                        union all
                        select arrival, null, status, event_id, log_number, received_at, reason from after) as rows
                 group by arrival) as moved
         cross join lateral (select id from logs
                              where logs.event_id = moved.event_id and closed_at is null limit 1) as log
         where was <> becomes and becomes <> 'pending' and (was <> 'pending' or log_number is null)
         order by becomes in ('registered', 'held'), received_at, arrival
        returning log_id, details ->> 'by' as by)
    update logs set moved = moved + changes
      from (select log_id, count(*) as changes from logged where by = 'organizer' group by log_id) as counted
     where logs.id = log_id;
    -- A person who registers again arrives again. An older version keeps what the log says of the first time.
    update registrations set log_number = null, nonce = null, logged_as = null
     where (event_id, user_id) in (select event_id, user_id from after
                                    where status = 'pending' and log_number is not null);
    return null;
end $$;

CREATE FUNCTION log_draw() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    is_void boolean = new.draw_void_at is distinct from old.draw_void_at;
    log_id bigint;
begin
    if tg_table_name = 'queues' then
        select id into log_id from logs where queue_id = new.id and closed_at is null;
    else
        select id into log_id from logs where event_id = new.id and closed_at is null;
    end if;
    insert into log_pending (log_id, kind, at, details)
    select log_id, 'change', case when is_void then new.draw_void_at else clock_timestamp() end,
           jsonb_build_object(
               'draw', named_draw(coalesce(new.draw_at, old.draw_at), coalesce(new.draw_round, old.draw_round))
                       || case when is_void then '{"void": true}'::jsonb
                               when new.draw_at is null then '{"given_up": true}' else '{}' end,
               'by', case when is_void then 'service' else 'organizer' end)
     where log_id is not null;
    return null;
end $$;

CREATE FUNCTION log_event() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    log_id bigint = (select id from logs where event_id = new.id and closed_at is null);
    last_arrival bigint;
begin
    if not (new.public_log and new.published) then
        update logs set closed_at = now() where id = log_id;
        insert into log_pending (log_id, kind, details)
        select log_id, 'close',
               jsonb_build_object('reason', case when new.public_log then 'draft' else 'switched_off' end)
         where log_id is not null;
    elsif log_id is null then
        if new.cancelled_at is not null or new.datetime <= now() then
            return null;
        end if;
        -- The numbers and the counts go on from an earlier log.
        insert into logs (event_id, generation, arrivals, moved, removed)
        select new.id, count(*) + 1, coalesce(max(arrivals), 0), coalesce(max(moved), 0), coalesce(max(removed), 0)
          from logs where event_id = new.id
        returning id, arrivals into log_id, last_arrival;
        insert into log_pending (log_id, kind, details)
        values (log_id, 'open',
                jsonb_build_object('of', 'event', 'capacity', new.capacity, 'waiting_places', new.waitinglist_capacity,
                                   'seated', new.registered_count, 'waiting', new.waitlisted_count,
                                   'first_number', last_arrival + 1)
                || case when new.draw_at is not null and new.drawn_at is null
                        then jsonb_build_object('draw', named_draw(new.draw_at, new.draw_round)) else '{}' end);
    else
        insert into log_pending (log_id, kind, details)
        select log_id, 'change',
               jsonb_build_object('capacity', new.capacity, 'waiting_places', new.waitinglist_capacity,
                                  'by', 'organizer')
         where (old.capacity, old.waitinglist_capacity) <> (new.capacity, new.waitinglist_capacity);
        insert into log_pending (log_id, kind, details)
        select log_id, 'change', '{"event": "cancelled", "by": "organizer"}'
         where old.cancelled_at is null and new.cancelled_at is not null;
    end if;
    return null;
end $$;

CREATE FUNCTION log_join_of_older_version() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into log_pending (log_id, kind, first_number, received_at, visitor_ids, nonces)
    select id, 'arrivals', new.ticket, array[new.joined_at], array[null::text], array[null::uuid]
      from logs where queue_id = new.queue_id and closed_at is null;
    return null;
end $$;

CREATE FUNCTION log_queue() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    log_id bigint = (select id from logs where queue_id = new.id and closed_at is null);
begin
    if new.deleted_at is not null or not new.public_log then
        update logs set closed_at = now() where id = log_id;
        insert into log_pending (log_id, kind, details)
        select log_id, 'close',
               jsonb_build_object('reason', case when new.deleted_at is null then 'switched_off' else 'deleted' end)
         where log_id is not null;
    elsif log_id is null then
        insert into logs (queue_id, generation) select new.id, count(*) + 1 from logs where queue_id = new.id
        returning id into log_id;
        insert into log_pending (log_id, kind, details)
        values (log_id, 'open',
                jsonb_build_object('of', 'queue', 'first_number', new.tickets + 1, 'released', new.serving)
                || case when new.draw_at is not null and new.drawn_at is null
                        then jsonb_build_object('draw', named_draw(new.draw_at, new.draw_round)) else '{}' end);
    else
        insert into log_pending (log_id, kind, details)
        values (log_id, 'change',
                jsonb_strip_nulls(jsonb_build_object(
                    'active', new.active, 'release_rate', new.release_rate, 'max_queue_size', new.max_queue_size,
                    'starts_at', log_time(new.starts_at), 'ends_at', log_time(new.ends_at), 'by', 'organizer')));
    end if;
    return null;
end $$;

CREATE FUNCTION log_release_of_older_version() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into log_pending (log_id, kind, details)
    select id, 'release', jsonb_build_object('from', new.first_ticket, 'to', new.last_ticket)
      from logs where queue_id = new.queue_id and closed_at is null;
    return null;
end $$;

CREATE FUNCTION log_removed_registrations() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    with logged as (
        insert into log_pending (log_id, kind, details)
        select log.id, 'change',
               jsonb_strip_nulls(jsonb_build_object(
                   'number', case when status <> 'pending' then log_number end,
                   'person', case when status = 'pending'
                                  then person_commitment('event ' || event_id, coalesce(logged_as, person.public_id),
                                                         nonce)
                             end,
                   'received_at', case when status = 'pending' then log_time(received_at) end,
                   'from', status, 'to', 'removed', 'by', changed_by()))
          from before
         cross join lateral (select id from logs
                              where logs.event_id = before.event_id and closed_at is null limit 1) as log
         cross join lateral (select public_id from users where id = before.user_id limit 1) as person
         where status <> 'rejected'
         order by received_at, arrival
        returning log_id, details ->> 'by' as by)
    update logs set removed = removed + changes
      from (select log_id, count(*) as changes from logged where by = 'organizer' group by log_id) as counted
     where logs.id = log_id;
    -- A ticket of a draw stays in its list, and belongs to no person.
    update event_entries set user_id = null from before
     where event_entries.event_id = before.event_id and ticket = log_number;
    return null;
end $$;

CREATE FUNCTION log_time(at timestamp with time zone) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    select to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

CREATE FUNCTION mail_failing_webhook() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into mails (kind, thread, recipient, arguments)
    select 'webhook_failing', 'webhook ' || new.id, email,
           jsonb_build_object('endpoint_id', new.id, 'organizer_id', id)
      from users where id = new.tenant_id and email is not null and proved_at is not null;
    return null;
end $$;

CREATE FUNCTION mail_kind(before text, after text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    select case before || ' ' || after
           when 'pending in_draw' then 'confirm'
           when 'in_draw repeated' then 'confirm'
           when 'pending registered' then 'seat'
           when 'in_draw registered' then 'seat'
           when 'held registered' then 'seat'
           when 'rejected registered' then 'seat'
           when 'registered repeated' then 'seat_again'
           when 'waitlisted registered' then 'promoted'
           when 'pending waitlisted' then 'waitlisted'
           when 'in_draw waitlisted' then 'waitlisted'
           when 'registered waitlisted' then 'waitlisted'
           when 'waitlisted repeated' then 'waitlisted_again'
           when 'waitlisted held' then 'payment_due'
           when 'in_draw held' then 'payment_due'
           when 'pending rejected' then 'refused'
           when 'in_draw rejected' then 'refused'
           when 'held rejected' then 'refused'
           when 'in_draw removed' then 'removed'
           when 'registered removed' then 'removed'
           when 'held removed' then 'removed'
           when 'waitlisted removed' then 'removed' end
$$;

CREATE FUNCTION mail_new_refunds() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform mail_refunds(array(select id from inserted), true);
    return null;
end $$;

CREATE FUNCTION mail_refund() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform mail_refunds(array[new.id], false);
    return null;
end $$;

CREATE FUNCTION mail_refunds(refund_ids bigint[], are_new boolean) RETURNS void
    LANGUAGE sql
    AS $$
    insert into mails (kind, thread, recipient, arguments)
    select 'refund', 'refund ' || refunds.id, person.email,
           jsonb_build_object('organizer_id', organizer_id, 'event_id', event_id, 'user_id', person.public_id,
                              'arrival', arrival, 'amount', refunds.amount, 'currency', payments.currency,
                              'language', language, 'reason', news.reason)
      from refunds
      join payments on payments.id = payment_id
      join events on events.id = event_id
      join users as person on person.id = user_id
     cross join lateral (select blocked_by_dispute(intent_id) as blocked_by) as dispute
     cross join lateral (
        select case when refunds.state = 'refused' then 'dispute_lost'
                    when refunds.state = 'made' then 'dispute_won'
                    when refunds.awaits_dispute then 'dispute_open'
                    else refunds.reason end as reason) as news
     where refunds.id = any (refund_ids) and person.email is not null
       and case when are_new then blocked_by is distinct from 'lost'
                when refunds.state = 'refused' then blocked_by is not distinct from 'lost'
                else true end
     order by refunds.id
$$;

CREATE FUNCTION mail_registrations() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    if tg_op = 'DELETE' then
        insert into mails (kind, thread, recipient, arguments)
        select kind, 'registration ' || event_id || ' ' || person.public_id, person.email,
               jsonb_build_object('organizer_id', future.organizer_id, 'event_id', event_id,
                                  'user_id', person.public_id, 'arrival', arrival, 'name', name, 'language', language,
                                  'reason', case when current_setting('holdfast.changed_by', true) = 'organizer'
                                                 then 'by_organizer' end)
          from before
         cross join lateral mail_kind(status::text, 'removed') as kind
         cross join lateral (select public_id, email from users
                              where users.id = before.user_id and email is not null limit 1) as person
         cross join lateral (select events.organizer_id from events
                              where events.id = before.event_id and cancelled_at is null and datetime > now()
                              limit 1) as future
         where kind is not null and notify
         order by arrival;
    else
        -- The rows before and after are brought together by grouping: a join is planned once, for any number of rows.
        insert into mails (kind, thread, recipient, arguments)
        select kind, 'registration ' || event_id || ' ' || person.public_id, person.email,
               jsonb_build_object('organizer_id',
                                  case when event_id = any(array(select event_hand_overs.event_id from event_hand_overs))
                                       then (select events.organizer_id from events where events.id = moved.event_id)
                                       else organizer_id end,
                                  'event_id', event_id, 'user_id', person.public_id,
                                  'arrival', arrival, 'name', name, 'language', language, 'reason', reason)
          from (select event_id, user_id, max(organizer_id) as organizer_id, max(arrival) as arrival,
                       max(name) as name, max(language) as language,
                       max(reason) as reason, bool_or(notify) as notify,
                       mail_kind(max(was)::text, max(becomes)::text) as kind
                  from (select event_id, user_id, organizer_id, status as was, null::registration_status as becomes,
                               null::bigint as arrival, null as name, null as language, null as reason, null as notify
                          from before
                        union all
                        select event_id, user_id, organizer_id, null, status, arrival, name, language, reason, notify
                          from after)
                       as rows
                 group by event_id, user_id) as moved
         cross join lateral (select public_id, email, proved_at from users
                              where users.id = moved.user_id and email is not null limit 1) as person
         where kind is not null and notify and (kind <> 'confirm' or person.proved_at is null)
         order by arrival;
    end if;
    return null;
end $$;

CREATE FUNCTION mail_request() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into mails (kind, thread, recipient, arguments, due_at)
    select 'agent_requests', 'agent requests ' || mail.limit_id, users.email,
           jsonb_build_object('limit_id', mail.limit_id, 'organizer_id', users.id), mail.due_at
      from plan_request_mail(new.tenant_id, new.key_id, new.client_id) as mail
      join users on users.id = new.tenant_id
     where users.email is not null and users.proved_at is not null;
    return null;
end $$;

CREATE FUNCTION mail_share(recipient text) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT COST 100000 PARALLEL SAFE
    AS $_$
    select (hashtextextended(
        replace(regexp_replace(lower(recipient collate "C"), '([+].*)?@[^@]*$', ''), '.', '') || '@'
            || case when recipient ~ '@[A-Za-z0-9.-]+$' and recipient !~* '@(.*[.])?xn--[^@]*$'
                    then replace(regexp_replace(lower(recipient collate "C"), '^.*@', ''), 'googlemail.com', 'gmail.com')
                    else '' end,
        0) & 63)::integer
$_$;

CREATE FUNCTION move_registrations(giver bigint, taker bigint) RETURNS void
    LANGUAGE sql
    AS $$
    select hide_pending_arrivals(giver);
    with event_of_both as (
        select event_id from registrations where user_id = giver
        intersect select event_id from registrations where user_id = taker),
    moved_registration as (
        update registrations
           set user_id = taker,
               logged_as = case when nonce is not null
                                then coalesce(logged_as, (select public_id from users where id = giver)) end
         where user_id = giver and event_id not in (select event_id from event_of_both)
        returning event_id, log_number),
    entered as (
        update event_entries set user_id = taker from moved_registration
         where (event_entries.event_id, ticket) = (moved_registration.event_id, log_number) and user_id = giver),
    -- The references to registrations are checked at the end of the statement.
    scanned as (
        update check_in_scans set user_id = taker
         where user_id = giver and event_id in (select event_id from moved_registration)),
    searched as (
        update searched_registrations
           set user_id = taker, words = searched_words(users.email, coalesce(registrations.name, users.name))
          from registrations, users
         where searched_registrations.user_id = giver and users.id = taker
           and searched_registrations.event_id in (select event_id from moved_registration)
           and (registrations.event_id, registrations.user_id)
             = (searched_registrations.event_id, searched_registrations.user_id))
    update payments set user_id = taker
     where user_id = giver and event_id not in (select event_id from event_of_both)
$$;

CREATE FUNCTION named_draw(draw_at timestamp with time zone, draw_round bigint) RETURNS jsonb
    LANGUAGE sql STABLE
    AS $$
    select jsonb_build_object('chain', '52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971',
                              'round', draw_round, 'at', log_time(draw_at))
$$;

CREATE FUNCTION note_dispute_of_refund() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    new.awaits_dispute = coalesce(
        (select blocked_by_dispute(intent_id) = 'open' from payments where id = new.payment_id), false);
    return new;
end $$;

CREATE FUNCTION note_promotion() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    new.promoted_at = now();
    return new;
end $$;

CREATE FUNCTION own_events() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into event_owners (event_id, organizer_id) select id, organizer_id from created;
    return null;
end $$;

CREATE FUNCTION parts(event bigint, whole text) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ select array(select hashtextextended(substr(whole, n, 3), event)
                      from generate_series(1, length(whole) - 2) as n) $$;

CREATE FUNCTION person_commitment(subject text, person text, nonce uuid) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    select translate(encode(sha256(convert_to(E'holdfast/person/v1\n' || subject || E'\n' || person || E'\n', 'UTF8')
                                   || uuid_send(nonce)), 'base64'), '+/=', '-_')
$$;

CREATE FUNCTION plan_request_mail(tenant bigint, key bigint, client text) RETURNS TABLE(limit_id bigint, due_at timestamp with time zone)
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    update agent_limits
       set mail_at = greatest(clock_timestamp() + interval '1 minute', mail_at + interval '1 hour')
     where (key_id = key or tenant_id = tenant and client_id = client) and mails_requests
       and (mail_at is null or mail_at <= clock_timestamp() + interval '10 seconds')
    returning id, mail_at
$$;

CREATE FUNCTION push_promotion() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    update push_subscriptions set due_at = clock_timestamp(), attempts = 0
     where event_id = new.event_id and user_id = new.user_id;
    if found then
        -- The name of the channel and a space: it must match CHANNEL in push/sending.py.
        perform pg_notify('holdfast', 'pushes ');
    end if;
    return null;
end $$;

CREATE FUNCTION refuse_change_of_key() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    raise foreign_key_violation using
        message = format('The key of a row of %s cannot change.', tg_table_name), table = tg_table_name;
end $$;

CREATE SEQUENCE registration_arrivals
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE FUNCTION registrations_containing(event bigint, part text) RETURNS SETOF bigint
    LANGUAGE plpgsql STABLE ROWS 100
    SET enable_seqscan TO 'off'
    AS $$
declare
    searched_parts constant bigint[] := word_parts(event, part);
    patterns constant text[] := search_patterns(part);
begin
    -- No index is searched for `is not distinct from`, so none with everything of the event is read.
    return query select user_id from searched_registrations
                  where parts(event_id, words) @> searched_parts and event_id is not distinct from event
                    and words like all (patterns);
end $$;

CREATE FUNCTION release_mails_of_organizer() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into mail_releases (organizer_id) values (new.id) on conflict do nothing;
    perform pg_notify('holdfast', 'mail_announcements ');
    return null;
end $$;

CREATE FUNCTION search_patterns(whole text) RETURNS text[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    select array(select '%' || replace(replace(replace(word, '\', '\\'), '%', '\%'), '_', '\_') || '%'
                   from regexp_split_to_table(fold_text(whole), '\s+') as word where word <> '')
$$;

CREATE FUNCTION search_person_anew() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform from searched_events where event_id in (select event_id from registrations where user_id = new.id)
      order by event_id for no key update;
    update searched_registrations as searched set words = searched_words(new.email, coalesce(registrations.name, new.name))
      from registrations
     where registrations.user_id = new.id
       and (searched.event_id, searched.user_id) = (registrations.event_id, registrations.user_id);
    return null;
end $$;

CREATE FUNCTION search_registration_anew() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform from searched_events where event_id = new.event_id for no key update;
    update searched_registrations as searched set words = searched_words(users.email, coalesce(new.name, users.name))
      from users
     where users.id = new.user_id and (searched.event_id, searched.user_id) = (new.event_id, new.user_id);
    return null;
end $$;

CREATE FUNCTION searched_words(email text, name text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ select fold_text(coalesce(email, '') || ' ' || coalesce(name, '')) $$;

CREATE FUNCTION show_logo() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    -- Locked first, as in `show_photos`.
    perform from photos where key in (old.logo_key, new.logo_key) order by key for no key update;
    update photos set idle_since = null where key = new.logo_key and idle_since is not null;
    update photos set idle_since = now()
     where key = old.logo_key and not exists (select from event_photos where event_photos.key = photos.key);
    return null;
end $$;

CREATE FUNCTION show_photos() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    gone text[];
begin
    -- Locked first: of two transactions that show a photo and let go of it at once, the second sees what the first did.
    perform from photos
      where key = any (new.image_keys || array(select event_photos.key from event_photos where event_id = new.id))
      order by key for no key update;
    insert into event_photos (event_id, key)
    select new.id, shown.key from unnest(new.image_keys) as shown (key) order by shown.key
        on conflict do nothing;
    update photos set idle_since = null where key = any (new.image_keys) and idle_since is not null;
    with hidden as (
        delete from event_photos where event_id = new.id and key <> all (new.image_keys) returning key)
    select array_agg(key) into gone from hidden;
    update photos set idle_since = now()
     where key = any (gone) and not exists (select from event_photos where event_photos.key = photos.key)
       and not exists (select from users where users.logo_key = photos.key);
    return null;
end $$;

CREATE FUNCTION sum_refunds() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    update payments set refunded = refunded + amounts.amount
      from (select payment_id, sum(amount) as amount from inserted group by payment_id) as amounts
     where id = payment_id;
    if found then
        perform pg_notify('holdfast', 'payments ');
    end if;
    return null;
end $$;

CREATE FUNCTION take_mail_paragraphs_along() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into mail_paragraphs (event_id, kind, text)
    select next.id, before.kind, before.text from created as next
     cross join lateral (select kind, text from mail_paragraphs where event_id = next.follows_id limit 9) as before;
    return null;
end $$;

CREATE FUNCTION tell_of_any_event() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform pg_notify('holdfast', 'events ');
    return null;
end $$;

CREATE FUNCTION tell_of_changed_events() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform pg_notify('holdfast', 'events ' || id) from changed;
    return null;
end $$;

CREATE FUNCTION tell_of_disputes() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    -- The name of the channel and a space: it must match DETAILS_CHANNEL in events/model.py.
    perform pg_notify('holdfast', 'event_details ' || event_id)
       from (select distinct event_id from payments where intent_id in (select intent_id from changed)) as events;
    return null;
end $$;

CREATE FUNCTION tell_of_event_details() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    -- The name of the channel and a space: it must match DETAILS_CHANNEL in events/model.py.
    perform pg_notify('holdfast', 'event_details ' || event_id) from (select distinct event_id from changed) as events;
    return null;
end $$;

CREATE FUNCTION tell_of_look() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform pg_notify('holdfast', 'organizers ' || old.slug);
    return null;
end $$;

CREATE FUNCTION tell_of_mails() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    if exists (select from inserted) then
        perform pg_notify('holdfast', 'mails ');
    end if;
    return null;
end $$;

CREATE FUNCTION tell_of_organizers() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform pg_notify('holdfast', 'organizers ' || slug)
       from (select distinct organizer_id from changed) as owned
      cross join lateral (select slug from users where id = organizer_id limit 1) as organizers
      where slug is not null;
    return null;
end $$;

CREATE FUNCTION tell_of_refunds() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    -- The name of the channel and a space: it must match DETAILS_CHANNEL in events/model.py.
    perform pg_notify('holdfast', 'event_details ' || event_id)
       from (select distinct event_id from payments where id in (select payment_id from changed)) as events;
    return null;
end $$;

CREATE FUNCTION tell_webhooks_of_app() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select new.tenant_id, 'app.connected', 'client ' || id,
           jsonb_build_object('client_id', id, 'name', name, 'scopes', to_jsonb(new.scopes))
      from oauth_clients where id = new.client_id and wants_webhook(new.tenant_id, 'app.connected');
    if found then
        perform pg_notify('holdfast', 'webhook_messages ');
    end if;
    return null;
end $$;

CREATE FUNCTION tell_webhooks_of_check_ins() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select organizer_id, 'registration.checked_in', 'event ' || event_id,
           jsonb_build_object('event_id', event_id, 'user_id', person.public_id, 'device', device,
                              'at', log_time(told_at))
      from added
      join events on events.id = event_id
      join users as person on person.id = user_id
     where is_entry and wants_webhook(organizer_id, 'registration.checked_in')
     order by number;
    if found then
        perform pg_notify('holdfast', 'webhook_messages ');
    end if;
    return null;
end $$;

CREATE FUNCTION tell_webhooks_of_event() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select new.organizer_id, tg_argv[0], 'event ' || new.id,
           jsonb_build_object('event_id', new.id, 'title', new.title, 'datetime', log_time(new.datetime),
                              'capacity', new.capacity, 'registered_count', new.registered_count,
                              'waitlisted_count', new.waitlisted_count)
     where wants_webhook(new.organizer_id, tg_argv[0]);
    if found then
        perform pg_notify('holdfast', 'webhook_messages ');
    end if;
    return null;
end $$;

CREATE FUNCTION tell_webhooks_of_queue() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select new.organizer_id, tg_argv[0], 'queue ' || new.id,
           jsonb_build_object('queue_id', new.id, 'title', new.title, 'event_id', new.event_id,
                              'starts_at', log_time(new.starts_at), 'released', new.serving)
     where wants_webhook(new.organizer_id, tg_argv[0]);
    if found then
        perform pg_notify('holdfast', 'webhook_messages ');
    end if;
    return null;
end $$;

CREATE FUNCTION tell_webhooks_of_refund() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select organizer_id, 'registration.refunded', 'event ' || event_id,
           jsonb_build_object('event_id', event_id, 'user_id', person.public_id, 'amount', new.amount,
                              'currency', payments.currency, 'reason', new.reason)
      from payments
      join events on events.id = event_id
      join users as person on person.id = user_id
     where payments.id = new.payment_id and wants_webhook(organizer_id, 'registration.refunded');
    if found then
        perform pg_notify('holdfast', 'webhook_messages ');
    end if;
    return null;
end $$;

CREATE FUNCTION tell_webhooks_of_registrations() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    if tg_op = 'DELETE' then
        insert into webhook_messages (tenant_id, type, subject, data)
        select events.organizer_id, 'registration.removed', 'event ' || event_id,
               jsonb_build_object('event_id', event_id, 'user_id', person.public_id, 'was', status)
          from before
          join events on events.id = event_id
          join users as person on person.id = user_id
         where wants_webhook(events.organizer_id, 'registration.removed')
         order by arrival;
    else
        insert into webhook_messages (tenant_id, type, subject, data)
        select events.organizer_id, type, 'event ' || event_id,
               jsonb_build_object('event_id', event_id, 'user_id', person.public_id, 'status', becomes, 'was', was,
                                  'reason', reason, 'amount_paid', amount_paid)
          from (select event_id, user_id, max(arrival) as arrival, max(was) as was, max(becomes) as becomes,
                       max(reason) as reason, max(amount_paid) as amount_paid
                  from (select event_id, user_id, status as was, null::registration_status as becomes,
                               null::bigint as arrival, null as reason, null::bigint as amount_paid
                          from before
                        union all
                        select event_id, user_id, null, status, arrival, reason, amount_paid from after) as rows
                 group by event_id, user_id) as moved
          join events on events.id = event_id
          join users as person on person.id = user_id
         cross join lateral (
                select 'registration.'
                       || case when was in ('pending', 'in_draw') then 'settled'
                               when was = 'waitlisted' and becomes in ('registered', 'held') then 'promoted'
                               when was = 'held' and becomes = 'registered' then 'paid'
                               else 'moved' end) as message (type)
         where was <> becomes and becomes not in ('pending', 'in_draw') and wants_webhook(events.organizer_id, type)
         order by arrival;
    end if;
    if found then
        -- The name of the channel and a space: it must match MESSAGES_CHANNEL in kit/webhooks/endpoints.py.
        perform pg_notify('holdfast', 'webhook_messages ');
    end if;
    return null;
end $$;

CREATE FUNCTION tell_webhooks_of_revoked_key() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select new.user_id, 'key.revoked', 'key ' || new.id, jsonb_build_object('key_id', new.id, 'name', new.name)
     where wants_webhook(new.user_id, 'key.revoked');
    if found then
        perform pg_notify('holdfast', 'webhook_messages ');
    end if;
    return null;
end $$;

CREATE FUNCTION wants_webhook(tenant bigint, type text) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    select exists (
        select from webhook_endpoints
         where tenant_id = tenant and status <> 'paused' and (types = '{}' or wants_webhook.type = any(types)))
$$;

CREATE FUNCTION word_parts(event bigint, whole text) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    select array(select distinct part from regexp_split_to_table(fold_text(whole), '\s+') as word
                  cross join unnest(parts(event, word)) as part)
$$;

-- agent_actions -------------------------------------------------------------------------------------------------------

CREATE TABLE agent_actions (
    id bigint NOT NULL,
    organizer_id bigint NOT NULL,
    by_key_id bigint,
    by_grant_id bigint,
    agent_name text,
    operation text NOT NULL,
    event_id bigint,
    queue_id bigint,
    user_id bigint,
    key_id bigint,
    done_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT agent_actions_agent_name_check CHECK (((length(agent_name) >= 1) AND (length(agent_name) <= 300))),
    CONSTRAINT one_credential_did_it CHECK ((num_nonnulls(by_key_id, by_grant_id) = 1))
);
ALTER TABLE agent_actions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME agent_actions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY agent_actions
    ADD CONSTRAINT agent_actions_pkey PRIMARY KEY (id);
CREATE INDEX agent_actions_of_organizer ON agent_actions USING btree (organizer_id, id);
CREATE INDEX agent_actions_over ON agent_actions USING btree (done_at);

-- agent_limits --------------------------------------------------------------------------------------------------------

CREATE TABLE agent_limits (
    id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    key_id bigint,
    client_id text,
    daily_limit bigint,
    day date DEFAULT ((clock_timestamp() AT TIME ZONE 'UTC'::text))::date NOT NULL,
    used bigint DEFAULT 0 NOT NULL,
    allowed bigint,
    set_at timestamp with time zone DEFAULT now() NOT NULL,
    asks_first boolean DEFAULT false NOT NULL,
    mails_requests boolean DEFAULT true NOT NULL,
    language text,
    mail_at timestamp with time zone,
    CONSTRAINT agent_limits_daily_limit_check CHECK (((daily_limit >= 0) AND (daily_limit <= '1000000000000'::bigint))),
    CONSTRAINT agent_limits_language_check CHECK ((length(language) <= 10)),
    CONSTRAINT allowed_with_a_limit CHECK ((((allowed IS NULL) = (daily_limit IS NULL)) AND (allowed >= daily_limit))),
    CONSTRAINT never_beyond_the_limit CHECK (((used >= 0) AND (used <= allowed))),
    CONSTRAINT one_credential CHECK ((num_nonnulls(key_id, client_id) = 1))
);
ALTER TABLE agent_limits ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME agent_limits_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY agent_limits
    ADD CONSTRAINT agent_limits_key_id_key UNIQUE (key_id);
ALTER TABLE ONLY agent_limits
    ADD CONSTRAINT agent_limits_pkey PRIMARY KEY (id);
ALTER TABLE ONLY agent_limits
    ADD CONSTRAINT agent_limits_tenant_id_client_id_key UNIQUE (tenant_id, client_id);
ALTER TABLE ONLY agent_limits
    ADD CONSTRAINT agent_limits_client_id_fkey FOREIGN KEY (client_id) REFERENCES oauth_clients(id) ON DELETE CASCADE;
ALTER TABLE ONLY agent_limits
    ADD CONSTRAINT agent_limits_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys(id) ON DELETE CASCADE;
CREATE INDEX agent_limits_of_client ON agent_limits USING btree (client_id) WHERE (client_id IS NOT NULL);

-- agent_requests ------------------------------------------------------------------------------------------------------

CREATE TABLE agent_requests (
    id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    key_id bigint,
    client_id text,
    slot smallint,
    digest bytea NOT NULL,
    operation text NOT NULL,
    sealed bytea NOT NULL,
    status text DEFAULT 'waiting'::text NOT NULL,
    is_answered boolean DEFAULT false CONSTRAINT agent_requests_is_told_not_null NOT NULL,
    requested_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone DEFAULT (now() + '24:00:00'::interval) NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT agent_requests_digest_check CHECK ((length(digest) = 32)),
    CONSTRAINT agent_requests_slot_check CHECK (((slot >= 1) AND (slot <= 50))),
    CONSTRAINT agent_requests_status_check CHECK ((status = ANY (ARRAY['waiting'::text, 'done'::text, 'declined'::text, 'expired'::text]))),
    CONSTRAINT ends_once CHECK (((status = 'waiting'::text) = (ended_at IS NULL))),
    CONSTRAINT nothing_is_kept_of_what_ended CHECK (((status = 'waiting'::text) OR (sealed = '\x'::bytea))),
    CONSTRAINT one_credential_asks CHECK ((num_nonnulls(key_id, client_id) = 1)),
    CONSTRAINT waits_in_a_slot CHECK (((status = 'waiting'::text) = (slot IS NOT NULL)))
);
ALTER TABLE agent_requests ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME agent_requests_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY agent_requests
    ADD CONSTRAINT agent_requests_pkey PRIMARY KEY (id);
ALTER TABLE ONLY agent_requests
    ADD CONSTRAINT agent_requests_client_id_fkey FOREIGN KEY (client_id) REFERENCES oauth_clients(id) ON DELETE CASCADE;
ALTER TABLE ONLY agent_requests
    ADD CONSTRAINT agent_requests_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys(id) ON DELETE CASCADE;
CREATE INDEX agent_requests_by_age ON agent_requests USING btree (requested_at);
CREATE INDEX agent_requests_by_client ON agent_requests USING btree (client_id, tenant_id) WHERE (client_id IS NOT NULL);
CREATE INDEX agent_requests_by_digest ON agent_requests USING btree (digest, id);
CREATE INDEX agent_requests_by_key ON agent_requests USING btree (key_id) WHERE (key_id IS NOT NULL);
CREATE INDEX agent_requests_by_tenant ON agent_requests USING btree (tenant_id);
CREATE UNIQUE INDEX agent_requests_of_client ON agent_requests USING btree (tenant_id, client_id, slot) WHERE ((status = 'waiting'::text) AND (client_id IS NOT NULL));
CREATE UNIQUE INDEX agent_requests_of_key ON agent_requests USING btree (key_id, slot) WHERE ((status = 'waiting'::text) AND (key_id IS NOT NULL));
CREATE INDEX agent_requests_of_tenant ON agent_requests USING btree (tenant_id, id) WHERE (status = 'waiting'::text);
CREATE UNIQUE INDEX agent_requests_waiting ON agent_requests USING btree (digest) WHERE (status = 'waiting'::text);
CREATE TRIGGER mail_request AFTER INSERT ON agent_requests FOR EACH ROW EXECUTE FUNCTION mail_request();

-- api_keys ------------------------------------------------------------------------------------------------------------

CREATE TABLE api_keys (
    id bigint NOT NULL,
    user_id bigint,
    name text NOT NULL,
    start text NOT NULL,
    hash bytea NOT NULL,
    active boolean DEFAULT true NOT NULL,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    revoked_at timestamp with time zone,
    owner_verified boolean DEFAULT false NOT NULL,
    used_at timestamp with time zone,
    CONSTRAINT a_verified_owner_ends_keys CHECK ((NOT (active AND owner_verified))),
    CONSTRAINT api_keys_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT api_keys_start_check CHECK ((length(start) = 8)),
    CONSTRAINT revoked_at_a_moment CHECK ((active = (revoked_at IS NULL)))
);
ALTER TABLE api_keys ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME api_keys_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_hash_key UNIQUE (hash);
ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id);
CREATE INDEX api_keys_of_user ON api_keys USING btree (user_id);
CREATE INDEX api_keys_revoked ON api_keys USING btree (revoked_at) WHERE (revoked_at IS NOT NULL);
CREATE TRIGGER tell_webhooks_of_revoked_key AFTER UPDATE OF active ON api_keys FOR EACH ROW WHEN ((old.active AND (NOT new.active))) EXECUTE FUNCTION tell_webhooks_of_revoked_key();

-- check_in_scans ------------------------------------------------------------------------------------------------------

CREATE TABLE check_in_scans (
    event_id bigint NOT NULL,
    id uuid NOT NULL,
    user_id bigint NOT NULL,
    device text NOT NULL,
    told_at timestamp with time zone NOT NULL,
    stored_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    number bigint NOT NULL,
    is_entry boolean NOT NULL,
    taken_back_at timestamp with time zone,
    changed bigint DEFAULT nextval('check_in_changes'::regclass) NOT NULL,
    CONSTRAINT check_in_scans_device_check CHECK (((length(device) >= 1) AND (length(device) <= 60))),
    CONSTRAINT told_before_it_was_stored CHECK ((told_at <= stored_at)),
    CONSTRAINT what_was_taken_back_is_no_entry CHECK (((NOT is_entry) OR (taken_back_at IS NULL)))
);
ALTER TABLE check_in_scans ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME check_in_scans_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY check_in_scans
    ADD CONSTRAINT check_in_scans_pkey PRIMARY KEY (event_id, id);
ALTER TABLE ONLY check_in_scans
    ADD CONSTRAINT check_in_scans_event_id_user_id_fkey FOREIGN KEY (event_id, user_id) REFERENCES registrations(event_id, user_id) ON DELETE CASCADE;
CREATE INDEX changed_check_in_scans ON check_in_scans USING btree (event_id, changed);
CREATE INDEX check_in_scans_of_registration ON check_in_scans USING btree (event_id, user_id, number);
CREATE UNIQUE INDEX one_entry_a_registration ON check_in_scans USING btree (event_id, user_id) WHERE is_entry;
CREATE TRIGGER tell_of_changed_scans AFTER UPDATE ON check_in_scans REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION tell_of_event_details();
CREATE TRIGGER tell_of_new_scans AFTER INSERT ON check_in_scans REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION tell_of_event_details();
CREATE TRIGGER tell_webhooks_of_check_ins AFTER INSERT ON check_in_scans REFERENCING NEW TABLE AS added FOR EACH STATEMENT WHEN (has_webhooks()) EXECUTE FUNCTION tell_webhooks_of_check_ins();

-- disputes ------------------------------------------------------------------------------------------------------------

CREATE TABLE disputes (
    id bigint NOT NULL,
    dispute_id text NOT NULL,
    intent_id text NOT NULL,
    state dispute_state DEFAULT 'unknown'::dispute_state NOT NULL,
    amount bigint,
    refundable boolean DEFAULT false NOT NULL,
    due_at timestamp with time zone DEFAULT now(),
    attempts integer DEFAULT 0 NOT NULL,
    error text,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    lease_id uuid,
    CONSTRAINT disputes_amount_check CHECK ((amount >= 0)),
    CONSTRAINT disputes_check CHECK (((state = 'unknown'::dispute_state) OR (amount IS NOT NULL))),
    CONSTRAINT disputes_dispute_id_check CHECK (((length(dispute_id) >= 1) AND (length(dispute_id) <= 255))),
    CONSTRAINT disputes_error_check CHECK ((length(error) <= 1000)),
    CONSTRAINT disputes_intent_id_check CHECK (((length(intent_id) >= 1) AND (length(intent_id) <= 255)))
);
ALTER TABLE disputes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME disputes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY disputes
    ADD CONSTRAINT disputes_dispute_id_key UNIQUE (dispute_id);
ALTER TABLE ONLY disputes
    ADD CONSTRAINT disputes_pkey PRIMARY KEY (id);
CREATE INDEX disputes_due ON disputes USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX disputes_of_payment ON disputes USING btree (intent_id);
CREATE TRIGGER free_refunds AFTER UPDATE OF state, refundable ON disputes FOR EACH ROW WHEN (((old.state <> new.state) OR (old.refundable <> new.refundable))) EXECUTE FUNCTION free_refunds();
CREATE TRIGGER tell_of_changed_disputes AFTER UPDATE ON disputes REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION tell_of_disputes();
CREATE TRIGGER tell_of_new_disputes AFTER INSERT ON disputes REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION tell_of_disputes();

-- ended_payout_accounts -----------------------------------------------------------------------------------------------

CREATE TABLE ended_payout_accounts (
    account_id text NOT NULL,
    organizer_id bigint NOT NULL,
    ended_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY ended_payout_accounts
    ADD CONSTRAINT ended_payout_accounts_pkey PRIMARY KEY (account_id);
ALTER TABLE ONLY ended_payout_accounts
    ADD CONSTRAINT ended_payout_accounts_organizer_id_fkey FOREIGN KEY (organizer_id) REFERENCES users(id);
CREATE INDEX ended_payout_accounts_of_organizer ON ended_payout_accounts USING btree (organizer_id);

-- event_confirmations -------------------------------------------------------------------------------------------------

CREATE TABLE event_confirmations (
    event_id bigint NOT NULL,
    number bigint NOT NULL,
    tickets integer[] NOT NULL,
    CONSTRAINT event_confirmations_number_check CHECK ((number >= 0)),
    CONSTRAINT event_confirmations_tickets_check CHECK (((cardinality(tickets) >= 1) AND (cardinality(tickets) <= 1000)))
);
ALTER TABLE ONLY event_confirmations ALTER COLUMN tickets SET STORAGE PLAIN;
ALTER TABLE ONLY event_confirmations
    ADD CONSTRAINT event_confirmations_pkey PRIMARY KEY (event_id, number);
ALTER TABLE ONLY event_confirmations
    ADD CONSTRAINT event_confirmations_event_id_fkey FOREIGN KEY (event_id) REFERENCES events(id) ON DELETE CASCADE;
CREATE TRIGGER keep_draws BEFORE DELETE OR UPDATE ON event_confirmations FOR EACH ROW EXECUTE FUNCTION keep_draws();

-- event_drawn_tickets -------------------------------------------------------------------------------------------------

CREATE TABLE event_drawn_tickets (
    event_id bigint NOT NULL,
    number bigint NOT NULL,
    tickets integer[] NOT NULL,
    CONSTRAINT event_drawn_tickets_number_check CHECK ((number >= 0)),
    CONSTRAINT event_drawn_tickets_tickets_check CHECK (((cardinality(tickets) >= 1) AND (cardinality(tickets) <= 256)))
);
ALTER TABLE ONLY event_drawn_tickets ALTER COLUMN tickets SET STORAGE PLAIN;
ALTER TABLE ONLY event_drawn_tickets
    ADD CONSTRAINT event_drawn_tickets_pkey PRIMARY KEY (event_id, number);
ALTER TABLE ONLY event_drawn_tickets
    ADD CONSTRAINT event_drawn_tickets_event_id_fkey FOREIGN KEY (event_id) REFERENCES event_draws(event_id) ON DELETE CASCADE;
CREATE TRIGGER keep_draws BEFORE DELETE OR UPDATE ON event_drawn_tickets FOR EACH ROW EXECUTE FUNCTION keep_draws();

-- event_draws ---------------------------------------------------------------------------------------------------------

CREATE TABLE event_draws (
    event_id bigint NOT NULL,
    round bigint NOT NULL,
    signature bytea NOT NULL,
    seed bytea NOT NULL,
    order_hash bytea NOT NULL,
    drawn_at timestamp with time zone NOT NULL,
    CONSTRAINT event_draws_order_hash_check CHECK ((length(order_hash) = 32)),
    CONSTRAINT event_draws_seed_check CHECK ((length(seed) = 32)),
    CONSTRAINT event_draws_signature_check CHECK ((length(signature) = 48))
);
ALTER TABLE ONLY event_draws
    ADD CONSTRAINT event_draws_pkey PRIMARY KEY (event_id);
ALTER TABLE ONLY event_draws
    ADD CONSTRAINT event_draws_event_id_round_fkey FOREIGN KEY (event_id, round) REFERENCES event_freezes(event_id, round) ON DELETE CASCADE;
CREATE TRIGGER keep_draws BEFORE DELETE OR UPDATE ON event_draws FOR EACH ROW EXECUTE FUNCTION keep_draws();

-- event_entries -------------------------------------------------------------------------------------------------------

CREATE TABLE event_entries (
    event_id bigint NOT NULL,
    ticket bigint NOT NULL,
    user_id bigint,
    entered_at timestamp with time zone NOT NULL,
    CONSTRAINT event_entries_ticket_check CHECK ((ticket > 0))
);
ALTER TABLE ONLY event_entries
    ADD CONSTRAINT event_entries_pkey PRIMARY KEY (event_id, ticket);
ALTER TABLE ONLY event_entries
    ADD CONSTRAINT event_entries_event_id_fkey FOREIGN KEY (event_id) REFERENCES events(id) ON DELETE CASCADE;

-- event_freezes -------------------------------------------------------------------------------------------------------

CREATE TABLE event_freezes (
    event_id bigint NOT NULL,
    origin text NOT NULL,
    entries bigint NOT NULL,
    size bigint NOT NULL,
    root bytea NOT NULL,
    round bigint NOT NULL,
    frozen_at timestamp with time zone NOT NULL,
    CONSTRAINT event_freezes_entries_check CHECK ((entries >= 0)),
    CONSTRAINT event_freezes_root_check CHECK ((length(root) = 32)),
    CONSTRAINT event_freezes_round_check CHECK ((round > 0)),
    CONSTRAINT event_freezes_size_check CHECK ((size > 0))
);
ALTER TABLE ONLY event_freezes
    ADD CONSTRAINT event_freezes_event_id_round_key UNIQUE (event_id, round);
ALTER TABLE ONLY event_freezes
    ADD CONSTRAINT event_freezes_pkey PRIMARY KEY (event_id);
ALTER TABLE ONLY event_freezes
    ADD CONSTRAINT event_freezes_event_id_fkey FOREIGN KEY (event_id) REFERENCES events(id) ON DELETE CASCADE;
CREATE TRIGGER keep_draws BEFORE DELETE OR UPDATE ON event_freezes FOR EACH ROW EXECUTE FUNCTION keep_draws();

-- event_hand_overs ----------------------------------------------------------------------------------------------------

CREATE TABLE event_hand_overs (
    event_id bigint NOT NULL,
    organizer_id bigint NOT NULL,
    handed_to bigint NOT NULL,
    last_user_id bigint DEFAULT 0 NOT NULL,
    CONSTRAINT event_hand_overs_check CHECK ((handed_to <> organizer_id))
);
ALTER TABLE ONLY event_hand_overs
    ADD CONSTRAINT event_hand_overs_pkey PRIMARY KEY (event_id, organizer_id);
ALTER TABLE ONLY event_hand_overs
    ADD CONSTRAINT event_hand_overs_event_id_organizer_id_fkey FOREIGN KEY (event_id, organizer_id) REFERENCES event_owners(event_id, organizer_id) ON DELETE CASCADE;

-- event_owners --------------------------------------------------------------------------------------------------------

CREATE TABLE event_owners (
    event_id bigint NOT NULL,
    organizer_id bigint NOT NULL
);
ALTER TABLE ONLY event_owners
    ADD CONSTRAINT event_owners_pkey PRIMARY KEY (event_id, organizer_id);
ALTER TABLE ONLY event_owners
    ADD CONSTRAINT event_owners_event_id_fkey FOREIGN KEY (event_id) REFERENCES events(id) ON DELETE CASCADE;
CREATE TRIGGER keep_owners_of_registrations AFTER DELETE ON event_owners REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION keep_owners_of_registrations();
CREATE TRIGGER refuse_change_of_key BEFORE UPDATE OF event_id, organizer_id ON event_owners FOR EACH ROW WHEN (((old.event_id IS DISTINCT FROM new.event_id) OR (old.organizer_id IS DISTINCT FROM new.organizer_id))) EXECUTE FUNCTION refuse_change_of_key();

-- event_photos --------------------------------------------------------------------------------------------------------

CREATE TABLE event_photos (
    event_id bigint NOT NULL,
    key text NOT NULL,
    state photo_state DEFAULT 'accepted'::photo_state NOT NULL,
    CONSTRAINT event_photos_state_check CHECK ((state = 'accepted'::photo_state))
);
ALTER TABLE ONLY event_photos
    ADD CONSTRAINT event_photos_pkey PRIMARY KEY (event_id, key);
ALTER TABLE ONLY event_photos
    ADD CONSTRAINT event_photos_event_id_fkey FOREIGN KEY (event_id) REFERENCES events(id);
ALTER TABLE ONLY event_photos
    ADD CONSTRAINT event_photos_key_state_fkey FOREIGN KEY (key, state) REFERENCES photos(key, state);
CREATE INDEX event_photos_of_photo ON event_photos USING btree (key);

-- event_texts ---------------------------------------------------------------------------------------------------------

CREATE TABLE event_texts (
    event_id bigint NOT NULL,
    version integer NOT NULL,
    digest bytea NOT NULL,
    html text NOT NULL,
    summary text NOT NULL
);
ALTER TABLE ONLY event_texts
    ADD CONSTRAINT event_texts_pkey PRIMARY KEY (event_id);
ALTER TABLE ONLY event_texts
    ADD CONSTRAINT event_texts_event_id_fkey FOREIGN KEY (event_id) REFERENCES events(id);

-- events --------------------------------------------------------------------------------------------------------------

CREATE TABLE events (
    id bigint NOT NULL,
    organizer_id bigint NOT NULL,
    title text NOT NULL,
    body text NOT NULL,
    datetime timestamp with time zone NOT NULL,
    capacity integer NOT NULL,
    waitinglist_capacity integer NOT NULL,
    registered_count integer DEFAULT 0 NOT NULL,
    waitlisted_count integer DEFAULT 0 NOT NULL,
    currency text NOT NULL,
    pricing_mode pricing_mode NOT NULL,
    price bigint NOT NULL,
    min_price bigint,
    max_price bigint,
    current_price bigint,
    recurrence_frequency recurrence_frequency NOT NULL,
    recurrence_interval integer NOT NULL,
    address text,
    location_name text,
    latitude double precision,
    longitude double precision,
    image_keys text[] DEFAULT '{}'::text[] NOT NULL,
    cancelled_at timestamp with time zone,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    recurs_from timestamp with time zone NOT NULL,
    follows_id bigint,
    continued_at timestamp with time zone,
    prices_thinned_at timestamp with time zone,
    timezone text,
    cancellation_hours integer DEFAULT 0 NOT NULL,
    calendar_sequence integer DEFAULT 0 NOT NULL,
    end_datetime timestamp with time zone,
    published boolean DEFAULT true NOT NULL,
    public_log boolean DEFAULT true NOT NULL,
    draw_at timestamp with time zone,
    draw_round bigint,
    draw_round_at timestamp with time zone,
    draw_entries bigint,
    drawn_at timestamp with time zone,
    draw_void_at timestamp with time zone,
    takes_entries boolean DEFAULT false NOT NULL,
    draw_placed bigint DEFAULT 0 NOT NULL,
    draw_confirmed bigint,
    clock_length interval,
    queue_id bigint,
    seats_passed_on integer DEFAULT 0 NOT NULL,
    CONSTRAINT events_cancellation_hours_check CHECK ((cancellation_hours >= 0)),
    CONSTRAINT events_capacity_check CHECK ((capacity > 0)),
    CONSTRAINT events_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT events_current_price_check CHECK ((current_price >= 0)),
    CONSTRAINT events_latitude_check CHECK (((latitude >= ('-90'::integer)::double precision) AND (latitude <= (90)::double precision))),
    CONSTRAINT events_longitude_check CHECK (((longitude >= ('-180'::integer)::double precision) AND (longitude <= (180)::double precision))),
    CONSTRAINT events_max_price_check CHECK ((max_price >= 0)),
    CONSTRAINT events_min_price_check CHECK ((min_price >= 0)),
    CONSTRAINT events_price_check CHECK ((price >= 0)),
    CONSTRAINT events_recurrence_interval_check CHECK ((recurrence_interval >= 0)),
    CONSTRAINT events_registered_count_check CHECK ((registered_count >= 0)),
    CONSTRAINT events_seats_passed_on_check CHECK ((seats_passed_on >= 0)),
    CONSTRAINT events_waitinglist_capacity_check CHECK ((waitinglist_capacity >= 0)),
    CONSTRAINT events_waitlisted_count_check CHECK ((waitlisted_count >= 0)),
    CONSTRAINT it_ends_after_it_begins CHECK ((end_datetime > datetime)),
    CONSTRAINT no_more_seats_than_capacity CHECK ((registered_count <= capacity)),
    CONSTRAINT nobody_has_a_place_at_a_draft CHECK ((published OR ((registered_count = 0) AND (waitlisted_count = 0)))),
    CONSTRAINT nobody_has_a_place_before_the_draw CHECK (((draw_at IS NULL) OR (drawn_at IS NOT NULL) OR ((registered_count = 0) AND (waitlisted_count = 0)))),
    CONSTRAINT price_fits_its_mode CHECK ((
CASE pricing_mode
    WHEN 'free'::pricing_mode THEN ((price = 0) AND (current_price IS NULL))
    WHEN 'fixed'::pricing_mode THEN ((price >= 1) AND (current_price = price))
    WHEN 'dynamic'::pricing_mode THEN ((min_price <= price) AND (price <= max_price) AND (min_price <= current_price) AND (current_price <= max_price))
    ELSE NULL::boolean
END IS TRUE))
);
ALTER TABLE events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY events
    ADD CONSTRAINT events_follows_id_key UNIQUE (follows_id);
ALTER TABLE ONLY events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY events
    ADD CONSTRAINT events_follows_id_fkey FOREIGN KEY (follows_id) REFERENCES events(id);
ALTER TABLE ONLY events
    ADD CONSTRAINT events_organizer_id_fkey FOREIGN KEY (organizer_id) REFERENCES users(id);
ALTER TABLE ONLY events
    ADD CONSTRAINT events_queue_id_fkey FOREIGN KEY (queue_id) REFERENCES queues(id);
CREATE INDEX events_behind_queues ON events USING btree (queue_id) WHERE (queue_id IS NOT NULL);
CREATE INDEX events_by_date ON events USING btree (organizer_id, datetime, id);
CREATE UNIQUE INDEX events_of_organizer ON events USING btree (organizer_id, id);
CREATE INDEX events_to_come ON events USING btree (organizer_id, datetime, id) WHERE (cancelled_at IS NULL);
CREATE INDEX events_to_continue ON events USING btree (datetime) WHERE ((recurrence_frequency <> 'none'::recurrence_frequency) AND (cancelled_at IS NULL) AND (continued_at IS NULL) AND published);
CREATE INDEX events_to_draw ON events USING btree (draw_at) WHERE ((draw_at IS NOT NULL) AND (drawn_at IS NULL) AND (draw_void_at IS NULL) AND (cancelled_at IS NULL));
CREATE INDEX events_to_place ON events USING btree (id) WHERE takes_entries;
CREATE INDEX events_to_thin ON events USING btree (datetime) WHERE ((pricing_mode = 'dynamic'::pricing_mode) AND (prices_thinned_at IS NULL));
CREATE INDEX events_with_a_moving_price ON events USING btree (datetime) WHERE ((pricing_mode = 'dynamic'::pricing_mode) AND (cancelled_at IS NULL));
CREATE TRIGGER announce AFTER UPDATE OF datetime, end_datetime, timezone, address, location_name, cancelled_at ON events FOR EACH ROW WHEN ((((new.registered_count + new.waitlisted_count) > 0) AND (new.datetime > now()) AND (old.cancelled_at IS NULL) AND ((((((old.datetime IS DISTINCT FROM new.datetime) OR (old.end_datetime IS DISTINCT FROM new.end_datetime)) OR (old.timezone IS DISTINCT FROM new.timezone)) OR (old.address IS DISTINCT FROM new.address)) OR (old.location_name IS DISTINCT FROM new.location_name)) OR (old.cancelled_at IS DISTINCT FROM new.cancelled_at)))) EXECUTE FUNCTION announce();
CREATE TRIGGER check_draw AFTER INSERT OR UPDATE OF draw_at, draw_round, draw_round_at, draw_confirmed, draw_entries, drawn_at, draw_void_at, draw_placed ON events FOR EACH ROW EXECUTE FUNCTION check_draw();
CREATE TRIGGER count_calendar_changes BEFORE UPDATE ON events FOR EACH ROW WHEN ((((((((old.title IS DISTINCT FROM new.title) OR (old.datetime IS DISTINCT FROM new.datetime)) OR (old.end_datetime IS DISTINCT FROM new.end_datetime)) OR (old.timezone IS DISTINCT FROM new.timezone)) OR (old.location_name IS DISTINCT FROM new.location_name)) OR (old.address IS DISTINCT FROM new.address)) OR (old.cancelled_at IS DISTINCT FROM new.cancelled_at))) EXECUTE FUNCTION count_calendar_changes();
CREATE TRIGGER give_back_all AFTER UPDATE OF cancelled_at ON events FOR EACH ROW WHEN (((old.cancelled_at IS NULL) AND (new.cancelled_at IS NOT NULL) AND (new.pricing_mode <> 'free'::pricing_mode))) EXECUTE FUNCTION give_back_all();
CREATE TRIGGER hand_event_over AFTER UPDATE OF organizer_id ON events FOR EACH ROW WHEN ((old.organizer_id <> new.organizer_id)) EXECUTE FUNCTION hand_event_over();
CREATE TRIGGER hand_queue_over AFTER UPDATE OF organizer_id ON events FOR EACH ROW WHEN (((old.organizer_id <> new.organizer_id) AND (new.queue_id IS NOT NULL))) EXECUTE FUNCTION hand_queue_over();
CREATE TRIGGER log_changed_event AFTER UPDATE OF capacity, waitinglist_capacity, cancelled_at, published, public_log, datetime ON events FOR EACH ROW WHEN (((((((old.capacity IS DISTINCT FROM new.capacity) OR (old.waitinglist_capacity IS DISTINCT FROM new.waitinglist_capacity)) OR (old.cancelled_at IS DISTINCT FROM new.cancelled_at)) OR (old.published IS DISTINCT FROM new.published)) OR (old.public_log IS DISTINCT FROM new.public_log)) OR (old.datetime IS DISTINCT FROM new.datetime))) EXECUTE FUNCTION log_event();
CREATE TRIGGER log_draw AFTER UPDATE OF draw_at, draw_void_at ON events FOR EACH ROW WHEN (((old.draw_at IS DISTINCT FROM new.draw_at) OR (old.draw_void_at IS DISTINCT FROM new.draw_void_at))) EXECUTE FUNCTION log_draw();
CREATE TRIGGER log_new_event AFTER INSERT ON events FOR EACH ROW WHEN ((new.public_log AND new.published)) EXECUTE FUNCTION log_event();
CREATE TRIGGER own_events AFTER INSERT ON events REFERENCING NEW TABLE AS created FOR EACH STATEMENT EXECUTE FUNCTION own_events();
CREATE TRIGGER show_changed_photos AFTER UPDATE OF image_keys ON events FOR EACH ROW WHEN ((new.image_keys <> old.image_keys)) EXECUTE FUNCTION show_photos();
CREATE TRIGGER show_first_photos AFTER INSERT ON events FOR EACH ROW WHEN ((new.image_keys <> '{}'::text[])) EXECUTE FUNCTION show_photos();
CREATE TRIGGER take_mail_paragraphs_along AFTER INSERT ON events REFERENCING NEW TABLE AS created FOR EACH STATEMENT EXECUTE FUNCTION take_mail_paragraphs_along();
CREATE TRIGGER tell_of_changed_events AFTER UPDATE ON events REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION tell_of_changed_events();
CREATE TRIGGER tell_of_moved_event AFTER UPDATE OF organizer_id ON events FOR EACH ROW WHEN ((old.organizer_id <> new.organizer_id)) EXECUTE FUNCTION tell_of_any_event();
CREATE TRIGGER tell_organizers_of_changed_events AFTER UPDATE ON events REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION tell_of_organizers();
CREATE TRIGGER tell_organizers_of_new_events AFTER INSERT ON events REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION tell_of_organizers();
CREATE TRIGGER tell_webhooks_of_cancelled AFTER UPDATE OF cancelled_at ON events FOR EACH ROW WHEN ((new.published AND (old.cancelled_at IS NULL) AND (new.cancelled_at IS NOT NULL))) EXECUTE FUNCTION tell_webhooks_of_event('event.cancelled');
CREATE TRIGGER tell_webhooks_of_created AFTER INSERT ON events FOR EACH ROW WHEN (new.published) EXECUTE FUNCTION tell_webhooks_of_event('event.created');
CREATE TRIGGER tell_webhooks_of_edited AFTER UPDATE OF title, body, datetime, end_datetime, timezone, capacity, waitinglist_capacity, price, min_price, max_price, address, location_name, latitude, longitude, image_keys ON events FOR EACH ROW WHEN ((new.published AND old.published AND (((((((((((((((old.title IS DISTINCT FROM new.title) OR (old.body IS DISTINCT FROM new.body)) OR (old.datetime IS DISTINCT FROM new.datetime)) OR (old.end_datetime IS DISTINCT FROM new.end_datetime)) OR (old.timezone IS DISTINCT FROM new.timezone)) OR (old.capacity IS DISTINCT FROM new.capacity)) OR (old.waitinglist_capacity IS DISTINCT FROM new.waitinglist_capacity)) OR (old.price IS DISTINCT FROM new.price)) OR (old.min_price IS DISTINCT FROM new.min_price)) OR (old.max_price IS DISTINCT FROM new.max_price)) OR (old.address IS DISTINCT FROM new.address)) OR (old.location_name IS DISTINCT FROM new.location_name)) OR (old.latitude IS DISTINCT FROM new.latitude)) OR (old.longitude IS DISTINCT FROM new.longitude)) OR (old.image_keys IS DISTINCT FROM new.image_keys)))) EXECUTE FUNCTION tell_webhooks_of_event('event.changed');
CREATE TRIGGER tell_webhooks_of_full AFTER UPDATE OF registered_count, capacity ON events FOR EACH ROW WHEN (((old.registered_count < old.capacity) AND (new.registered_count >= new.capacity))) EXECUTE FUNCTION tell_webhooks_of_event('event.full');
CREATE TRIGGER tell_webhooks_of_published AFTER UPDATE OF published ON events FOR EACH ROW WHEN ((new.published AND (NOT old.published))) EXECUTE FUNCTION tell_webhooks_of_event('event.created');
CREATE TRIGGER tell_webhooks_of_room AFTER UPDATE OF registered_count, capacity ON events FOR EACH ROW WHEN (((old.registered_count >= old.capacity) AND (new.registered_count < new.capacity) AND (new.cancelled_at IS NULL))) EXECUTE FUNCTION tell_webhooks_of_event('event.available');

-- freeze_proofs -------------------------------------------------------------------------------------------------------

CREATE TABLE freeze_proofs (
    log_id bigint NOT NULL,
    size bigint NOT NULL,
    proof text NOT NULL,
    witnesses text[] NOT NULL,
    cosigned_at timestamp with time zone[] NOT NULL,
    CONSTRAINT each_witness_has_a_time CHECK (((cardinality(witnesses) > 0) AND (cardinality(witnesses) = cardinality(cosigned_at)))),
    CONSTRAINT freeze_proofs_size_check CHECK ((size > 0))
);
ALTER TABLE ONLY freeze_proofs
    ADD CONSTRAINT freeze_proofs_pkey PRIMARY KEY (log_id);
ALTER TABLE ONLY freeze_proofs
    ADD CONSTRAINT freeze_proofs_log_id_fkey FOREIGN KEY (log_id) REFERENCES logs(id) ON DELETE CASCADE;

-- functions -----------------------------------------------------------------------------------------------------------

CREATE TABLE functions (
    name text NOT NULL,
    checksum text NOT NULL
);
ALTER TABLE ONLY functions
    ADD CONSTRAINT functions_pkey PRIMARY KEY (name);

-- idempotency_answers -------------------------------------------------------------------------------------------------

CREATE TABLE idempotency_answers (
    id bytea NOT NULL,
    fingerprint bytea CONSTRAINT idempotency_answers_print_not_null NOT NULL,
    sealed bytea NOT NULL,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    account text,
    person text,
    CONSTRAINT idempotency_answers_id_check CHECK ((length(id) = 32)),
    CONSTRAINT idempotency_answers_print_check CHECK ((length(fingerprint) = 32))
);
ALTER TABLE ONLY idempotency_answers
    ADD CONSTRAINT idempotency_answers_pkey PRIMARY KEY (id);
CREATE INDEX idempotency_answers_by_age ON idempotency_answers USING btree (inserted_at);
CREATE INDEX idempotency_answers_large ON idempotency_answers USING btree (account, inserted_at) WHERE (account IS NOT NULL);
CREATE INDEX idempotency_answers_of_person ON idempotency_answers USING btree (person) WHERE (person IS NOT NULL);

-- known_browsers ------------------------------------------------------------------------------------------------------

CREATE TABLE known_browsers (
    hash bytea NOT NULL,
    account_id bigint NOT NULL,
    known_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT known_browsers_hash_check CHECK ((length(hash) = 32))
);
ALTER TABLE ONLY known_browsers
    ADD CONSTRAINT known_browsers_pkey PRIMARY KEY (hash);
CREATE INDEX known_browsers_by_age ON known_browsers USING btree (known_at);
CREATE INDEX known_browsers_of_account ON known_browsers USING btree (account_id);

-- log_entries ---------------------------------------------------------------------------------------------------------

CREATE TABLE log_entries (
    log_id bigint NOT NULL,
    number bigint NOT NULL,
    arrivals_before bigint NOT NULL,
    entries bytea NOT NULL,
    CONSTRAINT log_entries_arrivals_before_check CHECK ((arrivals_before >= 0)),
    CONSTRAINT log_entries_number_check CHECK ((number >= 0))
);
ALTER TABLE ONLY log_entries
    ADD CONSTRAINT log_entries_pkey PRIMARY KEY (log_id, number);
ALTER TABLE ONLY log_entries
    ADD CONSTRAINT log_entries_log_id_fkey FOREIGN KEY (log_id) REFERENCES logs(id) ON DELETE CASCADE;
CREATE INDEX log_entries_by_arrival ON log_entries USING btree (log_id, arrivals_before, number);

-- log_heads -----------------------------------------------------------------------------------------------------------

CREATE TABLE log_heads (
    log_id bigint NOT NULL,
    origin text NOT NULL,
    size bigint NOT NULL,
    root bytea NOT NULL,
    arrivals bigint DEFAULT 0 NOT NULL,
    signed_size bigint DEFAULT 0 NOT NULL,
    checkpoint text,
    sealed_at timestamp with time zone NOT NULL,
    listed_in bigint,
    listed_index bigint,
    CONSTRAINT a_listed_head_has_a_place CHECK (((listed_in IS NULL) = (listed_index IS NULL))),
    CONSTRAINT a_signed_size_has_a_checkpoint CHECK (((signed_size > 0) = (checkpoint IS NOT NULL))),
    CONSTRAINT log_heads_arrivals_check CHECK ((arrivals >= 0)),
    CONSTRAINT log_heads_listed_index_check CHECK ((listed_index >= 0)),
    CONSTRAINT log_heads_origin_check CHECK (((length(origin) >= 1) AND (length(origin) <= 500))),
    CONSTRAINT log_heads_root_check CHECK ((length(root) = 32)),
    CONSTRAINT log_heads_size_check CHECK ((size > 0)),
    CONSTRAINT only_what_is_sealed_is_signed CHECK (((signed_size >= 0) AND (signed_size <= size)))
)
WITH (fillfactor='20');
ALTER TABLE ONLY log_heads
    ADD CONSTRAINT log_heads_origin_key UNIQUE (origin);
ALTER TABLE ONLY log_heads
    ADD CONSTRAINT log_heads_pkey PRIMARY KEY (log_id);
ALTER TABLE ONLY log_heads
    ADD CONSTRAINT log_heads_listed_in_fkey FOREIGN KEY (listed_in) REFERENCES logs(id);
ALTER TABLE ONLY log_heads
    ADD CONSTRAINT log_heads_log_id_fkey FOREIGN KEY (log_id) REFERENCES logs(id) ON DELETE CASCADE;
CREATE INDEX log_heads_to_sign ON log_heads USING btree (log_id) WHERE (signed_size < size);

-- log_keys ------------------------------------------------------------------------------------------------------------

CREATE TABLE log_keys (
    id bigint NOT NULL,
    public_key bytea NOT NULL,
    sealed bytea NOT NULL,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT log_keys_public_key_check CHECK ((length(public_key) = 32))
);
ALTER TABLE log_keys ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME log_keys_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY log_keys
    ADD CONSTRAINT log_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY log_keys
    ADD CONSTRAINT log_keys_public_key_key UNIQUE (public_key);

-- log_pending ---------------------------------------------------------------------------------------------------------

CREATE TABLE log_pending (
    id bigint NOT NULL,
    log_id bigint NOT NULL,
    kind log_entry_kind NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    details jsonb,
    first_number bigint,
    received_at timestamp with time zone[],
    user_ids bigint[],
    visitor_ids text[],
    nonces uuid[],
    outcomes registration_status[],
    cut timestamp with time zone,
    numbers bigint[],
    CONSTRAINT arrivals_have_no_details CHECK (((first_number IS NULL) = (details IS NOT NULL)))
);
ALTER TABLE ONLY log_pending ALTER COLUMN received_at SET STORAGE EXTERNAL;
ALTER TABLE ONLY log_pending ALTER COLUMN user_ids SET STORAGE EXTERNAL;
ALTER TABLE ONLY log_pending ALTER COLUMN nonces SET STORAGE EXTERNAL;
ALTER TABLE ONLY log_pending ALTER COLUMN outcomes SET STORAGE EXTERNAL;
ALTER TABLE ONLY log_pending ALTER COLUMN numbers SET STORAGE EXTERNAL;
ALTER TABLE log_pending ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME log_pending_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY log_pending
    ADD CONSTRAINT log_pending_pkey PRIMARY KEY (log_id, id);
ALTER TABLE ONLY log_pending
    ADD CONSTRAINT log_pending_log_id_fkey FOREIGN KEY (log_id) REFERENCES logs(id) ON DELETE CASCADE;

-- log_tiles -----------------------------------------------------------------------------------------------------------

CREATE TABLE log_tiles (
    log_id bigint NOT NULL,
    level smallint NOT NULL,
    number bigint NOT NULL,
    hashes bytea NOT NULL,
    CONSTRAINT log_tiles_hashes_check CHECK ((((length(hashes) % 32) = 0) AND ((length(hashes) >= 32) AND (length(hashes) <= 8192)))),
    CONSTRAINT log_tiles_level_check CHECK (((level >= 0) AND (level <= 63))),
    CONSTRAINT log_tiles_number_check CHECK ((number >= 0))
);
ALTER TABLE ONLY log_tiles ALTER COLUMN hashes SET STORAGE EXTERNAL;
ALTER TABLE ONLY log_tiles
    ADD CONSTRAINT log_tiles_pkey PRIMARY KEY (log_id, level, number);
ALTER TABLE ONLY log_tiles
    ADD CONSTRAINT log_tiles_log_id_fkey FOREIGN KEY (log_id) REFERENCES logs(id) ON DELETE CASCADE;

-- logs ----------------------------------------------------------------------------------------------------------------

CREATE TABLE logs (
    id bigint NOT NULL,
    event_id bigint,
    queue_id bigint,
    generation integer DEFAULT 1 NOT NULL,
    arrivals bigint DEFAULT 0 NOT NULL,
    moved bigint DEFAULT 0 NOT NULL,
    removed bigint DEFAULT 0 NOT NULL,
    closed_at timestamp with time zone,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT a_log_is_of_an_event_or_a_queue_or_of_heads CHECK ((num_nonnulls(event_id, queue_id) <= 1)),
    CONSTRAINT logs_arrivals_check CHECK ((arrivals >= 0)),
    CONSTRAINT logs_generation_check CHECK ((generation > 0)),
    CONSTRAINT logs_moved_check CHECK ((moved >= 0)),
    CONSTRAINT logs_removed_check CHECK ((removed >= 0))
)
WITH (fillfactor='50');
ALTER TABLE logs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME logs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY logs
    ADD CONSTRAINT logs_event_id_generation_key UNIQUE (event_id, generation);
ALTER TABLE ONLY logs
    ADD CONSTRAINT logs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY logs
    ADD CONSTRAINT logs_queue_id_generation_key UNIQUE (queue_id, generation);
ALTER TABLE ONLY logs
    ADD CONSTRAINT logs_event_id_fkey FOREIGN KEY (event_id) REFERENCES events(id) ON DELETE CASCADE;
ALTER TABLE ONLY logs
    ADD CONSTRAINT logs_queue_id_fkey FOREIGN KEY (queue_id) REFERENCES queues(id) ON DELETE CASCADE;
CREATE UNIQUE INDEX head_logs ON logs USING btree (generation) WHERE ((event_id IS NULL) AND (queue_id IS NULL));
CREATE UNIQUE INDEX one_open_log_a_queue ON logs USING btree (queue_id) WHERE (closed_at IS NULL);
CREATE UNIQUE INDEX one_open_log_an_event ON logs USING btree (event_id) WHERE (closed_at IS NULL);

-- mail_announcements --------------------------------------------------------------------------------------------------

CREATE TABLE mail_announcements (
    id bigint NOT NULL,
    event_id bigint NOT NULL,
    kind text NOT NULL,
    announced_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    last_user_id bigint DEFAULT 0 NOT NULL,
    due_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT mail_announcements_kind_check CHECK ((kind = ANY (ARRAY['event_changed'::text, 'event_cancelled'::text])))
);
ALTER TABLE mail_announcements ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME mail_announcements_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY mail_announcements
    ADD CONSTRAINT mail_announcements_pkey PRIMARY KEY (id);
ALTER TABLE ONLY mail_announcements
    ADD CONSTRAINT mail_announcements_event_id_fkey FOREIGN KEY (event_id) REFERENCES events(id);
CREATE INDEX mail_announcements_due ON mail_announcements USING btree (due_at, id);
CREATE INDEX mail_announcements_of_event ON mail_announcements USING btree (event_id, id);

-- mail_paragraphs -----------------------------------------------------------------------------------------------------

CREATE TABLE mail_paragraphs (
    event_id bigint NOT NULL,
    kind text NOT NULL,
    text text NOT NULL,
    CONSTRAINT mail_paragraphs_kind_check CHECK ((kind = ANY (ARRAY['seat'::text, 'waitlisted'::text, 'promoted'::text, 'refused'::text, 'removed'::text, 'event_changed'::text, 'event_cancelled'::text, 'payment_due'::text, 'refund'::text]))),
    CONSTRAINT mail_paragraphs_text_check CHECK (((length(text) >= 1) AND (length(text) <= 1000)))
);
ALTER TABLE ONLY mail_paragraphs
    ADD CONSTRAINT mail_paragraphs_pkey PRIMARY KEY (event_id, kind);
ALTER TABLE ONLY mail_paragraphs
    ADD CONSTRAINT mail_paragraphs_event_id_fkey FOREIGN KEY (event_id) REFERENCES events(id);

-- mail_rate -----------------------------------------------------------------------------------------------------------

CREATE TABLE mail_rate (
    is_only_row boolean DEFAULT true NOT NULL,
    next_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT mail_rate_is_only_row_check CHECK (is_only_row)
);
ALTER TABLE ONLY mail_rate
    ADD CONSTRAINT mail_rate_pkey PRIMARY KEY (is_only_row);

-- mail_releases -------------------------------------------------------------------------------------------------------

CREATE TABLE mail_releases (
    organizer_id bigint NOT NULL
);
ALTER TABLE ONLY mail_releases
    ADD CONSTRAINT mail_releases_pkey PRIMARY KEY (organizer_id);
ALTER TABLE ONLY mail_releases
    ADD CONSTRAINT mail_releases_organizer_id_fkey FOREIGN KEY (organizer_id) REFERENCES users(id) ON DELETE CASCADE;

-- mail_sender ---------------------------------------------------------------------------------------------------------

CREATE TABLE mail_sender (
);

-- mail_shares ---------------------------------------------------------------------------------------------------------

CREATE TABLE mail_shares (
    share integer NOT NULL,
    lease_id uuid,
    due_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT mail_shares_share_check CHECK (((share >= 0) AND (share <= 63)))
);
ALTER TABLE ONLY mail_shares
    ADD CONSTRAINT mail_shares_pkey PRIMARY KEY (share);

-- mails ---------------------------------------------------------------------------------------------------------------

CREATE TABLE mails (
    id bigint NOT NULL,
    kind text NOT NULL,
    thread text NOT NULL,
    bulk boolean DEFAULT false NOT NULL,
    recipient text NOT NULL,
    arguments jsonb NOT NULL,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    due_at timestamp with time zone DEFAULT now() NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    ended_at timestamp with time zone,
    outcome text,
    error text,
    hold text,
    released_at timestamp with time zone,
    counted_for text,
    counted_at timestamp with time zone,
    CONSTRAINT mails_attempts_check CHECK ((attempts >= 0)),
    CONSTRAINT mails_check CHECK (((outcome IS NULL) = (ended_at IS NULL))),
    CONSTRAINT mails_check1 CHECK (((outcome IS DISTINCT FROM 'failed'::text) OR (error IS NOT NULL))),
    CONSTRAINT mails_error_check CHECK ((length(error) <= 1000)),
    CONSTRAINT mails_hold_check CHECK (((length(hold) >= 1) AND (length(hold) <= 100))),
    CONSTRAINT mails_kind_check CHECK (((length(kind) >= 1) AND (length(kind) <= 100))),
    CONSTRAINT mails_outcome_check CHECK ((outcome = ANY (ARRAY['sent'::text, 'superseded'::text, 'failed'::text]))),
    CONSTRAINT mails_thread_check CHECK (((length(thread) >= 1) AND (length(thread) <= 200)))
);
ALTER TABLE mails ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME mails_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY mails
    ADD CONSTRAINT mails_pkey PRIMARY KEY (id);
CREATE INDEX mails_counted ON mails USING btree (counted_for, counted_at) WHERE (counted_for IS NOT NULL);
CREATE INDEX mails_ended ON mails USING btree (ended_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX mails_failed ON mails USING btree (id) WHERE (outcome = 'failed'::text);
CREATE INDEX mails_held ON mails USING btree (due_at, id) WHERE ((ended_at IS NULL) AND (hold IS NOT NULL));
CREATE INDEX mails_held_of_organizer ON mails USING btree ((((arguments ->> 'organizer_id'::text))::bigint), id) WHERE ((ended_at IS NULL) AND (hold = 'organizer'::text));
CREATE INDEX mails_in_shares ON mails USING btree (mail_share(recipient), bulk, COALESCE((arguments ->> 'organizer_id'::text), (arguments ->> 'merchant_id'::text), ''::text), due_at, id) WHERE ((ended_at IS NULL) AND (hold IS NULL));
CREATE INDEX mails_in_threads ON mails USING btree (thread, id) WHERE (ended_at IS NULL);
CREATE INDEX mails_in_turns ON mails USING btree (bulk, COALESCE((arguments ->> 'organizer_id'::text), (arguments ->> 'merchant_id'::text), ''::text), due_at, id) WHERE ((ended_at IS NULL) AND (hold IS NULL));
CREATE INDEX mails_of_organizer ON mails USING btree ((((arguments ->> 'organizer_id'::text))::bigint), COALESCE(outcome, 'waiting'::text), id) WHERE (arguments ? 'organizer_id'::text);
CREATE INDEX mails_of_recipient ON mails USING hash (recipient);
CREATE INDEX mails_to_send ON mails USING btree (bulk, due_at, id) WHERE ((ended_at IS NULL) AND (hold IS NULL));
CREATE TRIGGER tell_of_mails AFTER INSERT ON mails REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION tell_of_mails();

-- migrations ----------------------------------------------------------------------------------------------------------

CREATE TABLE migrations (
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (name);

-- oauth_access_tokens -------------------------------------------------------------------------------------------------

CREATE TABLE oauth_access_tokens (
    hash bytea NOT NULL,
    grant_id bigint NOT NULL,
    scopes text[] NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT oauth_access_tokens_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT oauth_access_tokens_scopes_check CHECK ((cardinality(scopes) > 0))
);
ALTER TABLE ONLY oauth_access_tokens
    ADD CONSTRAINT oauth_access_tokens_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY oauth_access_tokens
    ADD CONSTRAINT oauth_access_tokens_grant_id_fkey FOREIGN KEY (grant_id) REFERENCES oauth_grants(id) ON DELETE CASCADE;
CREATE INDEX oauth_access_tokens_of_grant ON oauth_access_tokens USING btree (grant_id);
CREATE INDEX oauth_access_tokens_over ON oauth_access_tokens USING btree (expires_at);

-- oauth_clients -------------------------------------------------------------------------------------------------------

CREATE TABLE oauth_clients (
    id text NOT NULL,
    name text,
    redirect_uris text[] NOT NULL,
    fetched_until timestamp with time zone,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    used_at timestamp with time zone,
    auth_methods text[] DEFAULT '{none}'::text[] NOT NULL,
    jwks jsonb,
    jwks_uri text,
    CONSTRAINT oauth_clients_auth_methods_check CHECK (((cardinality(auth_methods) > 0) AND (auth_methods <@ '{none,private_key_jwt}'::text[]))),
    CONSTRAINT oauth_clients_check CHECK (((fetched_until IS NOT NULL) = starts_with(id, 'https://'::text))),
    CONSTRAINT oauth_clients_check1 CHECK ((num_nonnulls(jwks, jwks_uri) = (('private_key_jwt'::text = ANY (auth_methods)))::integer)),
    CONSTRAINT oauth_clients_id_check CHECK (((length(id) >= 1) AND (length(id) <= 500))),
    CONSTRAINT oauth_clients_jwks_check CHECK ((jsonb_typeof(jwks) = 'array'::text)),
    CONSTRAINT oauth_clients_jwks_uri_check CHECK ((length(jwks_uri) <= 500)),
    CONSTRAINT oauth_clients_name_check CHECK (((length(name) >= 1) AND (length(name) <= 100))),
    CONSTRAINT oauth_clients_redirect_uris_check CHECK (((cardinality(redirect_uris) >= 1) AND (cardinality(redirect_uris) <= 20)))
);
ALTER TABLE ONLY oauth_clients
    ADD CONSTRAINT oauth_clients_pkey PRIMARY KEY (id);
CREATE INDEX oauth_clients_unused ON oauth_clients USING btree (COALESCE(used_at, inserted_at));

-- oauth_codes ---------------------------------------------------------------------------------------------------------

CREATE TABLE oauth_codes (
    hash bytea NOT NULL,
    grant_id bigint NOT NULL,
    redirect_uri text NOT NULL,
    challenge text NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    CONSTRAINT oauth_codes_challenge_check CHECK ((challenge ~ '^[A-Za-z0-9_-]{43}$'::text)),
    CONSTRAINT oauth_codes_hash_check CHECK ((length(hash) = 32))
);
ALTER TABLE ONLY oauth_codes
    ADD CONSTRAINT oauth_codes_grant_id_key UNIQUE (grant_id);
ALTER TABLE ONLY oauth_codes
    ADD CONSTRAINT oauth_codes_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY oauth_codes
    ADD CONSTRAINT oauth_codes_grant_id_fkey FOREIGN KEY (grant_id) REFERENCES oauth_grants(id) ON DELETE CASCADE;

-- oauth_grants --------------------------------------------------------------------------------------------------------

CREATE TABLE oauth_grants (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    client_id text NOT NULL,
    scopes text[] NOT NULL,
    granted_at timestamp with time zone DEFAULT now() NOT NULL,
    used_at timestamp with time zone,
    expires_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    reason text,
    CONSTRAINT oauth_grants_check CHECK (((ended_at IS NULL) = (reason IS NULL))),
    CONSTRAINT oauth_grants_reason_check CHECK ((reason = ANY (ARRAY['disconnected'::text, 'revoked'::text, 'code_misused'::text, 'refresh_token_misused'::text]))),
    CONSTRAINT oauth_grants_scopes_check CHECK ((cardinality(scopes) > 0))
);
ALTER TABLE oauth_grants ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME oauth_grants_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY oauth_grants
    ADD CONSTRAINT oauth_grants_pkey PRIMARY KEY (id);
ALTER TABLE ONLY oauth_grants
    ADD CONSTRAINT oauth_grants_client_id_fkey FOREIGN KEY (client_id) REFERENCES oauth_clients(id);
CREATE INDEX oauth_grants_of_account ON oauth_grants USING btree (account_id);
CREATE INDEX oauth_grants_of_client ON oauth_grants USING btree (client_id);
CREATE INDEX oauth_grants_of_tenant ON oauth_grants USING btree (tenant_id, client_id);
CREATE INDEX oauth_grants_over ON oauth_grants USING btree (LEAST(expires_at, ended_at));
CREATE TRIGGER tell_webhooks_of_app AFTER INSERT ON oauth_grants FOR EACH ROW EXECUTE FUNCTION tell_webhooks_of_app();

-- oauth_refresh_tokens ------------------------------------------------------------------------------------------------

CREATE TABLE oauth_refresh_tokens (
    hash bytea NOT NULL,
    grant_id bigint NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    sealed_successor bytea,
    CONSTRAINT oauth_refresh_tokens_check CHECK (((sealed_successor IS NULL) OR (used_at IS NOT NULL))),
    CONSTRAINT oauth_refresh_tokens_hash_check CHECK ((length(hash) = 32))
);
ALTER TABLE ONLY oauth_refresh_tokens
    ADD CONSTRAINT oauth_refresh_tokens_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY oauth_refresh_tokens
    ADD CONSTRAINT oauth_refresh_tokens_grant_id_fkey FOREIGN KEY (grant_id) REFERENCES oauth_grants(id) ON DELETE CASCADE;
CREATE UNIQUE INDEX oauth_refresh_token_of_now ON oauth_refresh_tokens USING btree (grant_id) WHERE (used_at IS NULL);
CREATE INDEX oauth_refresh_tokens_of_grant ON oauth_refresh_tokens USING btree (grant_id);
CREATE INDEX oauth_refresh_tokens_over ON oauth_refresh_tokens USING btree (expires_at);

-- oauth_subjects ------------------------------------------------------------------------------------------------------

CREATE TABLE oauth_subjects (
    hash bytea NOT NULL,
    issuer text NOT NULL,
    subject text NOT NULL,
    user_id bigint,
    email text,
    since timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT oauth_subjects_check CHECK ((hash = sha256(convert_to(((issuer || '
'::text) || subject), 'UTF8'::name)))),
    CONSTRAINT oauth_subjects_check1 CHECK (((email IS NULL) OR (user_id IS NOT NULL))),
    CONSTRAINT oauth_subjects_subject_check CHECK (((length(subject) >= 1) AND (length(subject) <= 255)))
);
ALTER TABLE ONLY oauth_subjects
    ADD CONSTRAINT oauth_subjects_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY oauth_subjects
    ADD CONSTRAINT oauth_subjects_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id);
CREATE UNIQUE INDEX oauth_subject_by_address ON oauth_subjects USING btree (user_id, issuer) WHERE (email IS NOT NULL);
CREATE INDEX oauth_subjects_of_user ON oauth_subjects USING btree (user_id);

-- own_cancellations ---------------------------------------------------------------------------------------------------

CREATE TABLE own_cancellations (
    event_id bigint CONSTRAINT given_up_places_event_id_not_null NOT NULL,
    arrival bigint CONSTRAINT given_up_places_arrival_not_null NOT NULL,
    cancelled_at timestamp with time zone CONSTRAINT given_up_places_given_up_at_not_null NOT NULL,
    had_seat boolean CONSTRAINT given_up_places_had_seat_not_null NOT NULL,
    next_arrival bigint,
    passed_on_at timestamp with time zone,
    CONSTRAINT only_a_seat_has_a_next_person CHECK ((had_seat OR (next_arrival IS NULL))),
    CONSTRAINT only_to_the_next_person_it_is_passed_on CHECK (((next_arrival IS NOT NULL) OR (passed_on_at IS NULL)))
);
ALTER TABLE ONLY own_cancellations
    ADD CONSTRAINT own_cancellations_pkey PRIMARY KEY (event_id, arrival);
ALTER TABLE ONLY own_cancellations
    ADD CONSTRAINT own_cancellations_event_id_fkey FOREIGN KEY (event_id) REFERENCES events(id) ON DELETE CASCADE;
CREATE INDEX own_cancellations_held ON own_cancellations USING btree (event_id, next_arrival) WHERE ((next_arrival IS NOT NULL) AND (passed_on_at IS NULL));
CREATE INDEX own_cancellations_old ON own_cancellations USING btree (cancelled_at);
CREATE TRIGGER count_seat_passed_at_once AFTER INSERT ON own_cancellations FOR EACH ROW WHEN ((new.passed_on_at IS NOT NULL)) EXECUTE FUNCTION count_passed_seats();
CREATE TRIGGER count_seat_passed_later AFTER UPDATE OF passed_on_at ON own_cancellations FOR EACH ROW WHEN (((old.passed_on_at IS NULL) AND (new.passed_on_at IS NOT NULL))) EXECUTE FUNCTION count_passed_seats();

-- payments ------------------------------------------------------------------------------------------------------------

CREATE TABLE payments (
    id bigint NOT NULL,
    event_id bigint NOT NULL,
    user_id bigint NOT NULL,
    arrival bigint NOT NULL,
    amount bigint NOT NULL,
    fee bigint NOT NULL,
    currency text NOT NULL,
    account_id text,
    refund_days integer DEFAULT 0 NOT NULL,
    state payment_state DEFAULT 'opening'::payment_state NOT NULL,
    session_id text,
    intent_id text,
    url text,
    checkout jsonb,
    ends_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone DEFAULT now(),
    attempts integer DEFAULT 0 NOT NULL,
    error text,
    refunded bigint DEFAULT 0 NOT NULL,
    kept bigint DEFAULT 0 NOT NULL,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    paid_at timestamp with time zone,
    language text,
    lease_id uuid,
    CONSTRAINT no_more_is_given_back_than_was_paid CHECK (((refunded >= 0) AND (kept >= 0) AND ((refunded + kept) <= amount))),
    CONSTRAINT payments_amount_check CHECK ((amount > 0)),
    CONSTRAINT payments_check CHECK (((fee >= 0) AND (fee < amount))),
    CONSTRAINT payments_check1 CHECK (((state <> ALL (ARRAY['open'::payment_state, 'paid'::payment_state])) OR (session_id IS NOT NULL))),
    CONSTRAINT payments_check2 CHECK (((state = 'paid'::payment_state) = (paid_at IS NOT NULL))),
    CONSTRAINT payments_check3 CHECK (((state = 'paid'::payment_state) OR ((refunded + kept) = 0))),
    CONSTRAINT payments_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT payments_error_check CHECK ((length(error) <= 1000)),
    CONSTRAINT payments_language_check CHECK ((language ~ '^[a-z]{2}$'::text))
);
ALTER TABLE payments ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME payments_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY payments
    ADD CONSTRAINT payments_intent_id_key UNIQUE (intent_id);
ALTER TABLE ONLY payments
    ADD CONSTRAINT payments_pkey PRIMARY KEY (id);
ALTER TABLE ONLY payments
    ADD CONSTRAINT payments_session_id_key UNIQUE (session_id);
ALTER TABLE ONLY payments
    ADD CONSTRAINT payments_event_id_fkey FOREIGN KEY (event_id) REFERENCES events(id);
ALTER TABLE ONLY payments
    ADD CONSTRAINT payments_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id);
CREATE UNIQUE INDEX one_payment_at_a_time ON payments USING btree (event_id, user_id, arrival) WHERE (state = ANY (ARRAY['opening'::payment_state, 'open'::payment_state]));
CREATE INDEX payments_due ON payments USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX payments_newest ON payments USING btree (inserted_at);
CREATE INDEX payments_of_event ON payments USING btree (event_id, id);
CREATE INDEX payments_of_person ON payments USING btree (user_id);
CREATE INDEX payments_of_registration ON payments USING btree (event_id, user_id, arrival);
CREATE TRIGGER tell_of_changed_payments AFTER UPDATE ON payments REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION tell_of_event_details();
CREATE TRIGGER tell_of_new_payments AFTER INSERT ON payments REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION tell_of_event_details();

-- payout_accounts -----------------------------------------------------------------------------------------------------

CREATE TABLE payout_accounts (
    organizer_id bigint NOT NULL,
    account_id text NOT NULL,
    refund_days integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    error text,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    is_confirmed boolean DEFAULT false NOT NULL,
    linked_at timestamp with time zone,
    lease_id uuid,
    CONSTRAINT payout_accounts_error_check CHECK ((length(error) <= 1000)),
    CONSTRAINT payout_accounts_refund_days_check CHECK (((refund_days >= 0) AND (refund_days <= 3650)))
);
ALTER TABLE ONLY payout_accounts
    ADD CONSTRAINT payout_accounts_account_id_key UNIQUE (account_id);
ALTER TABLE ONLY payout_accounts
    ADD CONSTRAINT payout_accounts_pkey PRIMARY KEY (organizer_id);
ALTER TABLE ONLY payout_accounts
    ADD CONSTRAINT payout_accounts_organizer_id_fkey FOREIGN KEY (organizer_id) REFERENCES users(id);
CREATE INDEX payout_accounts_due ON payout_accounts USING btree (due_at) WHERE (due_at IS NOT NULL);

-- photos --------------------------------------------------------------------------------------------------------------

CREATE TABLE photos (
    key text NOT NULL,
    organizer_id bigint,
    state photo_state DEFAULT 'awaited'::photo_state NOT NULL,
    content_type text NOT NULL,
    content_length integer NOT NULL,
    upload_ends timestamp with time zone,
    idle_since timestamp with time zone DEFAULT now(),
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    width integer,
    height integer,
    widths integer[] DEFAULT '{}'::integer[] NOT NULL,
    scaling_due timestamp with time zone DEFAULT now(),
    scaling_tried integer DEFAULT 0 NOT NULL,
    networks text[],
    CONSTRAINT a_key_names_whose_it_is CHECK ((split_part(key, '/'::text, 2) = COALESCE((organizer_id)::text, 'admin'::text))),
    CONSTRAINT a_size_is_not_wider_than_its_photo CHECK (((cardinality(widths) = 0) OR ((width IS NOT NULL) AND (height IS NOT NULL) AND (width >= ALL (widths))))),
    CONSTRAINT photos_content_length_check CHECK (((content_length >= 1) AND (content_length <= 5000000))),
    CONSTRAINT photos_content_type_check CHECK ((content_type = ANY (ARRAY['image/jpeg'::text, 'image/png'::text, 'image/webp'::text, 'image/gif'::text]))),
    CONSTRAINT photos_height_check CHECK ((height > 0)),
    CONSTRAINT photos_key_check CHECK ((key ~ '^photos/([1-9][0-9]*|admin)/[A-Za-z0-9_-]{22}\.(jpg|png|webp|gif)$'::text)),
    CONSTRAINT photos_width_check CHECK ((width > 0))
);
ALTER TABLE ONLY photos
    ADD CONSTRAINT photos_key_state_key UNIQUE (key, state);
ALTER TABLE ONLY photos
    ADD CONSTRAINT photos_pkey PRIMARY KEY (key);
ALTER TABLE ONLY photos
    ADD CONSTRAINT photos_organizer_id_fkey FOREIGN KEY (organizer_id) REFERENCES users(id);
CREATE INDEX photos_idle ON photos USING btree (idle_since) WHERE (idle_since IS NOT NULL);
CREATE INDEX photos_idle_of_organizer ON photos USING btree (organizer_id) WHERE (idle_since IS NOT NULL);
CREATE INDEX photos_of_organizer ON photos USING btree (organizer_id);
CREATE INDEX photos_of_strangers ON photos USING btree (idle_since) INCLUDE (organizer_id, networks, content_length) WHERE (networks IS NOT NULL);
CREATE INDEX photos_to_scale ON photos USING btree (scaling_due) WHERE ((state = 'accepted'::photo_state) AND (scaling_due IS NOT NULL));
CREATE INDEX photos_to_scale_of_organizer ON photos USING btree (COALESCE(organizer_id, (0)::bigint), scaling_due DESC) WHERE ((state = 'accepted'::photo_state) AND (scaling_due IS NOT NULL));
CREATE INDEX photos_uploaded ON photos USING btree (upload_ends) WHERE (upload_ends IS NOT NULL);
CREATE TRIGGER tell_of_any_event AFTER UPDATE OF widths ON photos FOR EACH ROW WHEN ((old.widths IS DISTINCT FROM new.widths)) EXECUTE FUNCTION tell_of_any_event();

-- price_changes -------------------------------------------------------------------------------------------------------

CREATE TABLE price_changes (
    id bigint NOT NULL,
    event_id bigint NOT NULL,
    reason price_change_reason NOT NULL,
    original_price bigint,
    new_price bigint NOT NULL,
    "timestamp" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
ALTER TABLE price_changes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME price_changes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY price_changes
    ADD CONSTRAINT price_changes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY price_changes
    ADD CONSTRAINT price_changes_event_id_fkey FOREIGN KEY (event_id) REFERENCES events(id);
CREATE INDEX price_changes_of_event ON price_changes USING btree (event_id, id DESC);

-- processor_events ----------------------------------------------------------------------------------------------------

CREATE TABLE processor_events (
    id text NOT NULL,
    kind text NOT NULL,
    object_id text,
    received_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT processor_events_id_check CHECK (((length(id) >= 1) AND (length(id) <= 255))),
    CONSTRAINT processor_events_kind_check CHECK (((length(kind) >= 1) AND (length(kind) <= 255))),
    CONSTRAINT processor_events_object_id_check CHECK ((length(object_id) <= 255))
);
ALTER TABLE ONLY processor_events
    ADD CONSTRAINT processor_events_pkey PRIMARY KEY (id);
CREATE INDEX processor_events_received ON processor_events USING btree (received_at);

-- push_subscriptions --------------------------------------------------------------------------------------------------

CREATE TABLE push_subscriptions (
    id bigint NOT NULL,
    event_id bigint NOT NULL,
    user_id bigint NOT NULL,
    organizer_id bigint NOT NULL,
    digest bytea NOT NULL,
    sealed bytea NOT NULL,
    language text NOT NULL,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    forget_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    lease_id uuid,
    error text,
    CONSTRAINT push_subscriptions_language_check CHECK ((language ~ '^[a-z]{2}$'::text))
);
ALTER TABLE push_subscriptions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME push_subscriptions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY push_subscriptions
    ADD CONSTRAINT push_subscriptions_event_id_user_id_digest_key UNIQUE (event_id, user_id, digest);
ALTER TABLE ONLY push_subscriptions
    ADD CONSTRAINT push_subscriptions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY push_subscriptions
    ADD CONSTRAINT push_subscriptions_event_id_user_id_fkey FOREIGN KEY (event_id, user_id) REFERENCES registrations(event_id, user_id) ON UPDATE CASCADE ON DELETE CASCADE;
CREATE INDEX push_subscriptions_due ON push_subscriptions USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX push_subscriptions_of_user ON push_subscriptions USING btree (user_id);
CREATE INDEX push_subscriptions_old ON push_subscriptions USING btree (forget_at);
CREATE INDEX push_subscriptions_turns ON push_subscriptions USING btree (organizer_id, due_at) WHERE (due_at IS NOT NULL);

-- queue_draws ---------------------------------------------------------------------------------------------------------

CREATE TABLE queue_draws (
    queue_id bigint NOT NULL,
    round bigint NOT NULL,
    signature bytea NOT NULL,
    seed bytea NOT NULL,
    order_hash bytea NOT NULL,
    drawn_at timestamp with time zone NOT NULL,
    CONSTRAINT queue_draws_order_hash_check CHECK ((length(order_hash) = 32)),
    CONSTRAINT queue_draws_seed_check CHECK ((length(seed) = 32)),
    CONSTRAINT queue_draws_signature_check CHECK ((length(signature) = 48))
);
ALTER TABLE ONLY queue_draws
    ADD CONSTRAINT queue_draws_pkey PRIMARY KEY (queue_id);
ALTER TABLE ONLY queue_draws
    ADD CONSTRAINT queue_draws_queue_id_round_fkey FOREIGN KEY (queue_id, round) REFERENCES queue_freezes(queue_id, round) ON DELETE CASCADE;
CREATE TRIGGER keep_draws BEFORE DELETE OR UPDATE ON queue_draws FOR EACH ROW EXECUTE FUNCTION keep_draws();

-- queue_freezes -------------------------------------------------------------------------------------------------------

CREATE TABLE queue_freezes (
    queue_id bigint NOT NULL,
    origin text NOT NULL,
    entries bigint NOT NULL,
    size bigint NOT NULL,
    root bytea NOT NULL,
    round bigint NOT NULL,
    frozen_at timestamp with time zone NOT NULL,
    CONSTRAINT queue_freezes_entries_check CHECK ((entries >= 0)),
    CONSTRAINT queue_freezes_root_check CHECK ((length(root) = 32)),
    CONSTRAINT queue_freezes_round_check CHECK ((round > 0)),
    CONSTRAINT queue_freezes_size_check CHECK ((size > 0))
);
ALTER TABLE ONLY queue_freezes
    ADD CONSTRAINT queue_freezes_pkey PRIMARY KEY (queue_id);
ALTER TABLE ONLY queue_freezes
    ADD CONSTRAINT queue_freezes_queue_id_round_key UNIQUE (queue_id, round);
ALTER TABLE ONLY queue_freezes
    ADD CONSTRAINT queue_freezes_queue_id_fkey FOREIGN KEY (queue_id) REFERENCES queues(id) ON DELETE CASCADE;
CREATE TRIGGER keep_draws BEFORE DELETE OR UPDATE ON queue_freezes FOR EACH ROW EXECUTE FUNCTION keep_draws();

-- queue_places --------------------------------------------------------------------------------------------------------

CREATE TABLE queue_places (
    queue_id bigint NOT NULL,
    number bigint NOT NULL,
    places integer[] NOT NULL,
    CONSTRAINT queue_places_number_check CHECK ((number >= 0)),
    CONSTRAINT queue_places_places_check CHECK (((cardinality(places) >= 1) AND (cardinality(places) <= 256)))
);
ALTER TABLE ONLY queue_places ALTER COLUMN places SET STORAGE PLAIN;
ALTER TABLE ONLY queue_places
    ADD CONSTRAINT queue_places_pkey PRIMARY KEY (queue_id, number);
ALTER TABLE ONLY queue_places
    ADD CONSTRAINT queue_places_queue_id_fkey FOREIGN KEY (queue_id) REFERENCES queue_draws(queue_id) ON DELETE CASCADE;
CREATE TRIGGER keep_draws BEFORE DELETE OR UPDATE ON queue_places FOR EACH ROW EXECUTE FUNCTION keep_draws();

-- queue_releases ------------------------------------------------------------------------------------------------------

CREATE TABLE queue_releases (
    queue_id bigint NOT NULL,
    first_ticket bigint NOT NULL,
    last_ticket bigint NOT NULL,
    released_at timestamp with time zone NOT NULL,
    CONSTRAINT queue_releases_check CHECK ((first_ticket <= last_ticket))
);
ALTER TABLE ONLY queue_releases
    ADD CONSTRAINT queue_releases_pkey PRIMARY KEY (queue_id, last_ticket);
ALTER TABLE ONLY queue_releases
    ADD CONSTRAINT queue_releases_queue_id_fkey FOREIGN KEY (queue_id) REFERENCES queues(id);
CREATE INDEX queue_releases_in_time ON queue_releases USING btree (queue_id, released_at);
CREATE TRIGGER log_release_of_older_version AFTER INSERT ON queue_releases FOR EACH ROW WHEN ((COALESCE(current_setting('holdfast.logs_releases'::text, true), ''::text) = ''::text)) EXECUTE FUNCTION log_release_of_older_version();

-- queue_signing_keys --------------------------------------------------------------------------------------------------

CREATE TABLE queue_signing_keys (
    kid text NOT NULL,
    sealed bytea NOT NULL,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY queue_signing_keys
    ADD CONSTRAINT queue_signing_keys_pkey PRIMARY KEY (kid);

-- queue_visitors ------------------------------------------------------------------------------------------------------

CREATE TABLE queue_visitors (
    queue_id bigint NOT NULL,
    visitor_id text NOT NULL,
    ticket bigint NOT NULL,
    joined_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    token_id text,
    issued_at timestamp with time zone,
    expires_at timestamp with time zone,
    use_count integer DEFAULT 0 NOT NULL,
    consumed_at timestamp with time zone,
    nonce uuid,
    CONSTRAINT a_token_has_its_times CHECK ((((token_id IS NULL) = (issued_at IS NULL)) AND ((token_id IS NULL) = (expires_at IS NULL)))),
    CONSTRAINT only_a_token_is_used CHECK (((token_id IS NOT NULL) OR ((use_count = 0) AND (consumed_at IS NULL)))),
    CONSTRAINT queue_visitors_ticket_check CHECK ((ticket > 0)),
    CONSTRAINT queue_visitors_use_count_check CHECK ((use_count >= 0)),
    CONSTRAINT queue_visitors_visitor_id_check CHECK (((length(visitor_id) >= 1) AND (length(visitor_id) <= 255)))
);
ALTER TABLE ONLY queue_visitors
    ADD CONSTRAINT a_ticket_belongs_to_one_visitor UNIQUE (queue_id, ticket);
ALTER TABLE ONLY queue_visitors
    ADD CONSTRAINT queue_visitors_pkey PRIMARY KEY (queue_id, visitor_id);
CREATE TRIGGER check_queues_of_inserted AFTER INSERT ON queue_visitors REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION check_queues();
CREATE TRIGGER log_join_of_older_version AFTER INSERT OR UPDATE OF ticket ON queue_visitors FOR EACH ROW WHEN (((new.nonce IS NULL) AND (COALESCE(current_setting('holdfast.locked_queues'::text, true), ''::text) = ''::text))) EXECUTE FUNCTION log_join_of_older_version();
CREATE TRIGGER refuse_change_of_key BEFORE UPDATE OF queue_id ON queue_visitors FOR EACH ROW WHEN ((old.queue_id <> new.queue_id)) EXECUTE FUNCTION refuse_change_of_key();

-- queues --------------------------------------------------------------------------------------------------------------

CREATE TABLE queues (
    id bigint NOT NULL,
    organizer_id bigint NOT NULL,
    title text NOT NULL,
    description text,
    active boolean NOT NULL,
    paused_at timestamp with time zone,
    starts_at timestamp with time zone,
    ends_at timestamp with time zone,
    max_queue_size integer,
    release_rate integer NOT NULL,
    target_url text NOT NULL,
    token_ttl_minutes integer NOT NULL,
    tickets bigint DEFAULT 0 NOT NULL,
    serving bigint DEFAULT 0 NOT NULL,
    paced_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    rated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    deleted_at timestamp with time zone,
    public_log boolean DEFAULT true NOT NULL,
    draw_at timestamp with time zone,
    draw_round bigint,
    draw_round_at timestamp with time zone,
    draw_entries bigint,
    drawn_at timestamp with time zone,
    draw_void_at timestamp with time zone,
    event_id bigint,
    CONSTRAINT nobody_is_released_before_the_draw CHECK (((draw_at IS NULL) OR (drawn_at IS NOT NULL) OR (serving = 0))),
    CONSTRAINT paused_since_a_moment CHECK ((active = (paused_at IS NULL))),
    CONSTRAINT queues_max_queue_size_check CHECK ((max_queue_size > 0)),
    CONSTRAINT queues_release_rate_check CHECK ((release_rate > 0)),
    CONSTRAINT queues_target_url_check CHECK ((target_url ~* '^https?://'::text)),
    CONSTRAINT queues_token_ttl_minutes_check CHECK ((token_ttl_minutes > 0)),
    CONSTRAINT serves_only_tickets_handed_out CHECK (((serving >= 0) AND (serving <= tickets))),
    CONSTRAINT starts_before_it_ends CHECK ((starts_at < ends_at))
)
WITH (fillfactor='20');
ALTER TABLE ONLY queues ALTER COLUMN organizer_id SET (n_distinct=-0.1);
ALTER TABLE queues ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME queues_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY queues
    ADD CONSTRAINT queues_pkey PRIMARY KEY (id);
ALTER TABLE ONLY queues
    ADD CONSTRAINT queues_event_id_fkey FOREIGN KEY (event_id) REFERENCES events(id);
ALTER TABLE ONLY queues
    ADD CONSTRAINT queues_organizer_id_fkey FOREIGN KEY (organizer_id) REFERENCES users(id);
CREATE UNIQUE INDEX an_event_has_one_waiting_room ON queues USING btree (event_id) WHERE ((event_id IS NOT NULL) AND (deleted_at IS NULL));
CREATE INDEX queues_of_organizer ON queues USING btree (organizer_id, id);
CREATE INDEX queues_to_draw ON queues USING btree (draw_at) WHERE ((draw_at IS NOT NULL) AND (drawn_at IS NULL) AND (draw_void_at IS NULL) AND (deleted_at IS NULL));
CREATE TRIGGER check_draw AFTER INSERT OR UPDATE OF draw_at, draw_round, draw_round_at, draw_entries, drawn_at, draw_void_at ON queues FOR EACH ROW EXECUTE FUNCTION check_draw();
CREATE TRIGGER guard_event_by_changed_queue AFTER UPDATE OF event_id, deleted_at ON queues FOR EACH ROW WHEN (((new.event_id IS NOT NULL) AND ((old.event_id IS DISTINCT FROM new.event_id) OR (old.deleted_at IS DISTINCT FROM new.deleted_at)))) EXECUTE FUNCTION guard_event();
CREATE TRIGGER guard_event_by_new_queue AFTER INSERT ON queues FOR EACH ROW WHEN ((new.event_id IS NOT NULL)) EXECUTE FUNCTION guard_event();
CREATE TRIGGER keep_joined_queues AFTER DELETE ON queues REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION keep_joined_queues();
CREATE TRIGGER log_changed_queue AFTER UPDATE OF active, release_rate, max_queue_size, starts_at, ends_at, public_log, deleted_at ON queues FOR EACH ROW WHEN ((((((((old.active IS DISTINCT FROM new.active) OR (old.release_rate IS DISTINCT FROM new.release_rate)) OR (old.max_queue_size IS DISTINCT FROM new.max_queue_size)) OR (old.starts_at IS DISTINCT FROM new.starts_at)) OR (old.ends_at IS DISTINCT FROM new.ends_at)) OR (old.public_log IS DISTINCT FROM new.public_log)) OR (old.deleted_at IS DISTINCT FROM new.deleted_at))) EXECUTE FUNCTION log_queue();
CREATE TRIGGER log_draw AFTER UPDATE OF draw_at, draw_void_at ON queues FOR EACH ROW WHEN (((old.draw_at IS DISTINCT FROM new.draw_at) OR (old.draw_void_at IS DISTINCT FROM new.draw_void_at))) EXECUTE FUNCTION log_draw();
CREATE TRIGGER log_new_queue AFTER INSERT ON queues FOR EACH ROW WHEN (new.public_log) EXECUTE FUNCTION log_queue();
CREATE TRIGGER refuse_change_of_key BEFORE UPDATE OF id ON queues FOR EACH ROW WHEN ((old.id <> new.id)) EXECUTE FUNCTION refuse_change_of_key();
CREATE TRIGGER tell_webhooks_of_drained_queue AFTER UPDATE OF serving ON queues FOR EACH ROW WHEN (((old.serving < new.serving) AND (new.serving = new.tickets))) EXECUTE FUNCTION tell_webhooks_of_queue('queue.drained');
CREATE TRIGGER tell_webhooks_of_new_queue AFTER INSERT ON queues FOR EACH ROW WHEN ((new.active AND ((new.ends_at > now()) IS NOT FALSE))) EXECUTE FUNCTION tell_webhooks_of_queue('queue.opened');
CREATE TRIGGER tell_webhooks_of_opened_queue AFTER UPDATE OF active, ends_at ON queues FOR EACH ROW WHEN ((new.active AND ((new.ends_at > now()) IS NOT FALSE) AND (new.deleted_at IS NULL) AND (NOT (old.active AND ((old.ends_at > now()) IS NOT FALSE))))) EXECUTE FUNCTION tell_webhooks_of_queue('queue.opened');

-- refunds -------------------------------------------------------------------------------------------------------------

CREATE TABLE refunds (
    id bigint NOT NULL,
    payment_id bigint NOT NULL,
    amount bigint NOT NULL,
    reason text NOT NULL,
    state refund_state DEFAULT 'wanted'::refund_state NOT NULL,
    refund_id text,
    due_at timestamp with time zone DEFAULT now(),
    attempts integer DEFAULT 0 NOT NULL,
    error text,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    awaits_dispute boolean DEFAULT false NOT NULL,
    lease_id uuid,
    CONSTRAINT refunds_amount_check CHECK ((amount > 0)),
    CONSTRAINT refunds_check CHECK (((state <> 'made'::refund_state) OR (refund_id IS NOT NULL))),
    CONSTRAINT refunds_error_check CHECK ((length(error) <= 1000)),
    CONSTRAINT refunds_reason_check CHECK ((reason = ANY (ARRAY['no_seat'::text, 'seat_lost'::text, 'event_cancelled'::text, 'by_organizer'::text])))
);
ALTER TABLE refunds ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME refunds_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY refunds
    ADD CONSTRAINT refunds_pkey PRIMARY KEY (id);
ALTER TABLE ONLY refunds
    ADD CONSTRAINT refunds_refund_id_key UNIQUE (refund_id);
ALTER TABLE ONLY refunds
    ADD CONSTRAINT refunds_payment_id_fkey FOREIGN KEY (payment_id) REFERENCES payments(id);
CREATE INDEX refunds_due ON refunds USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX refunds_of_payment ON refunds USING btree (payment_id);
CREATE TRIGGER mail_refund AFTER INSERT ON refunds REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION mail_new_refunds();
CREATE TRIGGER mail_refund_news AFTER UPDATE OF state, awaits_dispute ON refunds FOR EACH ROW WHEN ((((old.state = 'wanted'::refund_state) AND ((new.state = 'refused'::refund_state) OR ((new.state = 'made'::refund_state) AND new.awaits_dispute))) OR ((new.state = 'wanted'::refund_state) AND new.awaits_dispute AND (NOT old.awaits_dispute)))) EXECUTE FUNCTION mail_refund();
CREATE TRIGGER note_dispute_of_refund BEFORE INSERT ON refunds FOR EACH ROW EXECUTE FUNCTION note_dispute_of_refund();
CREATE TRIGGER sum_refunds AFTER INSERT ON refunds REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION sum_refunds();
CREATE TRIGGER tell_of_refunds AFTER UPDATE ON refunds REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION tell_of_refunds();
CREATE TRIGGER tell_webhooks_of_refund AFTER UPDATE OF state ON refunds FOR EACH ROW WHEN (((new.state = 'made'::refund_state) AND (old.state <> 'made'::refund_state))) EXECUTE FUNCTION tell_webhooks_of_refund();

-- registrations -------------------------------------------------------------------------------------------------------

CREATE TABLE registrations (
    event_id bigint NOT NULL,
    user_id bigint NOT NULL,
    arrival bigint NOT NULL,
    status registration_status DEFAULT 'pending'::registration_status NOT NULL,
    amount_paid bigint NOT NULL,
    received_at timestamp with time zone NOT NULL,
    settled_at timestamp with time zone,
    reason text,
    name text,
    language text,
    notify boolean DEFAULT true NOT NULL,
    promoted_at timestamp with time zone,
    details_at timestamp with time zone,
    amount_due bigint,
    held_until timestamp with time zone,
    organizer_id bigint NOT NULL,
    log_number bigint,
    nonce uuid,
    logged_as text,
    form_digest uuid,
    cancels_at timestamp with time zone,
    CONSTRAINT only_held_seats_end CHECK (((status = 'held'::registration_status) = (held_until IS NOT NULL))),
    CONSTRAINT registrations_amount_due_check CHECK ((amount_due > 0)),
    CONSTRAINT registrations_amount_paid_check CHECK ((amount_paid >= 0)),
    CONSTRAINT registrations_check CHECK (((status = 'pending'::registration_status) = (settled_at IS NULL))),
    CONSTRAINT registrations_language_check CHECK ((language ~ '^[a-z]{2}$'::text)),
    CONSTRAINT registrations_log_number_check CHECK ((log_number > 0)),
    CONSTRAINT registrations_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200))),
    CONSTRAINT rejections_have_a_reason CHECK (
CASE status
    WHEN 'rejected'::registration_status THEN (reason IS NOT NULL)
    WHEN 'waitlisted'::registration_status THEN ((reason IS NULL) OR (reason = 'by_organizer'::text))
    ELSE (reason IS NULL)
END),
    CONSTRAINT seats_are_held_for_an_amount CHECK (((status <> 'held'::registration_status) OR (amount_due IS NOT NULL))),
    CONSTRAINT what_was_rejected_is_not_cancelled CHECK (((cancels_at IS NULL) OR (status <> 'rejected'::registration_status)))
);
ALTER TABLE ONLY registrations
    ADD CONSTRAINT registrations_pkey PRIMARY KEY (event_id, user_id);
CREATE INDEX people_of_organizer ON registrations USING btree (organizer_id, user_id) WHERE (status = ANY (ARRAY['registered'::registration_status, 'waitlisted'::registration_status]));
CREATE INDEX registrations_cancelling ON registrations USING btree (cancels_at) WHERE (cancels_at IS NOT NULL);
CREATE INDEX registrations_in_order ON registrations USING btree (received_at, arrival) WHERE (status = ANY (ARRAY['registered'::registration_status, 'waitlisted'::registration_status]));
CREATE INDEX registrations_moved ON registrations USING btree (event_id, received_at, arrival) WHERE ((status = 'waitlisted'::registration_status) AND (reason IS NOT NULL));
CREATE INDEX registrations_of_event ON registrations USING btree (event_id, status, received_at, arrival);
CREATE INDEX registrations_of_organizer ON registrations USING btree (organizer_id, received_at, arrival) WHERE (status = ANY (ARRAY['registered'::registration_status, 'waitlisted'::registration_status]));
CREATE INDEX registrations_of_user ON registrations USING btree (user_id);
CREATE INDEX registrations_to_settle ON registrations USING btree (received_at, arrival) WHERE (status = 'pending'::registration_status);
CREATE TRIGGER check_changed_reference AFTER UPDATE OF event_id, user_id, organizer_id ON registrations FOR EACH ROW WHEN ((((old.event_id IS DISTINCT FROM new.event_id) OR (old.user_id IS DISTINCT FROM new.user_id)) OR (old.organizer_id IS DISTINCT FROM new.organizer_id))) EXECUTE FUNCTION check_changed_reference();
CREATE TRIGGER check_references_of_inserted AFTER INSERT ON registrations REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION check_references();
CREATE TRIGGER count_deleted AFTER DELETE ON registrations REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION count_seats();
CREATE TRIGGER count_inserted AFTER INSERT ON registrations REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION count_seats();
CREATE TRIGGER count_updated AFTER UPDATE ON registrations REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION count_seats();
CREATE TRIGGER forget_amount BEFORE UPDATE OF status ON registrations FOR EACH ROW WHEN (((old.amount_due IS NOT NULL) AND (old.status = 'registered'::registration_status) AND (new.status = 'waitlisted'::registration_status))) EXECUTE FUNCTION forget_amount();
CREATE TRIGGER forget_cancellation BEFORE UPDATE OF status ON registrations FOR EACH ROW WHEN (((new.status = 'rejected'::registration_status) AND (new.cancels_at IS NOT NULL))) EXECUTE FUNCTION forget_cancellation();
CREATE TRIGGER forget_move BEFORE UPDATE OF status ON registrations FOR EACH ROW WHEN (((old.status = 'waitlisted'::registration_status) AND (old.reason IS NOT NULL) AND (new.status <> 'waitlisted'::registration_status) AND (NOT (new.reason IS DISTINCT FROM old.reason)))) EXECUTE FUNCTION forget_move();
CREATE TRIGGER give_back_moved AFTER UPDATE OF status ON registrations FOR EACH ROW WHEN (((old.amount_due IS NOT NULL) AND (old.status = ANY (ARRAY['held'::registration_status, 'registered'::registration_status])) AND (new.status <> ALL (ARRAY['held'::registration_status, 'registered'::registration_status])))) EXECUTE FUNCTION give_back();
CREATE TRIGGER give_back_removed AFTER DELETE ON registrations FOR EACH ROW WHEN (((old.amount_due IS NOT NULL) AND (old.status = ANY (ARRAY['held'::registration_status, 'registered'::registration_status])))) EXECUTE FUNCTION give_back();
CREATE TRIGGER log_changed_registrations AFTER UPDATE ON registrations REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION log_changed_registrations();
CREATE TRIGGER log_removed_registrations AFTER DELETE ON registrations REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION log_removed_registrations();
CREATE TRIGGER mail_deleted AFTER DELETE ON registrations REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION mail_registrations();
CREATE TRIGGER mail_updated AFTER UPDATE ON registrations REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION mail_registrations();
CREATE TRIGGER note_promotion BEFORE UPDATE OF status ON registrations FOR EACH ROW WHEN (((old.status = 'waitlisted'::registration_status) AND (new.status = ANY (ARRAY['registered'::registration_status, 'held'::registration_status])))) EXECUTE FUNCTION note_promotion();
CREATE TRIGGER push_promotion AFTER UPDATE OF status ON registrations FOR EACH ROW WHEN (((old.status = 'waitlisted'::registration_status) AND (new.status = ANY (ARRAY['registered'::registration_status, 'held'::registration_status])))) EXECUTE FUNCTION push_promotion();
CREATE TRIGGER search_registration_anew AFTER UPDATE OF name ON registrations FOR EACH ROW WHEN (((old.name IS DISTINCT FROM new.name) AND (new.status <> 'pending'::registration_status))) EXECUTE FUNCTION search_registration_anew();
CREATE TRIGGER tell_of_changed_registrations AFTER UPDATE ON registrations REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION tell_of_event_details();
CREATE TRIGGER tell_of_deleted_registrations AFTER DELETE ON registrations REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION tell_of_event_details();
CREATE TRIGGER tell_webhooks_of_changed AFTER UPDATE ON registrations REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT WHEN (has_webhooks()) EXECUTE FUNCTION tell_webhooks_of_registrations();
CREATE TRIGGER tell_webhooks_of_removed AFTER DELETE ON registrations REFERENCING OLD TABLE AS before FOR EACH STATEMENT WHEN (has_webhooks()) EXECUTE FUNCTION tell_webhooks_of_registrations();

-- searched_events -----------------------------------------------------------------------------------------------------

CREATE TABLE searched_events (
    event_id bigint NOT NULL,
    received_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    arrival bigint DEFAULT 0 NOT NULL,
    places bigint DEFAULT 0 NOT NULL,
    touched_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY searched_events
    ADD CONSTRAINT searched_events_pkey PRIMARY KEY (event_id);
ALTER TABLE ONLY searched_events
    ADD CONSTRAINT searched_events_event_id_fkey FOREIGN KEY (event_id) REFERENCES events(id);

-- searched_registrations ----------------------------------------------------------------------------------------------

CREATE TABLE searched_registrations (
    event_id bigint NOT NULL,
    user_id bigint NOT NULL,
    words text NOT NULL,
    received_at timestamp with time zone NOT NULL,
    arrival bigint NOT NULL
);
ALTER TABLE ONLY searched_registrations
    ADD CONSTRAINT searched_registrations_pkey PRIMARY KEY (event_id, user_id);
ALTER TABLE ONLY searched_registrations
    ADD CONSTRAINT searched_registrations_event_id_user_id_fkey FOREIGN KEY (event_id, user_id) REFERENCES registrations(event_id, user_id) ON DELETE CASCADE;
CREATE INDEX searched_by_parts ON searched_registrations USING gin (parts(event_id, words)) WITH (gin_pending_list_limit='512');

-- sessions ------------------------------------------------------------------------------------------------------------

CREATE TABLE sessions (
    id bigint NOT NULL,
    hash bytea NOT NULL,
    account_id bigint NOT NULL,
    way text NOT NULL,
    browser text NOT NULL,
    began_at timestamp with time zone DEFAULT now() NOT NULL,
    seen_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT sessions_browser_check CHECK ((length(browser) <= 300)),
    CONSTRAINT sessions_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT sessions_way_check CHECK ((way = ANY (ARRAY['link'::text, 'password'::text, 'platform'::text])))
);
ALTER TABLE sessions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sessions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY sessions
    ADD CONSTRAINT sessions_hash_key UNIQUE (hash);
ALTER TABLE ONLY sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);
CREATE INDEX sessions_by_age ON sessions USING btree (seen_at);
CREATE INDEX sessions_of_account ON sessions USING btree (account_id, id);

-- sign_in_links -------------------------------------------------------------------------------------------------------

CREATE TABLE sign_in_links (
    id bigint NOT NULL,
    email text NOT NULL,
    browser bytea,
    return_to text NOT NULL,
    language text,
    asked_at timestamp with time zone DEFAULT now() NOT NULL,
    used_at timestamp with time zone,
    CONSTRAINT sign_in_links_browser_check CHECK ((length(browser) = 32)),
    CONSTRAINT sign_in_links_email_check CHECK ((length(email) <= 254)),
    CONSTRAINT sign_in_links_return_to_check CHECK ((length(return_to) <= 8000))
);
ALTER TABLE sign_in_links ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sign_in_links_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY sign_in_links
    ADD CONSTRAINT sign_in_links_pkey PRIMARY KEY (id);
CREATE INDEX sign_in_links_by_age ON sign_in_links USING btree (asked_at);

-- stopped_mails -------------------------------------------------------------------------------------------------------

CREATE TABLE stopped_mails (
    mailbox bytea NOT NULL,
    stopped_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT stopped_mails_mailbox_check CHECK ((length(mailbox) = 32))
);
ALTER TABLE ONLY stopped_mails
    ADD CONSTRAINT stopped_mails_pkey PRIMARY KEY (mailbox);

-- trusted_auth_keys ---------------------------------------------------------------------------------------------------

CREATE TABLE trusted_auth_keys (
    kid text NOT NULL,
    sealed bytea NOT NULL,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY trusted_auth_keys
    ADD CONSTRAINT trusted_auth_keys_pkey PRIMARY KEY (kid);

-- users ---------------------------------------------------------------------------------------------------------------

CREATE TABLE users (
    id bigint NOT NULL,
    public_id text NOT NULL,
    email text,
    name text,
    role user_role DEFAULT 'user'::user_role NOT NULL,
    slug text,
    password_hash text,
    payouts_ready boolean DEFAULT false NOT NULL,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    proved_at timestamp with time zone,
    erased_at timestamp with time zone,
    data_link_at timestamp with time zone,
    data_link_holder bytea,
    accent text,
    logo_key text,
    about text,
    registered_from text[],
    CONSTRAINT no_look_of_the_erased_is_kept CHECK (((erased_at IS NULL) OR (COALESCE(accent, logo_key, about) IS NULL))),
    CONSTRAINT nothing_of_the_erased_is_kept CHECK (((erased_at IS NULL) OR ((role = 'user'::user_role) AND (COALESCE(name, password_hash) IS NULL) AND ((slug IS NULL) OR (slug ~ '^ended-[a-z2-7]{8}$'::text)) AND (COALESCE(proved_at, data_link_at) IS NULL) AND (data_link_holder IS NULL)))),
    CONSTRAINT only_the_erased_have_no_address CHECK (((email IS NULL) = (erased_at IS NOT NULL))),
    CONSTRAINT users_about_check CHECK (((length(about) >= 1) AND (length(about) <= 1000))),
    CONSTRAINT users_accent_check CHECK ((accent ~ '^#[0-9a-f]{6}$'::text)),
    CONSTRAINT users_check CHECK (((role <> 'organizer'::user_role) OR ((slug IS NOT NULL) AND (name IS NOT NULL)))),
    CONSTRAINT users_data_link_holder_check CHECK ((length(data_link_holder) = 32)),
    CONSTRAINT users_email_check CHECK ((email = lower((email COLLATE "C")))),
    CONSTRAINT users_public_id_check CHECK ((public_id ~ '^[a-z2-7]{8}$'::text)),
    CONSTRAINT users_slug_check CHECK ((slug ~ '^[a-z0-9-]{3,100}$'::text))
);
ALTER TABLE users ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME users_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
ALTER TABLE ONLY users
    ADD CONSTRAINT users_public_id_key UNIQUE (public_id);
ALTER TABLE ONLY users
    ADD CONSTRAINT users_logo_key_fkey FOREIGN KEY (logo_key) REFERENCES photos(key);
CREATE INDEX organizers ON users USING btree (id) WHERE (role = 'organizer'::user_role);
CREATE UNIQUE INDEX users_email_of_organizer ON users USING btree (email) WHERE (role <> 'user'::user_role);
CREATE UNIQUE INDEX users_email_of_owner ON users USING btree (email) WHERE ((role <> 'organizer'::user_role) OR (proved_at IS NOT NULL));
CREATE UNIQUE INDEX users_logo ON users USING btree (logo_key) WHERE (logo_key IS NOT NULL);
CREATE UNIQUE INDEX users_slug ON users USING btree (slug) WHERE (slug IS NOT NULL);
CREATE INDEX users_with_unusual_address ON users USING btree (id) WHERE ((email !~ '^[a-z0-9._+-]+@([a-z0-9-]+[.])+[a-z]+$'::text) OR (email ~~ '%xn--%'::text));
CREATE TRIGGER forget_networks BEFORE UPDATE OF proved_at, erased_at ON users FOR EACH ROW WHEN (((old.slug IS NOT NULL) AND (COALESCE(old.proved_at, old.erased_at) IS NULL) AND (COALESCE(new.proved_at, new.erased_at) IS NOT NULL))) EXECUTE FUNCTION forget_networks();
CREATE TRIGGER keep_logged_id BEFORE UPDATE OF public_id ON users FOR EACH ROW WHEN ((old.public_id <> new.public_id)) EXECUTE FUNCTION keep_logged_id();
CREATE TRIGGER keep_registered_people AFTER DELETE ON users REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION keep_registered_people();
CREATE TRIGGER refuse_change_of_key BEFORE UPDATE OF id ON users FOR EACH ROW WHEN ((old.id <> new.id)) EXECUTE FUNCTION refuse_change_of_key();
CREATE TRIGGER release_mails AFTER UPDATE OF proved_at ON users FOR EACH ROW WHEN (((old.proved_at IS NULL) AND (new.proved_at IS NOT NULL) AND (new.role = 'organizer'::user_role))) EXECUTE FUNCTION release_mails_of_organizer();
CREATE TRIGGER search_person_anew AFTER UPDATE OF email, name ON users FOR EACH ROW WHEN (((old.email IS DISTINCT FROM new.email) OR (old.name IS DISTINCT FROM new.name))) EXECUTE FUNCTION search_person_anew();
CREATE TRIGGER show_changed_logo AFTER UPDATE OF logo_key ON users FOR EACH ROW WHEN ((new.logo_key IS DISTINCT FROM old.logo_key)) EXECUTE FUNCTION show_logo();
CREATE TRIGGER tell_of_any_event AFTER UPDATE OF name, slug, proved_at ON users FOR EACH ROW WHEN (((old.slug IS NOT NULL) AND (((old.name IS DISTINCT FROM new.name) OR (old.slug IS DISTINCT FROM new.slug)) OR ((old.proved_at IS NULL) IS DISTINCT FROM (new.proved_at IS NULL))))) EXECUTE FUNCTION tell_of_any_event();
CREATE TRIGGER tell_of_look AFTER UPDATE OF about, accent, logo_key, erased_at ON users FOR EACH ROW WHEN (((old.slug IS NOT NULL) AND ((((old.about IS DISTINCT FROM new.about) OR (old.accent IS DISTINCT FROM new.accent)) OR (old.logo_key IS DISTINCT FROM new.logo_key)) OR (old.erased_at IS DISTINCT FROM new.erased_at)))) EXECUTE FUNCTION tell_of_look();
CREATE TRIGGER tell_of_ready_organizers AFTER UPDATE OF payouts_ready ON users FOR EACH ROW WHEN ((old.payouts_ready <> new.payouts_ready)) EXECUTE FUNCTION tell_of_any_event();

-- webhook_attempts ----------------------------------------------------------------------------------------------------

CREATE TABLE webhook_attempts (
    id bigint NOT NULL,
    endpoint_id bigint NOT NULL,
    message_id bigint NOT NULL,
    attempted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    status integer,
    milliseconds integer NOT NULL,
    error text,
    reason text
);
ALTER TABLE webhook_attempts ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME webhook_attempts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY webhook_attempts
    ADD CONSTRAINT webhook_attempts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY webhook_attempts
    ADD CONSTRAINT webhook_attempts_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoints(id) ON DELETE CASCADE;
ALTER TABLE ONLY webhook_attempts
    ADD CONSTRAINT webhook_attempts_message_id_fkey FOREIGN KEY (message_id) REFERENCES webhook_messages(id) ON DELETE CASCADE;
CREATE INDEX webhook_attempts_of_endpoint ON webhook_attempts USING btree (endpoint_id);
CREATE INDEX webhook_attempts_of_message ON webhook_attempts USING btree (message_id, endpoint_id, id);

-- webhook_deliveries --------------------------------------------------------------------------------------------------

CREATE TABLE webhook_deliveries (
    subject_id bigint NOT NULL,
    number bigint NOT NULL,
    endpoint_id bigint NOT NULL,
    message_id bigint NOT NULL,
    status text DEFAULT 'waiting'::text NOT NULL,
    due_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    ended_at timestamp with time zone,
    early_attempts smallint DEFAULT 0 NOT NULL,
    CONSTRAINT ends_once CHECK (((status = 'waiting'::text) = (ended_at IS NULL))),
    CONSTRAINT is_due_while_it_waits CHECK (((due_at IS NULL) OR (status = 'waiting'::text))),
    CONSTRAINT webhook_deliveries_status_check CHECK ((status = ANY (ARRAY['waiting'::text, 'delivered'::text, 'failed'::text])))
);
ALTER TABLE ONLY webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (subject_id, number);
ALTER TABLE ONLY webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoints(id) ON DELETE CASCADE;
ALTER TABLE ONLY webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_message_id_fkey FOREIGN KEY (message_id) REFERENCES webhook_messages(id) ON DELETE CASCADE;
ALTER TABLE ONLY webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_subject_id_fkey FOREIGN KEY (subject_id) REFERENCES webhook_subjects(id) ON DELETE CASCADE;
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries USING btree (endpoint_id, message_id) WHERE (status = 'failed'::text);
CREATE INDEX webhook_deliveries_not_ended ON webhook_deliveries USING btree (endpoint_id, due_at) WHERE (status = 'waiting'::text);
CREATE UNIQUE INDEX webhook_deliveries_of_endpoint ON webhook_deliveries USING btree (endpoint_id, message_id);
CREATE INDEX webhook_deliveries_of_message ON webhook_deliveries USING btree (message_id);
CREATE INDEX webhook_deliveries_retried ON webhook_deliveries USING btree (endpoint_id, message_id) WHERE ((status = 'waiting'::text) AND (attempts > 1) AND (early_attempts < 5));
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries USING btree (subject_id, number) WHERE (status = 'waiting'::text);

-- webhook_endpoints ---------------------------------------------------------------------------------------------------

CREATE TABLE webhook_endpoints (
    id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    url text NOT NULL,
    types text[] NOT NULL,
    is_ordered boolean NOT NULL,
    status text DEFAULT 'active'::text NOT NULL,
    sealed bytea NOT NULL,
    language text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    failing_since timestamp with time zone,
    failures integer DEFAULT 0 NOT NULL,
    is_slow boolean DEFAULT false NOT NULL,
    next_due_at timestamp with time zone,
    leased_until timestamp with time zone DEFAULT now() NOT NULL,
    lease_id uuid,
    attempts integer DEFAULT 0 NOT NULL,
    CONSTRAINT webhook_endpoints_language_check CHECK ((length(language) <= 10)),
    CONSTRAINT webhook_endpoints_status_check CHECK ((status = ANY (ARRAY['active'::text, 'paused'::text, 'failing'::text]))),
    CONSTRAINT webhook_endpoints_types_check CHECK ((cardinality(types) <= 100)),
    CONSTRAINT webhook_endpoints_url_check CHECK ((length(url) <= 2000))
);
ALTER TABLE webhook_endpoints ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME webhook_endpoints_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (id);
CREATE INDEX webhook_endpoints_due ON webhook_endpoints USING btree (next_due_at) WHERE ((status = 'active'::text) AND (next_due_at IS NOT NULL));
CREATE INDEX webhook_endpoints_leased ON webhook_endpoints USING btree (tenant_id) WHERE (lease_id IS NOT NULL);
CREATE INDEX webhook_endpoints_of_tenant ON webhook_endpoints USING btree (tenant_id);
CREATE TRIGGER mail_failing_webhook AFTER UPDATE OF status ON webhook_endpoints FOR EACH ROW WHEN (((new.status = 'failing'::text) AND (old.status <> 'failing'::text))) EXECUTE FUNCTION mail_failing_webhook();

-- webhook_messages ----------------------------------------------------------------------------------------------------

CREATE TABLE webhook_messages (
    id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    endpoint_id bigint,
    type text NOT NULL,
    subject text NOT NULL,
    data jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    is_fanned_out boolean DEFAULT false NOT NULL
);
ALTER TABLE webhook_messages ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME webhook_messages_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY webhook_messages
    ADD CONSTRAINT webhook_messages_pkey PRIMARY KEY (id);
ALTER TABLE ONLY webhook_messages
    ADD CONSTRAINT webhook_messages_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoints(id) ON DELETE CASCADE;
CREATE INDEX webhook_messages_by_age ON webhook_messages USING btree (created_at);
CREATE INDEX webhook_messages_new ON webhook_messages USING btree (tenant_id, id) WHERE (NOT is_fanned_out);
CREATE INDEX webhook_messages_of_endpoint ON webhook_messages USING btree (endpoint_id) WHERE (endpoint_id IS NOT NULL);
CREATE INDEX webhook_messages_of_tenant ON webhook_messages USING btree (tenant_id, created_at);

-- webhook_subjects ----------------------------------------------------------------------------------------------------

CREATE TABLE webhook_subjects (
    id bigint NOT NULL,
    endpoint_id bigint NOT NULL,
    subject text NOT NULL,
    last_number bigint NOT NULL
);
ALTER TABLE webhook_subjects ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME webhook_subjects_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY webhook_subjects
    ADD CONSTRAINT webhook_subjects_endpoint_id_subject_key UNIQUE (endpoint_id, subject);
ALTER TABLE ONLY webhook_subjects
    ADD CONSTRAINT webhook_subjects_pkey PRIMARY KEY (id);
ALTER TABLE ONLY webhook_subjects
    ADD CONSTRAINT webhook_subjects_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoints(id) ON DELETE CASCADE;
