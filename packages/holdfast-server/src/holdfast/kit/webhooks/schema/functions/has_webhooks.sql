-- Whether any endpoint is there, of those that the caller may see. Most services have none: triggers ask this first, and
-- do nothing else then.
create or replace function has_webhooks() returns boolean language plpgsql stable as $$
begin
    return exists (select from webhook_endpoints);
end $$;
