-- Merchants are told by mail of a pool that falls to its low_stock_at. The ledger's trigger sees it, whatever the cause:
-- it is the only one that counts stock.

alter table merchants add wants_low_stock boolean not null default true;
comment on column merchants.wants_low_stock is 'Whether mails about low stock are sent to the address.';
alter table merchants add language text check (length(language) <= 10);
comment on column merchants.language is 'That in which the merchant was told of low stock to be wanted or not; null: English.';
grant update (wants_low_stock, language) on merchants to holdfast_shop;

create or replace function count_stock() returns trigger language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp as $$
declare
    fallen bigint[];
begin
    with counted as (
        update pools set on_hand = on_hand + change.delta, held = held + change.held_delta,
                         entries = pools.entries + change.entries, version = change.version
          from (select pool_id, sum(delta) as delta, sum(held_delta) as held_delta, count(*) as entries,
                       max(version) as version
                  from fresh group by pool_id) as change
         where pools.id = change.pool_id
     returning pools.id, status, low_stock_at, on_hand - pools.held - buffer as available,
               change.delta - change.held_delta as more)
    select array_agg(id) into fallen from counted
     where available <= low_stock_at and available - more > low_stock_at and status = 'active';
    if exists (select from pools
                 join (select distinct on (pool_id) pool_id, seq, balance_after, held_after
                         from fresh order by pool_id, seq desc) as last on last.pool_id = pools.id
                where (entries, on_hand, held) <> (seq, balance_after, held_after)) then
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
