-- What a change of a row causes:
--
-- * insert: the organizer gets a mail, unless one is planned already (mail_request)

-- mail ----------------------------------------------------------------------------------------------------------------

create or replace function mail_request() returns trigger language plpgsql as $$
begin
    insert into mails (kind, thread, recipient, arguments, due_at)
    select 'agent_requests', 'agent requests ' || mail.limit_id, users.email,
           jsonb_build_object('limit_id', mail.limit_id, 'organizer_id', users.id), mail.due_at
      from plan_request_mail(new.tenant_id, new.key_id, new.client_id) as mail
      join users on users.id = new.tenant_id
     where users.email is not null and users.proved_at is not null;
    return null;
end $$;

create or replace trigger mail_request after insert on agent_requests
    for each row execute function mail_request();
