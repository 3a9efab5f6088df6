-- What a change of a row causes:
--
-- * insert: webhooks of its organizer are told (tell_webhooks_of_app)

-- tell ----------------------------------------------------------------------------------------------------------------

create or replace function tell_webhooks_of_app() returns trigger language plpgsql as $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select new.tenant_id, 'app.connected', 'client ' || id,
           jsonb_build_object('client_id', id, 'name', name, 'scopes', to_jsonb(new.scopes))
      from oauth_clients where id = new.client_id and wants_webhook(new.tenant_id, 'app.connected');
    if found then
        perform pg_notify('holdfast', 'webhook_messages ');
    end if;
    return null;
end $$;

create or replace trigger tell_webhooks_of_app after insert on oauth_grants
    for each row execute function tell_webhooks_of_app();
