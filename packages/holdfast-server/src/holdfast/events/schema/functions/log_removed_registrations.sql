-- Tells the logs of events which registrations are gone. One that was not settled has no number, so its commitment says
-- which it was. A rejection has no place that anybody could get.
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
    -- A ticket of a draw stays in its list, and is nobody's.
    update event_entries set user_id = null from before
     where event_entries.event_id = before.event_id and ticket = log_number;
    return null;
end $$;

create or replace trigger log_removed_registrations after delete on registrations
    referencing old table as before for each statement execute function log_removed_registrations();
