-- How many of each variant of a pool can be sold; null if it has more than 100 variants.
create or replace function sellable_of_pool(shop bigint, pool bigint) returns jsonb language sql stable as $$
    select case when count(*) <= 100
                then coalesce(jsonb_object_agg(variant_gid, quantity) filter (where quantity is not null), '{}') end
      from (select variant_gid from members where shop_id = shop and pool_id = pool limit 101) as member
     cross join lateral (select quantity from availability
                          where availability.shop_id = shop and availability.variant_gid = member.variant_gid) as sellable
$$;
