-- Counts what organizers did to registrations of an event that has a log.
create or replace function count_organizer_changes() returns trigger language plpgsql as $$
begin
    update logs
       set moved = moved + (new.details ->> 'to' <> 'removed')::integer,
           removed = removed + (new.details ->> 'to' = 'removed')::integer
     where id = new.log_id;
    return null;
end $$;

create or replace trigger count_organizer_changes after insert on log_pending
    for each row when (new.details ->> 'by' = 'organizer' and new.details ? 'from')
    execute function count_organizer_changes();
