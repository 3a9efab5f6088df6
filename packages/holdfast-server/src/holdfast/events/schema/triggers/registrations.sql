-- What a change of a row causes:
--
-- * insert: its account and its owner must exist (check_references); seats are counted (count_seats)
-- * update: seats are counted (count_seats); a change of status is told to the log of the event
--   (log_changed_registrations), to the person by mail (mail_registrations) and to webhooks
--   (tell_webhooks_of_registrations); tells the pages of organizers (tell_of_event_details)
-- * update of event_id, user_id or organizer_id: the account and the owner must exist (check_changed_reference)
-- * update of status: the moment of a move up from the waiting list is noted (note_promotion); a move to the waiting
--   list forgets what was paid (forget_amount); a move away from it forgets its reason (forget_move); a rejection has
--   nothing to cancel (forget_cancellation); a person who loses a seat gets the money back (give_back); a move up from the
--   waiting list is told to the browsers that asked for it (push_promotion)
-- * update of name: searches find the new name (search_registration_anew)
-- * delete: seats are counted (count_seats); a person who loses a seat gets the money back (give_back); the log of the event
--   (log_removed_registrations), the person (mail_registrations) and webhooks (tell_webhooks_of_registrations) are told;
--   tells the pages of organizers (tell_of_event_details)

-- refuse --------------------------------------------------------------------------------------------------------------

-- What registrations name exists, and is kept as a foreign key keeps it. A foreign key looks up one row after the other,
-- which was a quarter of what PostgreSQL did for a registration. This looks up the rows of a statement at once, under the
-- same locks and with the same errors. Deletions are stopped by `keep_registered_people` and
-- `keep_owners_of_registrations`.
create or replace function check_references() returns trigger language plpgsql as $$
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

create or replace trigger check_references_of_inserted after insert on registrations
    referencing new table as after for each statement execute function check_references();

-- As `check_references`, for updates: few of them change a reference, and a trigger for each statement cannot name columns.
create or replace function check_changed_reference() returns trigger language plpgsql as $$
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

create or replace trigger check_changed_reference after update of event_id, user_id, organizer_id on registrations
    for each row when ((old.event_id, old.user_id, old.organizer_id)
                       is distinct from (new.event_id, new.user_id, new.organizer_id))
    execute function check_changed_reference();

-- change --------------------------------------------------------------------------------------------------------------

-- Seats are counted by the database itself, so that the counters cannot differ from the rows, and the CHECK of events
-- holds capacity whatever the code does. A held seat counts.
create or replace function count_seats() returns trigger language plpgsql as $$
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

create or replace trigger count_inserted after insert on registrations
    referencing new table as after for each statement execute function count_seats();
create or replace trigger count_deleted after delete on registrations
    referencing old table as before for each statement execute function count_seats();
create or replace trigger count_updated after update on registrations
    referencing old table as before new table as after for each statement execute function count_seats();

-- The moment at which a registration moved up from the waiting list.
create or replace function note_promotion() returns trigger language plpgsql as $$
begin
    new.promoted_at = now();
    return new;
end $$;

create or replace trigger note_promotion before update of status on registrations
    for each row when (old.status = 'waitlisted' and new.status in ('registered', 'held'))
    execute function note_promotion();

-- A person who moves from a seat to the waiting list has paid nothing any more, and pays again for the next seat.
create or replace function forget_amount() returns trigger language plpgsql as $$
begin
    new.amount_paid = 0;
    return new;
end $$;

create or replace trigger forget_amount before update of status on registrations
    for each row when (old.amount_due is not null and old.status = 'registered' and new.status = 'waitlisted')
    execute function forget_amount();

-- A person who leaves the waiting list is no longer one whom the organizer put there.
create or replace function forget_move() returns trigger language plpgsql as $$
begin
    new.reason = null;
    return new;
end $$;

create or replace trigger forget_move before update of status on registrations
    for each row when (old.status = 'waitlisted' and old.reason is not null and new.status <> 'waitlisted'
                       and new.reason is not distinct from old.reason)
    execute function forget_move();

-- A registration that is rejected while its cancellation waits has nothing to cancel any more.
create or replace function forget_cancellation() returns trigger language plpgsql as $$
begin
    new.cancels_at = null;
    return new;
