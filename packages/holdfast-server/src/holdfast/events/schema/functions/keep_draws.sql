-- What was frozen and drawn never changes, and is not deleted while the queue or event exists: no list is drawn a second
-- time.
create or replace function keep_draws() returns trigger language plpgsql as $$
declare
    is_of_queue boolean = tg_table_name like 'queue%';
    drawn bigint = to_jsonb(old) -> case when is_of_queue then 'queue_id' else 'event_id' end;
begin
    if tg_op = 'DELETE' then
        if is_of_queue and not exists (select from queues where id = drawn and deleted_at is null)
           or not is_of_queue and not exists (select from events where id = drawn) then
            return old;
        end if;
    end if;
    raise integrity_constraint_violation using
        message = format('The draw of %s %s cannot change.', case when is_of_queue then 'queue' else 'event' end, drawn),
        table = tg_table_name;
end $$;
