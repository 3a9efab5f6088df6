-- Every process hears that something has changed which only the organizer of an event sees: registrations, payments,
-- scans. New registrations are not told here: they are settled in a moment, and the intake does not wait for notices.
create or replace function tell_of_event_details() returns trigger language plpgsql as $$
begin
    -- The name of the channel and a space: it must match DETAILS_CHANNEL in events/model.py.
    perform pg_notify('holdfast', 'event_details ' || event_id) from (select distinct event_id from changed) as events;
    return null;
end $$;

create or replace trigger tell_of_changed_registrations after update on registrations referencing new table as changed
    for each statement execute function tell_of_event_details();
create or replace trigger tell_of_deleted_registrations after delete on registrations referencing old table as changed
    for each statement execute function tell_of_event_details();
create or replace trigger tell_of_new_scans after insert on check_in_scans referencing new table as changed
    for each statement execute function tell_of_event_details();
create or replace trigger tell_of_changed_scans after update on check_in_scans referencing new table as changed
    for each statement execute function tell_of_event_details();
create or replace trigger tell_of_new_payments after insert on payments referencing new table as changed
    for each statement execute function tell_of_event_details();
create or replace trigger tell_of_changed_payments after update on payments referencing new table as changed
    for each statement execute function tell_of_event_details();
