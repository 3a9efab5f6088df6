-- The balance is the sum of the ledger because nothing but the ledger moves it. What is written into a pool is also
-- what is compared with its last entry, so each pool is looked up once. An entry of a pool that does not exist is refused
-- here, in place of a foreign key, which would look up the pool of each entry again. Merchants are told of a pool that falls to
-- its `low_stock_at`, whatever the cause: nothing else counts stock.
create or replace function count_stock() returns trigger language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp as $$
declare
    fallen bigint[];
    broken boolean;
    without_pool boolean;
begin
    with counted as (
        update pools set on_hand = on_hand + change.delta, held = held + change.held_delta,
                         entries = pools.entries + change.entries, version = change.version
          from (select shop_id, pool_id, sum(delta) as delta, sum(held_delta) as held_delta, count(*) as entries,
                       max(version) as version, max(seq) as last_seq,
                       (array_agg(balance_after order by seq desc))[1] as balance_after,
                       (array_agg(held_after order by seq desc))[1] as held_after
                  from new_entries group by shop_id, pool_id) as change
         where pools.shop_id = change.shop_id and pools.id = change.pool_id
     returning pools.id, status, low_stock_at, on_hand - pools.held - buffer as available,
               change.delta - change.held_delta as more,
               (pools.entries, on_hand, pools.held) <> (last_seq, balance_after, held_after) as differs)
    select array_agg(id) filter (where available <= low_stock_at and available - more > low_stock_at
                                       and status = 'active'),
           bool_or(differs), count(*) < (select count(distinct (shop_id, pool_id)) from new_entries)
      into fallen, broken, without_pool from counted;
    if without_pool then
        raise exception 'these entries are of a pool that does not exist' using errcode = 'foreign_key_violation';
    end if;
    if broken then
        raise exception 'these entries do not continue the ledger' using errcode = 'integrity_constraint_violation';
    end if;
    if fallen is not null then
        insert into mails (kind, thread, recipient, arguments)
        select 'low_stock', 'low stock ' || pools.id || ' ' || merchants.id, merchants.email,
               jsonb_build_object('pool_id', pools.id, 'merchant_id', merchants.id)
          from pools join merchants on merchants.shop_id = pools.shop_id
         where pools.id = any(fallen) and merchants.email is not null and merchants.proved_at is not null
           and wants_low_stock;
    end if;
    return null;
end $$;

create or replace trigger count_stock after insert on ledger
    referencing new table as new_entries for each statement execute function count_stock();
