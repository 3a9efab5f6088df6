-- People whose data was erased: their registrations stay, of an account without an address and a name.

alter table users
    alter email drop not null,
    add erased_at timestamptz,
    add data_link_at timestamptz,
    add data_link_holder bytea check (length(data_link_holder) = 32),
    add constraint only_the_erased_have_no_address check ((email is null) = (erased_at is not null)),
    add constraint nothing_of_the_erased_is_kept check (
        erased_at is null or (role = 'user' and coalesce(name, slug, password_hash) is null
                              and coalesce(proved_at, data_link_at) is null and data_link_holder is null));
comment on column users.erased_at is 'When the person''s data was erased.';
comment on column users.data_link_at is 'When the link to the person''s own data was last sent. It is valid for an hour.';
comment on column users.data_link_holder is 'SHA-256 of what the page holds that used this link first: it works for no other.';

-- As before, and nobody is mailed who has no address: whatever is stored, no mail without a recipient can make the
-- statement of others fail.
create or replace function mail_registrations() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        insert into mails (kind, thread, recipient, arguments)
        select 'removed', 'registration ' || event_id || ' ' || person.public_id, person.email,
               jsonb_build_object('event_id', event_id, 'user_id', person.public_id, 'arrival', arrival,
                                  'name', name, 'language', language)
          from before
         cross join lateral (select public_id, email from users
                              where users.id = before.user_id and email is not null limit 1) as person
         cross join lateral (select id from events
                              where events.id = before.event_id and cancelled_at is null and datetime > now()
                              limit 1) as future
         where status in ('registered', 'waitlisted') and notify
         order by arrival;
    else
        -- The rows before and after are brought together by grouping: a join is planned once, for any number of rows.
        insert into mails (kind, thread, recipient, arguments)
        select kind, 'registration ' || event_id || ' ' || person.public_id, person.email,
               jsonb_build_object('event_id', event_id, 'user_id', person.public_id, 'arrival', arrival,
                                  'name', name, 'language', language, 'reason', reason)
          from (select event_id, user_id, max(arrival) as arrival, max(name) as name, max(language) as language,
                       max(reason) as reason, bool_or(notify) as notify,
                       case max(was)::text || ' ' || max(becomes)::text
                            when 'pending registered' then 'seat'
                            when 'pending waitlisted' then 'waitlisted'
                            when 'registered waitlisted' then 'waitlisted'
                            when 'pending rejected' then 'refused'
                            when 'waitlisted registered' then 'promoted' end as kind
                  from (select event_id, user_id, status as was, null::registration_status as becomes,
                               null::bigint as arrival, null as name, null as language, null as reason, null as notify
                          from before
                        union all
                        select event_id, user_id, null, status, arrival, name, language, reason, notify from after)
                       as rows
                 group by event_id, user_id) as moved
         cross join lateral (select public_id, email from users
                              where users.id = moved.user_id and email is not null limit 1) as person
         where kind is not null and notify
         order by arrival;
    end if;
    return null;
end $$;
