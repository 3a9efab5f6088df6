-- What a change of a row causes:
--
-- * insert: a draw must be complete (check_draw); the organizer becomes its owner (own_events); its photos are kept
--   (show_photos); its log is opened (log_event); its mails say what those of the occurrence before said
--   (take_mail_paragraphs_along); tells the pages of organizers (tell_of_organizers)
-- * update: a change that calendars show gets the next number (count_calendar_changes); tells the pages of the event
--   (tell_of_changed_events) and of its organizer (tell_of_organizers)
-- * update of the draw: it must be complete (check_draw); its log is told (log_draw)
-- * update of organizer_id: its registrations and mails become those of the new organizer (hand_event_over), as does the
--   waiting room before it (hand_queue_over); tells the pages of both organizers (tell_of_any_event)
-- * update of image_keys: photos that no event shows any more are deleted later (show_photos)
-- * update of cancelled_at: all payments are given back (give_back_all)
-- * update of the places, cancelled_at, published, public_log or datetime: its log is told, opened or closed
--   (log_event)
-- * update of when or where it is, or of cancelled_at: all who are registered get a mail (announce)
-- * insert or update of what its page says, of its seats, of published or of cancelled_at: webhooks are told
--   (tell_webhooks_of_event)

-- refuse --------------------------------------------------------------------------------------------------------------

create or replace trigger check_draw
    after insert or update of draw_at, draw_round, draw_round_at, draw_confirmed, draw_entries, drawn_at, draw_void_at,
                              draw_placed on events
    for each row execute function check_draw();

-- change --------------------------------------------------------------------------------------------------------------

-- Calendars take an event that they have already only with a higher number.
create or replace function count_calendar_changes() returns trigger language plpgsql as $$
begin
    new.calendar_sequence = old.calendar_sequence + 1;
    return new;
end $$;

create or replace trigger count_calendar_changes before update on events
    for each row when ((old.title, old.datetime, old.end_datetime, old.timezone, old.location_name, old.address,
                        old.cancelled_at)
                       is distinct from
                       (new.title, new.datetime, new.end_datetime, new.timezone, new.location_name, new.address,
                        new.cancelled_at))
    execute function count_calendar_changes();

-- An event belongs to its organizer from the statement on that creates it.
create or replace function own_events() returns trigger language plpgsql as $$
begin
    insert into event_owners (event_id, organizer_id) select id, organizer_id from created;
    return null;
end $$;

create or replace trigger own_events after insert on events referencing new table as created
    for each statement execute function own_events();

-- An event is handed over at once, however many registrations it has: a job files them and the mails under the new
-- organizer.
create or replace function hand_event_over() returns trigger language plpgsql as $$
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

create or replace trigger hand_event_over after update of organizer_id on events
    for each row when (old.organizer_id <> new.organizer_id) execute function hand_event_over();

create or replace function hand_queue_over() returns trigger language plpgsql as $$
begin
    update queues set organizer_id = new.organizer_id where id = new.queue_id;
    return null;
end $$;

create or replace trigger hand_queue_over after update of organizer_id on events
    for each row when (old.organizer_id <> new.organizer_id and new.queue_id is not null)
    execute function hand_queue_over();

-- Which events show which photos, kept by the database itself from `events.image_keys`.
create or replace function show_photos() returns trigger language plpgsql as $$
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

create or replace trigger show_first_photos after insert on events
    for each row when (new.image_keys <> '{}') execute function show_photos();
create or replace trigger show_changed_photos after update of image_keys on events
    for each row when (new.image_keys <> old.image_keys) execute function show_photos();

-- When an event is cancelled, all that was paid for it is refunded, and its open payments end.
create or replace function give_back_all() returns trigger language plpgsql as $$
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

create or replace trigger give_back_all after update of cancelled_at on events
    for each row when (old.cancelled_at is null and new.cancelled_at is not null and new.pricing_mode <> 'free')
    execute function give_back_all();

-- log -----------------------------------------------------------------------------------------------------------------

-- Opens and closes the log of an event, and tells it of changes of places. The log of an event that becomes a draft is
-- closed, so it has nothing of the draft. When the event is published again, a further log begins.
create or replace function log_event() returns trigger language plpgsql as $$
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

create or replace trigger log_new_event after insert on events
    for each row when (new.public_log and new.published) execute function log_event();
create or replace trigger log_changed_event
    after update of capacity, waitinglist_capacity, cancelled_at, published, public_log, datetime on events
    for each row when ((old.capacity, old.waitinglist_capacity, old.cancelled_at, old.published, old.public_log,
                        old.datetime)
                       is distinct from
                       (new.capacity, new.waitinglist_capacity, new.cancelled_at, new.published, new.public_log,
                        new.datetime))
    execute function log_event();

