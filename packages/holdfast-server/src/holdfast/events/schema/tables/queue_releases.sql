-- What a change of a row causes:
--
-- * insert: the log of the queue is told (log_release)

-- log -----------------------------------------------------------------------------------------------------------------

-- Tells the log of a queue which tickets are released.
create or replace function log_release() returns trigger language plpgsql as $$
begin
    insert into log_pending (log_id, kind, details)
    select id, 'release', jsonb_build_object('from', new.first_ticket, 'to', new.last_ticket)
      from logs where queue_id = new.queue_id and closed_at is null;
    return null;
end $$;

create or replace trigger log_release after insert on queue_releases
    for each row execute function log_release();
