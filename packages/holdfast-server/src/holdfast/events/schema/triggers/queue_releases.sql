-- What a change of a row causes:
--
-- * insert: the log of the queue is told, if an older version releases (log_release_of_older_version)

-- log -----------------------------------------------------------------------------------------------------------------

-- Goes in the release after 0.3. `RELEASES` in queues/release.py tells the log of a queue which tickets are released
-- and sets the setting. Older versions do not, and release too during an upgrade, so this does it for them.
create or replace function log_release_of_older_version() returns trigger language plpgsql as $$
begin
    insert into log_pending (log_id, kind, details)
    select id, 'release', jsonb_build_object('from', new.first_ticket, 'to', new.last_ticket)
      from logs where queue_id = new.queue_id and closed_at is null;
    return null;
end $$;

create or replace trigger log_release_of_older_version after insert on queue_releases
    for each row when (coalesce(current_setting('holdfast.logs_releases', true), '') = '')
    execute function log_release_of_older_version();
