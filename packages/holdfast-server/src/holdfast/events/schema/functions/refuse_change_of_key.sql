-- The keys that registrations and visitors of queues name never change (see `check_references`).
create or replace function refuse_change_of_key() returns trigger language plpgsql as $$
begin
    raise foreign_key_violation using
        message = format('The key of a row of %s cannot change.', tg_table_name), table = tg_table_name;
end $$;
