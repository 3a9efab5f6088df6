-- What else the page of an organizer shows. `tell_of_any_event` tells of its name and of what events show too.
create or replace function tell_of_look() returns trigger language plpgsql as $$
begin
    perform pg_notify('holdfast', 'organizers ' || old.slug);
    return null;
end $$;

create or replace trigger tell_of_look after update of about, accent, logo_key, erased_at on users
    for each row when (old.slug is not null and (old.about, old.accent, old.logo_key, old.erased_at)
                       is distinct from (new.about, new.accent, new.logo_key, new.erased_at))
    execute function tell_of_look();
