-- A search among many registrations looks at those it finds in order of arrival, and ends when the page is full.

-- A job writes again what is searched next.
delete from searched_events;
truncate searched_registrations;
alter table searched_registrations
    add column received_at timestamptz not null,
    add column arrival bigint not null;
comment on column searched_registrations.arrival is 'That of the registration, when its words were written.';

-- Who is registered for an event under a name or address of which this is a part, and which registration it was.
create function found_registrations(event bigint, part text)
    returns table (person bigint, at timestamptz, number bigint) language plpgsql stable rows 100
    set enable_seqscan = off as $$
declare
    wanted constant bigint[] := parts(event, part);
begin
    -- No index is searched for `is not distinct from`, so none with everything of the event is read.
    return query select user_id, received_at, arrival from searched_registrations
                  where parts(event_id, words) @> wanted and event_id is not distinct from event
                    and strpos(words, part) > 0;
end $$;
comment on function registrations_containing is 'For processes of the version before. A later migration drops it.';
