-- Every process hears which events have a payment whose dispute is new or has changed.
create or replace function tell_of_disputes() returns trigger language plpgsql as $$
begin
    -- The name of the channel and a space: it must match DETAILS_CHANNEL in events/model.py.
    perform pg_notify('holdfast', 'event_details ' || event_id)
       from (select distinct event_id from payments where intent_id in (select intent_id from changed)) as events;
    return null;
end $$;

create or replace trigger tell_of_new_disputes after insert on disputes referencing new table as changed
    for each statement execute function tell_of_disputes();
create or replace trigger tell_of_changed_disputes after update on disputes referencing new table as changed
    for each statement execute function tell_of_disputes();
