-- What registrations name exists, and is kept as a foreign key keeps it. A foreign key looks up one row after the other,
-- which was a quarter of what PostgreSQL did for a registration. This looks up the rows of a statement at once, under the
-- same locks and with the same errors. Those who delete are stopped by `keep_registered_people` and
-- `keep_owners_of_registrations`.
create or replace function check_references() returns trigger language plpgsql as $$
declare
    missing record;
begin
    with owner as (
        -- Not a former owner, whose row a hand-over may be deleting.
        select event_id, organizer_id from event_owners
         where event_id = any(array(select event_id from after))
           and (event_id, organizer_id) in (select event_id, organizer_id from after)
         order by event_id, organizer_id for key share),
    person as (
        select id from users where id = any(array(select user_id from after)) order by id for key share)
    select after.event_id, after.organizer_id, after.user_id, person.id is null as without_person into missing
      from after
      left join owner using (event_id, organizer_id)
      left join person on person.id = after.user_id
     where owner.event_id is null or person.id is null
     limit 1;
    if not found then
        return null;
    end if;
    if missing.without_person then
        raise foreign_key_violation using
            message = format('A registration names account %s, which does not exist.', missing.user_id),
            constraint = 'registrations_user_id_fkey', table = 'registrations';
    end if;
    raise foreign_key_violation using
        message = format('A registration of event %s names organizer %s, who never owned the event.',
                         missing.event_id, missing.organizer_id),
        constraint = 'registrations_event_id_fkey', table = 'registrations';
end $$;

create or replace trigger check_references_of_inserted after insert on registrations
    referencing new table as after for each statement execute function check_references();
