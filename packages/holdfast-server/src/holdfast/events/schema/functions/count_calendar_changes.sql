-- Calendars take an event that they have already only with a higher number.
create or replace function count_calendar_changes() returns trigger language plpgsql as $$
begin
    new.calendar_sequence = old.calendar_sequence + 1;
    return new;
end $$;

create or replace trigger count_calendar_changes before update on events
    for each row when ((old.title, old.datetime, old.end_datetime, old.timezone, old.location_name, old.address,
                        old.cancelled_at)
                       is distinct from
                       (new.title, new.datetime, new.end_datetime, new.timezone, new.location_name, new.address,
                        new.cancelled_at))
    execute function count_calendar_changes();
