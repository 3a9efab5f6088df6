-- Every process hears which events have changed, and so can keep what their pages show.
create or replace function tell_of_changed_events() returns trigger language plpgsql as $$
begin
    perform pg_notify('holdfast', 'events ' || id) from changed;
    return null;
end $$;

create or replace trigger tell_of_changed_events after update on events referencing new table as changed
    for each statement execute function tell_of_changed_events();
