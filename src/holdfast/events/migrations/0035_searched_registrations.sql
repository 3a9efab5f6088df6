-- A part of a name or an address is found down an index, however many registrations an event has. Few have so many that
-- this pays, and fewer are searched: an event is written here when somebody has searched it, by a job.

create function parts(event bigint, whole text) returns bigint[] language sql immutable strict parallel safe as
    $$ select array(select hashtextextended(substr(whole, n, 3), event)
                      from generate_series(1, length(whole) - 2) as n) $$;
comment on function parts is 'A number for each three characters of a text. The same characters differ between events.';

create table searched_events (
    event_id     bigint primary key references events,
    received_at  timestamptz not null default '-infinity',
    arrival      bigint not null default 0,
    places       bigint not null default 0,
    touched_at   timestamptz not null default now()
);
comment on table searched_events is 'Events whose registrations are in `searched_registrations`, up to an arrival.';
comment on column searched_events.places is 'How many people had a place when it was up to date.';
comment on column searched_events.touched_at is 'When somebody last asked for it, or the job wrote.';

create table searched_registrations (
    event_id  bigint not null,
    user_id   bigint not null,
    words     text not null,
    primary key (event_id, user_id),
    foreign key (event_id, user_id) references registrations on delete cascade
);
comment on column searched_registrations.words is 'The address and the name, in lower case.';

-- What was written is put into this index together, when it is 512 kB; until then each search reads it.
create index searched_by_parts on searched_registrations using gin (parts(event_id, words))
    with (gin_pending_list_limit = 512);

create function searched_words(email text, name text) returns text language sql immutable parallel safe as
    $$ select lower(coalesce(email, '') || ' ' || coalesce(name, '')) $$;

-- Who is registered for an event under a name or address of which this is a part.
create function registrations_containing(event bigint, part text) returns setof bigint language plpgsql stable rows 100
    set enable_seqscan = off as $$
declare
    wanted constant bigint[] := parts(event, part);
begin
    -- No index is searched for `is not distinct from`, so none with everything of the event is read.
    return query select user_id from searched_registrations
                  where parts(event_id, words) @> wanted and event_id is not distinct from event
                    and strpos(words, part) > 0;
end $$;

-- Whoever gets another name, or is erased, is found by what is stored then, and by nothing else. The job locks the event
-- while it writes: these wait for it, and then see what it has written.
create function search_registration_anew() returns trigger language plpgsql as $$
begin
    perform from searched_events where event_id = new.event_id for no key update;
    update searched_registrations as searched set words = searched_words(users.email, coalesce(new.name, users.name))
      from users
     where users.id = new.user_id and (searched.event_id, searched.user_id) = (new.event_id, new.user_id);
    return null;
end $$;
-- Not of those who try again: they are pending, and the job comes to them later.
create trigger search_registration_anew after update of name on registrations for each row
    when (old.name is distinct from new.name and new.status <> 'pending')
    execute function search_registration_anew();

create function search_person_anew() returns trigger language plpgsql as $$
begin
    perform from searched_events where event_id in (select event_id from registrations where user_id = new.id)
      order by event_id for no key update;
    update searched_registrations as searched set words = searched_words(new.email, coalesce(registrations.name, new.name))
      from registrations
     where registrations.user_id = new.id
       and (searched.event_id, searched.user_id) = (registrations.event_id, registrations.user_id);
    return null;
end $$;
create trigger search_person_anew after update of email, name on users for each row
    when (old.email is distinct from new.email or old.name is distinct from new.name)
    execute function search_person_anew();
