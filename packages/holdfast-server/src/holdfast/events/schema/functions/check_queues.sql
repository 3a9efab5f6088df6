-- The queue of a visitor exists, as `check_references` does it for registrations.
create or replace function check_queues() returns trigger language plpgsql as $$
declare
    missing bigint;
begin
    with queue as (
        select id from queues where id = any(array(select queue_id from after)) order by id for key share)
    select queue_id into missing from after where queue_id not in (select id from queue) limit 1;
    if found then
        raise foreign_key_violation using
            message = format('A visitor names queue %s, which does not exist.', missing),
            constraint = 'queue_visitors_queue_id_fkey', table = 'queue_visitors';
    end if;
    return null;
end $$;

create or replace trigger check_queues_of_inserted after insert on queue_visitors
    referencing new table as after for each statement execute function check_queues();
