-- The keys that the ledger names never change (see `count_stock`). A trigger for each row would lock each pool that stock
-- is counted in once more, whatever columns it is about.
create or replace function refuse_change_of_key() returns trigger language plpgsql as $$
begin
    raise exception 'the key of a pool cannot change' using errcode = 'foreign_key_violation';
end $$;

create or replace trigger refuse_change_of_key before update of id, shop_id on pools
    for each statement execute function refuse_change_of_key();
