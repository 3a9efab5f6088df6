-- Every process hears that something has changed which only the organizer of an event sees: registrations, payments,
-- scans. New registrations are not told here: they are settled in a moment, and the intake does not wait for notices.
create or replace function tell_of_event_details() returns trigger language plpgsql as $$
begin
    -- The name of the channel and a space: it must match DETAILS_CHANNEL in events/model.py.
    perform pg_notify('holdfast', 'event_details ' || event_id) from (select distinct event_id from changed) as events;
    return null;
end $$;
