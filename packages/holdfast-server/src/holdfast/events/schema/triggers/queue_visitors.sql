-- What a change of a row causes:
--
-- * insert: its queue must exist (check_queues)
-- * insert or update of ticket: the log of the queue is told, if an older version gives out the ticket
--   (log_join_of_older_version)
-- * update of queue_id: refused (refuse_change_of_key)

-- refuse --------------------------------------------------------------------------------------------------------------

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

create or replace trigger refuse_change_of_key before update of queue_id on queue_visitors
    for each row when (old.queue_id <> new.queue_id) execute function refuse_change_of_key();

-- log -----------------------------------------------------------------------------------------------------------------

-- Goes in the release after 0.3. During an upgrade an older version gives out tickets too. It does not write them to
-- the log, so this trigger does, without a visitor.
create or replace function log_join_of_older_version() returns trigger language plpgsql as $$
begin
    insert into log_pending (log_id, kind, first_number, received_at, visitor_ids, nonces)
    select id, 'arrivals', new.ticket, array[new.joined_at], array[null::text], array[null::uuid]
      from logs where queue_id = new.queue_id and closed_at is null;
    return null;
end $$;

-- `LOCK_ALL_QUEUES` and `LOCK_FREE_QUEUES` in queues/joining.py set the setting.
create or replace trigger log_join_of_older_version after insert or update of ticket on queue_visitors
    for each row when (new.nonce is null and coalesce(current_setting('holdfast.locked_queues', true), '') = '')
    execute function log_join_of_older_version();
