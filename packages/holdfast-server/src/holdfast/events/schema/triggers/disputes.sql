-- What a change of a row causes:
--
-- * insert: tells the pages of organizers (tell_of_disputes)
-- * update: the same (tell_of_disputes)
-- * update of state or refundable: refunds that wait for the dispute become due, if an older version makes the change
--   (free_refunds)

-- change --------------------------------------------------------------------------------------------------------------

-- Goes in the release after 0.3. When a dispute changes, the refunds that wait for it become due: `_store_dispute` in
-- payments/refunds.py does that by itself now, and older versions do not. What is done twice is the same.
create or replace function free_refunds() returns trigger language plpgsql as $$
begin
    update refunds set due_at = now()
      from payments where payments.id = payment_id and payments.intent_id = new.intent_id and refunds.state = 'wanted';
    -- The name of the channel and a space: it must match PAYMENTS_CHANNEL in seats/held_seats.py.
    perform pg_notify('holdfast', 'payments ');
    return null;
end $$;

create or replace trigger free_refunds after update of state, refundable on disputes
    for each row when (old.state <> new.state or old.refundable <> new.refundable) execute function free_refunds();

-- tell ----------------------------------------------------------------------------------------------------------------

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
