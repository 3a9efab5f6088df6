-- What a change of a row causes:
--
-- * insert: the people of the shop get a mail, unless one is planned already (mail_request)

-- mail ----------------------------------------------------------------------------------------------------------------

-- A transaction of a shop cannot plan mails, so the function has the rights of its owner.
create or replace function mail_request() returns trigger language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp as $$
begin
    insert into mails (kind, thread, recipient, arguments, due_at)
    select 'agent_requests', 'agent requests ' || mail.limit_id || ' ' || merchants.id, merchants.email,
           jsonb_build_object('limit_id', mail.limit_id, 'merchant_id', merchants.id), mail.due_at
      from plan_request_mail(new.tenant_id, new.key_id, new.client_id) as mail
      join merchants on merchants.shop_id = new.tenant_id
     where merchants.email is not null and merchants.proved_at is not null;
    return null;
end $$;

create or replace trigger mail_request after insert on agent_requests
    for each row execute function mail_request();
