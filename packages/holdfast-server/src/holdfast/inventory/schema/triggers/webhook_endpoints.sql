-- What a change of a row causes:
--
-- * update of status to `failing`: the people of the shop get a mail (mail_failing_webhook)

-- mail ----------------------------------------------------------------------------------------------------------------

create or replace function mail_failing_webhook() returns trigger language plpgsql as $$
begin
    insert into mails (kind, thread, recipient, arguments)
    select 'webhook_failing', 'webhook ' || new.id || ' ' || merchants.id, email,
           jsonb_build_object('endpoint_id', new.id, 'merchant_id', merchants.id)
      from merchants where shop_id = new.tenant_id and email is not null and proved_at is not null;
    return null;
end $$;

create or replace trigger mail_failing_webhook after update of status on webhook_endpoints
    for each row when (new.status = 'failing' and old.status <> 'failing') execute function mail_failing_webhook();
