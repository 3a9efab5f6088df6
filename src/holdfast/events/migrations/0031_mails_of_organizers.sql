-- An organizer sees what came of its mails without a look at each of its events.

-- As before; a mail says whose event it is about.
create or replace function mail_registrations() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        insert into mails (kind, thread, recipient, arguments)
        select 'removed', 'registration ' || event_id || ' ' || person.public_id, person.email,
               jsonb_build_object('organizer_id', organizer_id, 'event_id', event_id, 'user_id', person.public_id,
                                  'arrival', arrival, 'name', name, 'language', language)
          from before
         cross join lateral (select public_id, email from users
                              where users.id = before.user_id and email is not null limit 1) as person
         cross join lateral (select id from events
                              where events.id = before.event_id and cancelled_at is null and datetime > now()
                              limit 1) as future
         where status in ('registered', 'held', 'waitlisted') and notify
         order by arrival;
    else
        -- The rows before and after are brought together by grouping: a join is planned once, for any number of rows.
        insert into mails (kind, thread, recipient, arguments)
        select kind, 'registration ' || event_id || ' ' || person.public_id, person.email,
               jsonb_build_object('organizer_id', organizer_id, 'event_id', event_id, 'user_id', person.public_id,
                                  'arrival', arrival, 'name', name, 'language', language, 'reason', reason)
          from (select event_id, user_id, max(organizer_id) as organizer_id, max(arrival) as arrival, max(name) as name, max(language) as language,
                       max(reason) as reason, bool_or(notify) as notify,
                       case max(was)::text || ' ' || max(becomes)::text
                            when 'pending registered' then 'seat'
                            when 'held registered' then 'seat'
                            when 'pending waitlisted' then 'waitlisted'
                            when 'registered waitlisted' then 'waitlisted'
                            when 'pending rejected' then 'refused'
                            when 'held rejected' then 'refused'
                            when 'waitlisted held' then 'payment_due'
                            when 'rejected registered' then 'seat'
                            when 'waitlisted registered' then 'promoted' end as kind
                  from (select event_id, user_id, organizer_id, status as was, null::registration_status as becomes,
                               null::bigint as arrival, null as name, null as language, null as reason, null as notify
                          from before
                        union all
                        select event_id, user_id, organizer_id, null, status, arrival, name, language, reason, notify
                          from after)
                       as rows
                 group by event_id, user_id) as moved
         cross join lateral (select public_id, email from users
                              where users.id = moved.user_id and email is not null limit 1) as person
         where kind is not null and notify
         order by arrival;
    end if;
    return null;
end $$;

create or replace function mail_refund() returns trigger language plpgsql as $$
begin
    insert into mails (kind, thread, recipient, arguments)
    select 'refund', 'refund ' || new.id, person.email,
           jsonb_build_object('organizer_id', organizer_id, 'event_id', event_id, 'user_id', person.public_id,
                              'arrival', arrival, 'amount', new.amount, 'currency', payments.currency,
                              'language', language, 'reason', new.reason)
      from payments
      join events on events.id = event_id
      join users as person on person.id = user_id
     where payments.id = new.payment_id and person.email is not null;
    return null;
end $$;

update mails set arguments = arguments || jsonb_build_object('organizer_id', organizer_id)
  from events where arguments ? 'event_id' and events.id = (arguments ->> 'event_id')::bigint;

drop index mails_of_event;
create index mails_of_organizer on mails (
    ((arguments ->> 'organizer_id')::bigint), coalesce(outcome, 'waiting'), id) where arguments ? 'organizer_id';

-- An event that is handed over takes its mails along.
create function hand_mails_over() returns trigger language plpgsql as $$
begin
    update mails set arguments = arguments || jsonb_build_object('organizer_id', new.organizer_id)
     where arguments ? 'organizer_id' and (arguments ->> 'organizer_id')::bigint = old.organizer_id
       and (arguments ->> 'event_id')::bigint = new.id;
    return null;
end $$;
create trigger hand_mails_over after update of organizer_id on events
    for each row when (old.organizer_id <> new.organizer_id) execute function hand_mails_over();
