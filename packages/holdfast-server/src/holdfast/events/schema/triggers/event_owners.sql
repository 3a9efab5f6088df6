-- What a change of a row causes:
--
-- * update of the key: refused (refuse_change_of_key)
-- * delete: refused while registrations are filed under the owner (keep_owners_of_registrations)

-- refuse --------------------------------------------------------------------------------------------------------------

create or replace trigger refuse_change_of_key before update of event_id, organizer_id on event_owners
    for each row when ((old.event_id, old.organizer_id) is distinct from (new.event_id, new.organizer_id))
    execute function refuse_change_of_key();

-- An owner of an event under whom registrations are filed is not deleted (see `check_references`).
create or replace function keep_owners_of_registrations() returns trigger language plpgsql as $$
declare
    kept record;
begin
    select its_registration.* into kept from before
     cross join lateral (select event_id, organizer_id from registrations
                          where event_id = before.event_id and organizer_id = before.organizer_id
                          limit 1) as its_registration
     limit 1;
    if found then
        raise foreign_key_violation using
            message = format('Event %s has registrations with organizer %s.', kept.event_id, kept.organizer_id),
            constraint = 'registrations_event_id_fkey', table = 'registrations';
    end if;
    return null;
end $$;

create or replace trigger keep_owners_of_registrations after delete on event_owners
    referencing old table as before for each statement execute function keep_owners_of_registrations();
