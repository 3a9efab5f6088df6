-- What a change of a row causes:
--
-- * update that ends it: programs are told (tell_webhooks_of_ended_key)

-- tell ----------------------------------------------------------------------------------------------------------------

create or replace function tell_webhooks_of_ended_key() returns trigger language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp as $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select new.shop_id, 'key.revoked', 'key ' || new.id, jsonb_build_object('key_id', new.id, 'scopes', to_jsonb(new.scopes))
     where wants_webhook(new.shop_id, 'key.revoked');
    if found then
        -- The name of the channel and a space: it must match MESSAGES_CHANNEL in kit/webhooks/endpoints.py.
        perform pg_notify('holdfast', 'webhook_messages ');
    end if;
    return null;
end $$;

create or replace trigger tell_webhooks_of_ended_key after update of active on api_keys
    for each row when (old.active and not new.active) execute function tell_webhooks_of_ended_key();
