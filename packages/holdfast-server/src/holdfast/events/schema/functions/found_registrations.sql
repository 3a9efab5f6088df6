-- The people registered for an event whose address and name contain the words of a text, with their registrations.
-- Processes of version 0.2.0 call it by this name while an upgrade lasts.
create or replace function found_registrations(event bigint, part text)
    returns table (person bigint, at timestamptz, number bigint) language plpgsql stable rows 100
    set enable_seqscan = off as $$
declare
    searched_parts constant bigint[] := word_parts(event, part);
    patterns constant text[] := search_patterns(part);
begin
    -- No index is searched for `is not distinct from`, so none with everything of the event is read.
    return query select user_id, received_at, arrival from searched_registrations
                  where parts(event_id, words) @> searched_parts and event_id is not distinct from event
                    and words like all (patterns);
end $$;
