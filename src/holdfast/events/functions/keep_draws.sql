-- What was frozen and drawn never changes, and is not deleted while the queue exists: no list is drawn a second time.
create or replace function keep_draws() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and not exists (select from queues where id = old.queue_id and deleted_at is null) then
        return old;
    end if;
    raise integrity_constraint_violation using
        message = format('The draw of queue %s cannot change.', old.queue_id), table = tg_table_name;
end $$;

create or replace trigger keep_draws before update or delete on queue_freezes
    for each row execute function keep_draws();
create or replace trigger keep_draws before update or delete on queue_draws
    for each row execute function keep_draws();
create or replace trigger keep_draws before update or delete on queue_places
    for each row execute function keep_draws();
