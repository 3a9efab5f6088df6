-- An event belongs to its organizer from the statement on that creates it.
create or replace function own_events() returns trigger language plpgsql as $$
begin
    insert into event_owners (event_id, organizer_id) select id, organizer_id from created;
    return null;
end $$;

create or replace trigger own_events after insert on events referencing new table as created
    for each statement execute function own_events();
