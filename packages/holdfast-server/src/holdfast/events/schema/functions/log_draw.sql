-- Tells the log of a queue or an event that a draw was set, changed, or given up, or became void.
create or replace function log_draw() returns trigger language plpgsql as $$
declare
    is_void boolean = new.draw_void_at is distinct from old.draw_void_at;
    log_id bigint;
begin
    if tg_table_name = 'queues' then
        select id into log_id from logs where queue_id = new.id and closed_at is null;
    else
        select id into log_id from logs where event_id = new.id and closed_at is null;
    end if;
    insert into log_pending (log_id, kind, at, details)
    select log_id, 'change', case when is_void then new.draw_void_at else clock_timestamp() end,
           jsonb_build_object(
               'draw', named_draw(coalesce(new.draw_at, old.draw_at), coalesce(new.draw_round, old.draw_round))
                       || case when is_void then '{"void": true}'::jsonb
                               when new.draw_at is null then '{"given_up": true}' else '{}' end,
               'by', case when is_void then 'service' else 'organizer' end)
     where log_id is not null;
    return null;
end $$;
