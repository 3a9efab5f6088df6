-- Who leaves the waiting list was not put there any more.
create or replace function forget_move() returns trigger language plpgsql as $$
begin
    new.reason = null;
    return new;
end $$;

create or replace trigger forget_move before update of status on registrations
    for each row when (old.status = 'waitlisted' and old.reason is not null and new.status <> 'waitlisted'
                       and new.reason is not distinct from old.reason)
    execute function forget_move();
