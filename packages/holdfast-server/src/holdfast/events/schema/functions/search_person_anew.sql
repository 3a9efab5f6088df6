-- As `search_registration_anew`, for all registrations of a person.
create or replace function search_person_anew() returns trigger language plpgsql as $$
begin
    perform from searched_events where event_id in (select event_id from registrations where user_id = new.id)
      order by event_id for no key update;
    update searched_registrations as searched set words = searched_words(new.email, coalesce(registrations.name, new.name))
      from registrations
     where registrations.user_id = new.id
       and (searched.event_id, searched.user_id) = (registrations.event_id, registrations.user_id);
    return null;
end $$;

create or replace trigger search_person_anew after update of email, name on users for each row
    when (old.email is distinct from new.email or old.name is distinct from new.name)
    execute function search_person_anew();
