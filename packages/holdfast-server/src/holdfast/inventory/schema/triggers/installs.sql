-- What a change of a row causes:
--
-- * insert or update, if the shop is connected now: programs are told (tell_webhooks_of_app)

-- tell ----------------------------------------------------------------------------------------------------------------

create or replace function tell_webhooks_of_app() returns trigger language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp as $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select new.shop_id, 'app.connected', 'app', jsonb_build_object('shop', domain, 'scopes', to_jsonb(new.scopes))
      from shops where id = new.shop_id and wants_webhook(new.shop_id, 'app.connected');
    if found then
        -- The name of the channel and a space: it must match MESSAGES_CHANNEL in kit/webhooks/endpoints.py.
        perform pg_notify('holdfast', 'webhook_messages ');
    end if;
    return null;
end $$;

create or replace trigger tell_webhooks_of_installed after insert on installs
    for each row when (new.uninstalled_at is null and new.broken is null) execute function tell_webhooks_of_app();
create or replace trigger tell_webhooks_of_connected after update on installs
    for each row when (new.uninstalled_at is null and new.broken is null
                       and (old.uninstalled_at is not null or old.broken is not null))
    execute function tell_webhooks_of_app();