create or replace trigger log_draw after update of draw_at, draw_void_at on events
    for each row when ((old.draw_at, old.draw_void_at) is distinct from (new.draw_at, new.draw_void_at))
    execute function log_draw();

-- mail ----------------------------------------------------------------------------------------------------------------

-- The next occurrence of a series says in its mails what the one before said.
create or replace function take_mail_paragraphs_along() returns trigger language plpgsql as $$
begin
    insert into mail_paragraphs (event_id, kind, text)
    select next.id, before.kind, before.text from created as next
     cross join lateral (select kind, text from mail_paragraphs where event_id = next.follows_id limit 9) as before;
    return null;
end $$;

create or replace trigger take_mail_paragraphs_along after insert on events referencing new table as created
    for each statement execute function take_mail_paragraphs_along();

-- Changes of an event are gathered for ten minutes, and told by one mail. A cancellation is told at once.
create or replace function announce() returns trigger language plpgsql as $$
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

create or replace trigger announce
    after update of datetime, end_datetime, timezone, address, location_name, cancelled_at on events
    for each row when (new.registered_count + new.waitlisted_count > 0 and new.datetime > now()
                       and (old.cancelled_at is null) and
                       (old.datetime, old.end_datetime, old.timezone, old.address, old.location_name, old.cancelled_at)
                       is distinct from
                       (new.datetime, new.end_datetime, new.timezone, new.address, new.location_name, new.cancelled_at))
    execute function announce();

-- tell ----------------------------------------------------------------------------------------------------------------

-- Every process hears which events have changed, and so can keep what their pages show.
create or replace function tell_of_changed_events() returns trigger language plpgsql as $$
begin
    perform pg_notify('holdfast', 'events ' || id) from changed;
    return null;
end $$;

create or replace trigger tell_of_changed_events after update on events referencing new table as changed
    for each statement execute function tell_of_changed_events();

-- Every process hears of whom an event is new or has changed, and so can keep the pages of organizers.
create or replace function tell_of_organizers() returns trigger language plpgsql as $$
begin
    perform pg_notify('holdfast', 'organizers ' || slug)
       from (select distinct organizer_id from changed) as owned
      cross join lateral (select slug from users where id = organizer_id limit 1) as organizers
      where slug is not null;
    return null;
end $$;

create or replace trigger tell_organizers_of_new_events after insert on events referencing new table as changed
    for each statement execute function tell_of_organizers();
create or replace trigger tell_organizers_of_changed_events after update on events referencing new table as changed
    for each statement execute function tell_of_organizers();

create or replace trigger tell_of_moved_event after update of organizer_id on events
    for each row when (old.organizer_id <> new.organizer_id) execute function tell_of_any_event();

-- The argument says what happened. A draft is told when it is published: until then only its organizer knows it.
create or replace function tell_webhooks_of_event() returns trigger language plpgsql as $$
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

create or replace trigger tell_webhooks_of_created after insert on events
    for each row when (new.published) execute function tell_webhooks_of_event('event.created');
create or replace trigger tell_webhooks_of_published after update of published on events
    for each row when (new.published and not old.published) execute function tell_webhooks_of_event('event.created');
create or replace trigger tell_webhooks_of_edited
    after update of title, body, datetime, end_datetime, timezone, capacity, waitinglist_capacity, price, min_price,
                    max_price, address, location_name, latitude, longitude, image_keys on events
    for each row when (new.published and old.published
                       and (old.title, old.body, old.datetime, old.end_datetime, old.timezone, old.capacity,
                            old.waitinglist_capacity, old.price, old.min_price, old.max_price, old.address,
                            old.location_name, old.latitude, old.longitude, old.image_keys)
                           is distinct from
                           (new.title, new.body, new.datetime, new.end_datetime, new.timezone, new.capacity,
                            new.waitinglist_capacity, new.price, new.min_price, new.max_price, new.address,
                            new.location_name, new.latitude, new.longitude, new.image_keys))
    execute function tell_webhooks_of_event('event.changed');
create or replace trigger tell_webhooks_of_cancelled after update of cancelled_at on events
    for each row when (new.published and old.cancelled_at is null and new.cancelled_at is not null)
    execute function tell_webhooks_of_event('event.cancelled');
create or replace trigger tell_webhooks_of_full after update of registered_count, capacity on events
    for each row when (old.registered_count < old.capacity and new.registered_count >= new.capacity)
    execute function tell_webhooks_of_event('event.full');
create or replace trigger tell_webhooks_of_room after update of registered_count, capacity on events
    for each row when (old.registered_count >= old.capacity and new.registered_count < new.capacity
                       and new.cancelled_at is null)
    execute function tell_webhooks_of_event('event.available');
