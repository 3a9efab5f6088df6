-- Who is registered for an event under a name or address of which this is a part, and which registration it was.
create or replace function found_registrations(event bigint, part text)
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
