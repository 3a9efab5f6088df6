-- What pages and mails need to know of events and registrations.

alter table events
    add timezone text,
    add cancellation_hours integer not null default 0 check (cancellation_hours >= 0),
    add calendar_sequence integer not null default 0;
comment on column events.timezone is 'The IANA name of the zone in which people read its date; null is UTC.';
comment on column events.cancellation_hours is 'How many hours before the event people can no longer cancel themselves.';
comment on column events.calendar_sequence is 'How often what a calendar shows of it has changed.';

alter table registrations
    add name text check (length(name) between 1 and 200),
    add language text check (language ~ '^[a-z]{2}$'),
    add notify boolean not null default true,
    add promoted_at timestamptz;
comment on column registrations.name is 'What the person wrote into the form. It changes no account.';
comment on column registrations.language is 'The language of its mails; null is English.';
comment on column registrations.notify is 'Whether mails are sent about it.';
comment on column registrations.promoted_at is 'When it moved up from the waiting list.';

create function count_calendar_changes() returns trigger language plpgsql as $$
begin
    new.calendar_sequence = old.calendar_sequence + 1;
    return new;
end $$;

create trigger count_calendar_changes before update on events
    for each row when ((old.title, old.datetime, old.timezone, old.location_name, old.address, old.cancelled_at)
                       is distinct from
                       (new.title, new.datetime, new.timezone, new.location_name, new.address, new.cancelled_at))
    execute function count_calendar_changes();

create function note_promotion() returns trigger language plpgsql as $$
begin
    new.promoted_at = now();
    return new;
end $$;

create trigger note_promotion before update of status on registrations
    for each row when (old.status = 'waitlisted' and new.status = 'registered') execute function note_promotion();
