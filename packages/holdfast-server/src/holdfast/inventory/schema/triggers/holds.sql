-- What a change of a row causes:
--
-- * insert: programs are told that it was placed (tell_webhooks_of_new_holds)
-- * update: programs are told that it has ended, and why (tell_webhooks_of_ended_holds)

-- tell ----------------------------------------------------------------------------------------------------------------

-- These cause no notices, since they would be part of the commit (decision 57): the program sends one afterwards.
create or replace function tell_webhooks_of_new_holds() returns trigger language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp as $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select shop_id, 'hold.placed', 'hold ' || id,
           jsonb_build_object('hold_id', id, 'reference', reference,
                              'expires_at', to_char(expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                              'pools', pools_of_hold(shop_id, id))
      from added where wants_webhook(shop_id, 'hold.placed') order by id;
    return null;
end $$;

create or replace trigger tell_webhooks_of_new_holds after insert on holds
    referencing new table as added for each statement when (has_webhooks()) execute function tell_webhooks_of_new_holds();

create or replace function tell_webhooks_of_ended_holds() returns trigger language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp as $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select shop_id, 'hold.ended', 'hold ' || id,
           jsonb_build_object('hold_id', id, 'reference', after.reference,
                              'reason', case when after.sold then 'sold'
                                             when after.released_at >= after.expires_at then 'expired'
                                             else 'released' end,
                              'pools', pools_of_hold(shop_id, id))
      from before join after using (shop_id, id)
     where before.released_at is null and after.released_at is not null and wants_webhook(shop_id, 'hold.ended')
     order by id;
    return null;
end $$;

create or replace trigger tell_webhooks_of_ended_holds after update on holds
    referencing old table as before new table as after for each statement when (has_webhooks()) execute function tell_webhooks_of_ended_holds();
