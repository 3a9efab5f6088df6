-- The keys that registrations and visitors of queues name never change (see `check_references`).
create or replace function refuse_change_of_key() returns trigger language plpgsql as $$
begin
    raise foreign_key_violation using
        message = format('The key of a row of %s cannot change.', tg_table_name), table = tg_table_name;
end $$;

create or replace trigger refuse_change_of_key before update of id on users
    for each row when (old.id <> new.id) execute function refuse_change_of_key();
create or replace trigger refuse_change_of_key before update of event_id, organizer_id on event_owners
    for each row when ((old.event_id, old.organizer_id) is distinct from (new.event_id, new.organizer_id))
    execute function refuse_change_of_key();
create or replace trigger refuse_change_of_key before update of id on queues
    for each row when (old.id <> new.id) execute function refuse_change_of_key();
create or replace trigger refuse_change_of_key before update of queue_id on queue_visitors
    for each row when (old.queue_id <> new.queue_id) execute function refuse_change_of_key();
