-- The pools that a hold keeps stock of, and how much, for messages of webhooks.
create or replace function pools_of_hold(shop bigint, hold bigint) returns jsonb language sql stable as $$
    select jsonb_agg(jsonb_build_object('pool_id', pool_id, 'quantity', quantity) order by pool_id)
      from hold_lines where shop_id = shop and hold_id = hold
$$;
