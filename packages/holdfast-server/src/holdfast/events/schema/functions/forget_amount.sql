-- Who moves from a seat to the waiting list has paid nothing any more, and pays anew for the next seat.
create or replace function forget_amount() returns trigger language plpgsql as $$
begin
    new.amount_paid = 0;
    return new;
end $$;

create or replace trigger forget_amount before update of status on registrations
    for each row when (old.amount_due is not null and old.status = 'registered' and new.status = 'waitlisted')
    execute function forget_amount();
