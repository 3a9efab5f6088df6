-- The keys that the ledger names never change (see `count_stock`).
create or replace function refuse_change_of_key() returns trigger language plpgsql as $$
begin
    raise exception 'the key of a pool cannot change' using errcode = 'foreign_key_violation';
end $$;

create or replace trigger refuse_change_of_key before update of id, shop_id on pools
    for each row when ((old.id, old.shop_id) is distinct from (new.id, new.shop_id))
    execute function refuse_change_of_key();
