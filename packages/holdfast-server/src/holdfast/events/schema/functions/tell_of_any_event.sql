-- What several events may show: an organizer's name, the sizes of a photo. An event that moves changes two pages.
create or replace function tell_of_any_event() returns trigger language plpgsql as $$
begin
    perform pg_notify('holdfast', 'events ');
    return null;
end $$;
