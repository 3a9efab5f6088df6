-- Mails about registrations and events, stored by whatever causes them. The table `mails` is the kit's.

create function mail_registrations() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        insert into mails (kind, thread, recipient, arguments)
        select 'removed', 'registration ' || event_id || ' ' || person.public_id, person.email,
               jsonb_build_object('event_id', event_id, 'user_id', person.public_id, 'arrival', arrival,
                                  'name', name, 'language', language)
          from before
         cross join lateral (select public_id, email from users where users.id = before.user_id limit 1) as person
         cross join lateral (select id from events
                              where events.id = before.event_id and cancelled_at is null and datetime > now()
                              limit 1) as future
         where status in ('registered', 'waitlisted') and notify
         order by arrival;
    else
        -- The rows before and after are brought together by grouping: a join is planned once, for any number of rows.
        insert into mails (kind, thread, recipient, arguments)
        select kind, 'registration ' || event_id || ' ' || person.public_id, person.email,
               jsonb_build_object('event_id', event_id, 'user_id', person.public_id, 'arrival', arrival,
                                  'name', name, 'language', language, 'reason', reason)
          from (select event_id, user_id, max(arrival) as arrival, max(name) as name, max(language) as language,
                       max(reason) as reason, bool_or(notify) as notify,
                       case max(was)::text || ' ' || max(becomes)::text
                            when 'pending registered' then 'seat'
                            when 'pending waitlisted' then 'waitlisted'
                            when 'registered waitlisted' then 'waitlisted'
                            when 'pending rejected' then 'refused'
                            when 'waitlisted registered' then 'promoted' end as kind
                  from (select event_id, user_id, status as was, null::registration_status as becomes,
                               null::bigint as arrival, null as name, null as language, null as reason, null as notify
                          from before
                        union all
                        select event_id, user_id, null, status, arrival, name, language, reason, notify from after)
                       as rows
                 group by event_id, user_id) as moved
         cross join lateral (select public_id, email from users where users.id = moved.user_id limit 1) as person
         where kind is not null and notify
         order by arrival;
    end if;
    return null;
end $$;

create trigger mail_updated after update on registrations
    referencing old table as before new table as after for each statement execute function mail_registrations();
create trigger mail_deleted after delete on registrations
    referencing old table as before for each statement execute function mail_registrations();

-- What everybody who is registered for an event is to be told. It becomes mails a portion at a time, later: an event
-- may have a million registrations.
create table mail_announcements (
    id            bigint generated always as identity primary key,
    event_id      bigint not null references events,
    kind          text not null check (kind in ('event_changed', 'event_cancelled')),
    announced_at  timestamptz not null default clock_timestamp(),
    last_user_id  bigint not null default 0
);
comment on column mail_announcements.announced_at is 'Who is settled later gets mails that know of it.';
comment on column mail_announcements.last_user_id is 'The registrations up to this person have become mails.';
create index mail_announcements_of_event on mail_announcements (event_id, id);

create function announce() returns trigger language plpgsql as $$
begin
    insert into mail_announcements (event_id, kind)
    values (new.id, case when new.cancelled_at is null then 'event_changed' else 'event_cancelled' end);
    perform pg_notify('holdfast', 'mail_announcements ');
    return null;
end $$;

create trigger announce after update of datetime, timezone, address, location_name, cancelled_at on events
    for each row when (new.registered_count + new.waitlisted_count > 0 and new.datetime > now()
                       and (old.cancelled_at is null) and
                       (old.datetime, old.timezone, old.address, old.location_name, old.cancelled_at)
                       is distinct from
                       (new.datetime, new.timezone, new.address, new.location_name, new.cancelled_at))
    execute function announce();
