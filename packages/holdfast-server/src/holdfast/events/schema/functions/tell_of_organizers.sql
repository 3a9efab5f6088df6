-- Every process hears of whom an event is new or has changed, and so can keep the pages of organizers.
create or replace function tell_of_organizers() returns trigger language plpgsql as $$
begin
    perform pg_notify('holdfast', 'organizers ' || slug)
       from (select distinct organizer_id from changed) as owned
      cross join lateral (select slug from users where id = organizer_id limit 1) as organizers
      where slug is not null;
    return null;
end $$;

create or replace trigger tell_organizers_of_new_events after insert on events referencing new table as changed
    for each statement execute function tell_of_organizers();
create or replace trigger tell_organizers_of_changed_events after update on events referencing new table as changed
    for each statement execute function tell_of_organizers();
