-- When a dispute changes, the refunds that wait for it become due.
create or replace function free_refunds() returns trigger language plpgsql as $$
begin
    update refunds set due_at = now()
      from payments where payments.id = payment_id and payments.intent_id = new.intent_id and refunds.state = 'wanted';
    -- The name of the channel and a space: it must match PAYMENTS_CHANNEL in registrations/payment_opening.py.
    perform pg_notify('holdfast', 'payments ');
    return null;
end $$;

create or replace trigger free_refunds after update of state, refundable on disputes
    for each row when (old.state <> new.state or old.refundable <> new.refundable) execute function free_refunds();
