-- The balance is the sum of the ledger because nothing but the ledger moves it. Each entry continues the one before it:
-- its number is the next one, and its balance is that of the one before with what it changes. The first is compared with
-- what the pool had, so each pool is looked up once. This also holds, in place of constraints that would look up the pool
-- of each entry again, that every entry has a pool, and that no number of a pool is given twice. Merchants are told of a
-- pool that falls to its `low_stock_at`, whatever the cause: nothing else counts stock.
create or replace function count_stock() returns trigger language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp as $$
declare
    fallen bigint[];
    broken boolean;
    repeated boolean;
    without_pool boolean;
begin
    with entry as (
        select shop_id, pool_id, seq, version, balance_after, held_after, delta, held_delta,
               lag(seq) over of_pool as seq_before, lag(balance_after) over of_pool as balance_before,
               lag(held_after) over of_pool as held_before
          from new_entries window of_pool as (partition by shop_id, pool_id order by seq)),
    change as (
        select shop_id, pool_id, count(*) as entries, max(version) as version, min(seq) as first_seq,
               min(balance_after - delta) filter (where seq_before is null) as balance_before,
               min(held_after - held_delta) filter (where seq_before is null) as held_before,
               sum(delta)::bigint as delta, sum(held_delta)::bigint as held_delta,
               coalesce(bool_or(seq = seq_before), false) as repeats,
               coalesce(bool_or(seq <> seq_before + 1 or balance_after <> balance_before + delta
                                or held_after <> held_before + held_delta), false) as breaks
          from entry group by shop_id, pool_id),
    counted as (
        update pools set on_hand = on_hand + change.delta, held = held + change.held_delta,
                         entries = pools.entries + change.entries, version = change.version
          from change
         where pools.shop_id = change.shop_id and pools.id = change.pool_id
     returning pools.id, status, low_stock_at, on_hand - pools.held - buffer as available,
               change.delta - change.held_delta as more,
               repeats or first_seq <= pools.entries - change.entries as repeats,
               breaks or (pools.entries - change.entries, on_hand - change.delta, pools.held - change.held_delta)
                         <> (first_seq - 1, balance_before, held_before) as differs)
    select array_agg(id) filter (where available <= low_stock_at and available - more > low_stock_at
                                       and status = 'active'),
           bool_or(differs), bool_or(repeats), count(*) < (select count(*) from change)
      into fallen, broken, repeated, without_pool from counted;
    if without_pool then
        raise exception 'these entries are of a pool that does not exist' using errcode = 'foreign_key_violation';
    end if;
    if repeated then
        raise exception 'a number of these entries is taken' using errcode = 'unique_violation';
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
