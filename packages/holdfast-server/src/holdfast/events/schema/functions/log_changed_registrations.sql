-- Tells the logs of events which registrations have another status, those that free a seat first. Settlement itself
-- tells of those that arrive. What an organizer moved is counted.
create or replace function log_changed_registrations() returns trigger language plpgsql as $$
begin
    -- Nearly all statements settle. To find that out costs less than to begin the insert.
    if not exists (select from before where status not in ('pending', 'in_draw'))
       and not exists (select from after where log_number is null) then
        return null;
    end if;
    -- Of those that an older version settles, during an upgrade, nobody knows a number.
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
    -- Who registers again arrives again. An older version keeps what the log says of the first time.
    update registrations set log_number = null, nonce = null, logged_as = null
     where (event_id, user_id) in (select event_id, user_id from after
                                    where status = 'pending' and log_number is not null);
    return null;
end $$;

create or replace trigger log_changed_registrations after update on registrations
    referencing old table as before new table as after for each statement execute function log_changed_registrations();
