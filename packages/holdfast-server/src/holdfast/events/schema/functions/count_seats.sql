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
