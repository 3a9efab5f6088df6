-- The public id of an account is in the commitments of its registrations, so a registration keeps the id when the
-- account gets another one. Registrations of people who are erased have no nonce any more, and keep nothing.
create or replace function keep_logged_id() returns trigger language plpgsql as $$
begin
    perform hide_pending_arrivals(old.id);
    update registrations set logged_as = old.public_id
     where user_id = old.id and nonce is not null and logged_as is null;
    return new;
end $$;

create or replace trigger keep_logged_id before update of public_id on users
    for each row when (old.public_id <> new.public_id) execute function keep_logged_id();
