-- What a change of a row causes:
--
-- * update of active that revokes it: webhooks of its organizer are told (tell_webhooks_of_revoked_key)

-- tell ----------------------------------------------------------------------------------------------------------------

create or replace function tell_webhooks_of_revoked_key() returns trigger language plpgsql as $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select new.user_id, 'key.revoked', 'key ' || new.id, jsonb_build_object('key_id', new.id, 'name', new.name)
     where wants_webhook(new.user_id, 'key.revoked');
    if found then
        perform pg_notify('holdfast', 'webhook_messages ');
    end if;
    return null;
end $$;

create or replace trigger tell_webhooks_of_revoked_key after update of active on api_keys
    for each row when (old.active and not new.active) execute function tell_webhooks_of_revoked_key();
