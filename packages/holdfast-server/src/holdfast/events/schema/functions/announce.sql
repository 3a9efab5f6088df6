-- Changes of an event are gathered for ten minutes, and told by one mail. That it is cancelled is told at once.
create or replace function announce() returns trigger language plpgsql as $$
begin
    -- What is being told at this moment is locked, and finds what comes later by itself.
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
