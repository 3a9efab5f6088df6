-- What a change of a row causes:
--
-- * insert: a draw must be complete (check_draw); the event behind it names it (guard_event); its log is opened
--   (log_queue); webhooks are told of one that takes visitors (tell_webhooks_of_queue)
-- * update of id: refused (refuse_change_of_key)
-- * update of the draw: it must be complete (check_draw); its log is told (log_draw)
-- * update of event_id or deleted_at: the event behind it names it, or none (guard_event)
-- * update of what decides who waits how long, public_log or deleted_at: its log is told, opened or closed (log_queue)
-- * update of active or ends_at: webhooks are told when it takes visitors again (tell_webhooks_of_queue)
-- * update of serving: webhooks are told when nobody waits any more (tell_webhooks_of_queue)
-- * delete: refused while it has visitors (keep_joined_queues)

-- refuse --------------------------------------------------------------------------------------------------------------

create or replace trigger check_draw
    after insert or update of draw_at, draw_round, draw_round_at, draw_entries, drawn_at, draw_void_at on queues
    for each row execute function check_draw();

create or replace trigger refuse_change_of_key before update of id on queues
    for each row when (old.id <> new.id) execute function refuse_change_of_key();

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

-- change --------------------------------------------------------------------------------------------------------------

-- An event names the waiting room before it, so a registration reads that with the event. A deleted one guards nothing.
create or replace function guard_event() returns trigger language plpgsql as $$
begin
    if new.deleted_at is not null then
        update events set queue_id = null where queue_id = new.id;
    else
        update events set queue_id = new.id where id = new.event_id;
    end if;
    return null;
end $$;

create or replace trigger guard_event_by_new_queue after insert on queues
    for each row when (new.event_id is not null) execute function guard_event();
create or replace trigger guard_event_by_changed_queue after update of event_id, deleted_at on queues
    for each row when (new.event_id is not null
                       and (old.event_id, old.deleted_at) is distinct from (new.event_id, new.deleted_at))
    execute function guard_event();

-- log -----------------------------------------------------------------------------------------------------------------

-- Opens and closes the log of a queue, and tells it of changes of what decides who waits how long.
create or replace function log_queue() returns trigger language plpgsql as $$
declare
    log_id bigint = (select id from logs where queue_id = new.id and closed_at is null);
begin
    if new.deleted_at is not null or not new.public_log then
        update logs set closed_at = now() where id = log_id;
        insert into log_pending (log_id, kind, details)
        select log_id, 'close',
               jsonb_build_object('reason', case when new.deleted_at is null then 'switched_off' else 'deleted' end)
         where log_id is not null;
    elsif log_id is null then
        insert into logs (queue_id, generation) select new.id, count(*) + 1 from logs where queue_id = new.id
        returning id into log_id;
        insert into log_pending (log_id, kind, details)
        values (log_id, 'open',
                jsonb_build_object('of', 'queue', 'first_number', new.tickets + 1, 'released', new.serving)
                || case when new.draw_at is not null and new.drawn_at is null
                        then jsonb_build_object('draw', named_draw(new.draw_at, new.draw_round)) else '{}' end);
    else
        insert into log_pending (log_id, kind, details)
        values (log_id, 'change',
                jsonb_strip_nulls(jsonb_build_object(
                    'active', new.active, 'release_rate', new.release_rate, 'max_queue_size', new.max_queue_size,
                    'starts_at', log_time(new.starts_at), 'ends_at', log_time(new.ends_at), 'by', 'organizer')));
    end if;
    return null;
end $$;

create or replace trigger log_new_queue after insert on queues
    for each row when (new.public_log) execute function log_queue();
create or replace trigger log_changed_queue
    after update of active, release_rate, max_queue_size, starts_at, ends_at, public_log, deleted_at on queues
    for each row when ((old.active, old.release_rate, old.max_queue_size, old.starts_at, old.ends_at, old.public_log,
                        old.deleted_at)
                       is distinct from
                       (new.active, new.release_rate, new.max_queue_size, new.starts_at, new.ends_at, new.public_log,
                        new.deleted_at))
    execute function log_queue();

create or replace trigger log_draw after update of draw_at, draw_void_at on queues
    for each row when ((old.draw_at, old.draw_void_at) is distinct from (new.draw_at, new.draw_void_at))
    execute function log_draw();

-- tell ----------------------------------------------------------------------------------------------------------------

-- The argument says what happened.
create or replace function tell_webhooks_of_queue() returns trigger language plpgsql as $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select new.organizer_id, tg_argv[0], 'queue ' || new.id,
           jsonb_build_object('queue_id', new.id, 'title', new.title, 'event_id', new.event_id,
                              'starts_at', log_time(new.starts_at), 'released', new.serving)
     where wants_webhook(new.organizer_id, tg_argv[0]);
    if found then
        perform pg_notify('holdfast', 'webhook_messages ');
    end if;
    return null;
end $$;

create or replace trigger tell_webhooks_of_new_queue after insert on queues
    for each row when (new.active and (new.ends_at > now()) is not false)
    execute function tell_webhooks_of_queue('queue.opened');
create or replace trigger tell_webhooks_of_opened_queue after update of active, ends_at on queues
    for each row when (new.active and (new.ends_at > now()) is not false and new.deleted_at is null
                       and not (old.active and (old.ends_at > now()) is not false))
    execute function tell_webhooks_of_queue('queue.opened');
create or replace trigger tell_webhooks_of_drained_queue after update of serving on queues
    for each row when (old.serving < new.serving and new.serving = new.tickets)
    execute function tell_webhooks_of_queue('queue.drained');
