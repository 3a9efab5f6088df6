-- When an event is cancelled, all that was paid for it is refunded, and its open payments end.
create or replace function give_back_all() returns trigger language plpgsql as $$
begin
    update payments set ends_at = least(ends_at, now()), due_at = now()
     where event_id = new.id and state in ('opening', 'open');
    insert into refunds (payment_id, amount, reason)
    select id, amount - refunded - kept, 'event_cancelled' from payments
     where event_id = new.id and state = 'paid' and refunded + kept < amount;
    -- The name of the channel and a space: it must match PAYMENTS_CHANNEL in registrations/payment_opening.py.
    perform pg_notify('holdfast', 'payments ');
    return null;
end $$;

create or replace trigger give_back_all after update of cancelled_at on events
    for each row when (old.cancelled_at is null and new.cancelled_at is not null and new.pricing_mode <> 'free')
    execute function give_back_all();
