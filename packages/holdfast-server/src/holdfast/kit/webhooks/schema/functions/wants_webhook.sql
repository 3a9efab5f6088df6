-- Whether a tenant has an endpoint that gets messages of a type.
create or replace function wants_webhook(tenant bigint, type text) returns boolean language sql stable as $$
    select exists (
        select from webhook_endpoints
         where tenant_id = tenant and status <> 'paused' and (types = '{}' or wants_webhook.type = any(types)))
$$;
