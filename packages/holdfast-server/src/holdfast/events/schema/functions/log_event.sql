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
