-- An event is handed over at once, however many registrations it has: a job files them and the mails anew.
create or replace function hand_event_over() returns trigger language plpgsql as $$
begin
    -- First: the job that ends a hand-over back to the same organizer is through before, or finds nothing to end.
    delete from event_hand_overs where event_id = new.id and organizer_id = new.organizer_id;
    insert into event_owners (event_id, organizer_id) values (new.id, new.organizer_id) on conflict do nothing;
    insert into event_hand_overs (event_id, organizer_id, handed_to)
    select event_id, organizer_id, new.organizer_id from event_owners
     where event_id = new.id and organizer_id <> new.organizer_id
        on conflict (event_id, organizer_id) do update set handed_to = excluded.handed_to, last_user_id = 0;
    return null;
end $$;

create or replace trigger hand_event_over after update of organizer_id on events
    for each row when (old.organizer_id <> new.organizer_id) execute function hand_event_over();
