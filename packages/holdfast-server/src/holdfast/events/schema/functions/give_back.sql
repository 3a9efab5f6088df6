-- When a registration loses its seat, its payment is refunded and open payments end.
create or replace function give_back() returns trigger language plpgsql as $$
begin
    if tg_op = 'UPDATE' and new.reason = 'no_show' then
        -- The seat was kept for the person until the event began, so the organizer keeps the money.
        update payments set kept = amount - refunded
         where event_id = old.event_id and user_id = old.user_id and arrival = old.arrival and state = 'paid';
        return null;
    end if;
    update payments set ends_at = least(ends_at, now()), due_at = now()
     where event_id = old.event_id and user_id = old.user_id and arrival = old.arrival
       and state in ('opening', 'open');
    insert into refunds (payment_id, amount, reason)
    select id, amount - refunded - kept, 'seat_lost' from payments
     where event_id = old.event_id and user_id = old.user_id and arrival = old.arrival
       and state = 'paid' and refunded + kept < amount;
    -- The name of the channel and a space: it must match PAYMENTS_CHANNEL in registrations/payment_opening.py.
    perform pg_notify('holdfast', 'payments ');
    return null;
end $$;

create or replace trigger give_back_moved after update of status on registrations
    for each row when (old.amount_due is not null and old.status in ('held', 'registered')
                       and new.status not in ('held', 'registered'))
    execute function give_back();
create or replace trigger give_back_removed after delete on registrations
    for each row when (old.amount_due is not null and old.status in ('held', 'registered'))
    execute function give_back();
