create or replace function registrations_containing(event bigint, part text) returns setof bigint language plpgsql stable
    rows 100 set enable_seqscan = off as $$
declare
    searched_parts constant bigint[] := word_parts(event, part);
    patterns constant text[] := search_patterns(part);
begin
    -- No index is searched for `is not distinct from`, so none with everything of the event is read.
    return query select user_id from searched_registrations
                  where parts(event_id, words) @> searched_parts and event_id is not distinct from event
                    and words like all (patterns);
end $$;
comment on function registrations_containing is 'For processes of the version before. A later migration drops it.';
