-- The moment at which a registration moved up from the waiting list.
create or replace function note_promotion() returns trigger language plpgsql as $$
begin
    new.promoted_at = now();
    return new;
end $$;

create or replace trigger note_promotion before update of status on registrations
    for each row when (old.status = 'waitlisted' and new.status in ('registered', 'held'))
    execute function note_promotion();