end $$;

create or replace trigger forget_cancellation before update of status on registrations
    for each row when (new.status = 'rejected' and new.cancels_at is not null) execute function forget_cancellation();

-- When a registration loses its seat, its payment is refunded and open payments end.
create or replace function give_back() returns trigger language plpgsql as $$
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

create or replace trigger give_back_moved after update of status on registrations
    for each row when (old.amount_due is not null and old.status in ('held', 'registered')
                       and new.status not in ('held', 'registered'))
    execute function give_back();
create or replace trigger give_back_removed after delete on registrations
    for each row when (old.amount_due is not null and old.status in ('held', 'registered'))
    execute function give_back();

-- After a change of a name, or an erasure, searches find only the new text. The job that fills the index locks the event
-- while it writes. This trigger waits for that, and then sees what the job has written.
create or replace function search_registration_anew() returns trigger language plpgsql as $$
begin
    perform from searched_events where event_id = new.event_id for no key update;
    update searched_registrations as searched set words = searched_words(users.email, coalesce(new.name, users.name))
      from users
     where users.id = new.user_id and (searched.event_id, searched.user_id) = (new.event_id, new.user_id);
    return null;
end $$;

create or replace trigger search_registration_anew after update of name on registrations for each row
    when (old.name is distinct from new.name and new.status <> 'pending')
    execute function search_registration_anew();

-- log -----------------------------------------------------------------------------------------------------------------

-- Logs each change of a status; registrations that free a seat come first. Settlement itself logs those that arrive.
-- Moves by an organizer are counted.
create or replace function log_changed_registrations() returns trigger language plpgsql as $$
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

create or replace trigger log_changed_registrations after update on registrations
    referencing old table as before new table as after for each statement execute function log_changed_registrations();

-- Tells the logs of events which registrations are gone. One that was not settled has no number, so its commitment says
-- which it was. A rejection has no seat that another person could get.
-- Those that an organizer removed are counted.
create or replace function log_removed_registrations() returns trigger language plpgsql as $$
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

create or replace trigger log_removed_registrations after delete on registrations
    referencing old table as before for each statement execute function log_removed_registrations();

-- mail ----------------------------------------------------------------------------------------------------------------

-- Mails about registrations, stored by the statement that changes these. The table `mails` is the kit's. A person
-- without an address gets none: a mail without a recipient would make the statement of others fail. A mail about a
-- registration that is still filed under an earlier organizer of its event is one of the new organizer.
create or replace function mail_registrations() returns trigger language plpgsql as $$
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

create or replace trigger mail_updated after update on registrations
    referencing old table as before new table as after for each statement execute function mail_registrations();
create or replace trigger mail_deleted after delete on registrations
    referencing old table as before for each statement execute function mail_registrations();

-- tell ----------------------------------------------------------------------------------------------------------------

-- A person who waited and asked for a push message gets one. For others, each move up costs only a look-up.
create or replace function push_promotion() returns trigger language plpgsql as $$
begin
    update push_subscriptions set due_at = clock_timestamp(), attempts = 0
     where event_id = new.event_id and user_id = new.user_id;
    if found then
        -- The name of the channel and a space: it must match CHANNEL in push/sending.py.
        perform pg_notify('holdfast', 'pushes ');
    end if;
    return null;
end $$;

create or replace trigger push_promotion after update of status on registrations
    for each row when (old.status = 'waitlisted' and new.status in ('registered', 'held'))
    execute function push_promotion();

create or replace trigger tell_of_changed_registrations after update on registrations referencing new table as changed
    for each statement execute function tell_of_event_details();
create or replace trigger tell_of_deleted_registrations after delete on registrations referencing old table as changed
    for each statement execute function tell_of_event_details();

-- Messages of webhooks about registrations whose status has changed, for the present organizer of their event.
create or replace function tell_webhooks_of_registrations() returns trigger language plpgsql as $$
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

create or replace trigger tell_webhooks_of_changed after update on registrations
    referencing old table as before new table as after for each statement when (has_webhooks()) execute function tell_webhooks_of_registrations();
create or replace trigger tell_webhooks_of_removed after delete on registrations
    referencing old table as before for each statement when (has_webhooks()) execute function tell_webhooks_of_registrations();
