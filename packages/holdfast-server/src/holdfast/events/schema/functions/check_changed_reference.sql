-- As `check_references`, for updates: few of them change a reference, and a trigger for each statement cannot name columns.
create or replace function check_changed_reference() returns trigger language plpgsql as $$
begin
    perform from users where id = new.user_id for key share;
    if not found then
        raise foreign_key_violation using
            message = format('A registration names account %s, which does not exist.', new.user_id),
            constraint = 'registrations_user_id_fkey', table = 'registrations';
    end if;
    perform from event_owners where event_id = new.event_id and organizer_id = new.organizer_id for key share;
    if not found then
        raise foreign_key_violation using
            message = format('A registration of event %s names organizer %s, who never owned the event.',
                             new.event_id, new.organizer_id),
            constraint = 'registrations_event_id_fkey', table = 'registrations';
    end if;
    return null;
end $$;

create or replace trigger check_changed_reference after update of event_id, user_id, organizer_id on registrations
    for each row when ((old.event_id, old.user_id, old.organizer_id)
                       is distinct from (new.event_id, new.user_id, new.organizer_id))
    execute function check_changed_reference();
