-- Plans a mail about a new request of a credential: a minute from now, and an hour after the mail before it. No row: its
-- people want none, or one is planned that will have this request. A mail that is due in ten seconds may be read before the
-- request is committed, so it does not count: the next one is sent if the request still waits by then.
create or replace function plan_request_mail(tenant bigint, key bigint, client text)
    returns table (limit_id bigint, due_at timestamptz)
    language sql set search_path = pg_catalog, public, pg_temp as $$
    update agent_limits
       set mail_at = greatest(clock_timestamp() + interval '1 minute', mail_at + interval '1 hour')
     where (key_id = key or tenant_id = tenant and client_id = client) and mails_requests
       and (mail_at is null or mail_at <= clock_timestamp() + interval '10 seconds')
    returning id, mail_at
$$;
