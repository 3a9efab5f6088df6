-- During an upgrade an older version gives out tickets too. It does not tell the log, so this does, of nobody.
create or replace function log_join_of_older_version() returns trigger language plpgsql as $$
begin
    insert into log_pending (log_id, kind, first_number, received_at, visitor_ids, nonces)
    select id, 'arrivals', new.ticket, array[new.joined_at], array[null::text], array[null::uuid]
      from logs where queue_id = new.queue_id and closed_at is null;
    return null;
end $$;

-- `LOCK_IF_FREE` and `WAIT` in queues/joining.py set the setting.
create or replace trigger log_join_of_older_version after insert or update of ticket on queue_visitors
    for each row when (new.nonce is null and coalesce(current_setting('holdfast.locked_queues', true), '') = '')
    execute function log_join_of_older_version();
