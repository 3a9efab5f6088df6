-- Every process hears which events have a refund that has changed. A new refund changes its payment too.
create or replace function tell_of_refunds() returns trigger language plpgsql as $$
begin
    -- The name of the channel and a space: it must match DETAILS_CHANNEL in events/model.py.
    perform pg_notify('holdfast', 'event_details ' || event_id)
       from (select distinct event_id from payments where id in (select payment_id from changed)) as events;
    return null;
end $$;

create or replace trigger tell_of_refunds after update on refunds referencing new table as changed
    for each statement execute function tell_of_refunds();
