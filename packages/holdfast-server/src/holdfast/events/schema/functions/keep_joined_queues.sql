-- A queue that has visitors is not deleted (see `check_queues`).
create or replace function keep_joined_queues() returns trigger language plpgsql as $$
declare
    kept bigint;
begin
    select queue_id into kept from before
     cross join lateral (select queue_id from queue_visitors where queue_id = before.id limit 1) as its_visitor
     limit 1;
    if found then
        raise foreign_key_violation using
            message = format('Queue %s has visitors.', kept),
            constraint = 'queue_visitors_queue_id_fkey', table = 'queue_visitors';
    end if;
    return null;
end $$;

create or replace trigger keep_joined_queues after delete on queues
    referencing old table as before for each statement execute function keep_joined_queues();
