-- An account that has registrations is not deleted (see `check_references`).
create or replace function keep_registered_people() returns trigger language plpgsql as $$
declare
    kept bigint;
begin
    select user_id into kept from before
     cross join lateral (select user_id from registrations where user_id = before.id limit 1) as its_registration
     limit 1;
    if found then
        raise foreign_key_violation using
            message = format('Account %s has registrations.', kept),
            constraint = 'registrations_user_id_fkey', table = 'registrations';
    end if;
    return null;
end $$;

create or replace trigger keep_registered_people after delete on users
    referencing old table as before for each statement execute function keep_registered_people();
