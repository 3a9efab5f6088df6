-- Whoever gets another name, or is erased, is found by what is stored then, and by nothing else. The job locks the
-- event while it writes: these wait for it, and then see what it has written.
create or replace function search_registration_anew() returns trigger language plpgsql as $$
begin
    perform from searched_events where event_id = new.event_id for no key update;
    update searched_registrations as searched set words = searched_words(users.email, coalesce(new.name, users.name))
      from users
     where users.id = new.user_id and (searched.event_id, searched.user_id) = (new.event_id, new.user_id);
    return null;
end $$;

create or replace trigger search_registration_anew after update of name on registrations for each row
    when (old.name is distinct from new.name and new.status <> 'pending')
    execute function search_registration_anew();
