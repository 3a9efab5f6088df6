-- Mails about registrations, stored by the statement that changes these. The table `mails` is the kit's. A person
-- without an address gets none: a mail without a recipient would make the statement of others fail. A mail about a
-- registration that is still filed under an earlier organizer of its event is one of the new organizer.
create or replace function mail_registrations() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        insert into mails (kind, thread, recipient, arguments)
        select kind, 'registration ' || event_id || ' ' || person.public_id, person.email,
               jsonb_build_object('organizer_id', future.organizer_id, 'event_id', event_id,
                                  'user_id', person.public_id, 'arrival', arrival, 'name', name, 'language', language)
          from before
         cross join lateral mail_kind(status::text, 'removed') as kind
         cross join lateral (select public_id, email from users
                              where users.id = before.user_id and email is not null limit 1) as person
         cross join lateral (select events.organizer_id from events
                              where events.id = before.event_id and cancelled_at is null and datetime > now()
                              limit 1) as future
         where kind is not null and notify
         order by arrival;
    else
        -- The rows before and after are brought together by grouping: a join is planned once, for any number of rows.
        insert into mails (kind, thread, recipient, arguments)
        select kind, 'registration ' || event_id || ' ' || person.public_id, person.email,
               jsonb_build_object('organizer_id',
                                  case when event_id = any(array(select event_hand_overs.event_id from event_hand_overs))
                                       then (select events.organizer_id from events where events.id = moved.event_id)
                                       else organizer_id end,
                                  'event_id', event_id, 'user_id', person.public_id,
                                  'arrival', arrival, 'name', name, 'language', language, 'reason', reason)
          from (select event_id, user_id, max(organizer_id) as organizer_id, max(arrival) as arrival,
                       max(name) as name, max(language) as language,
                       max(reason) as reason, bool_or(notify) as notify,
                       mail_kind(max(was)::text, max(becomes)::text) as kind
                  from (select event_id, user_id, organizer_id, status as was, null::registration_status as becomes,
                               null::bigint as arrival, null as name, null as language, null as reason, null as notify
                          from before
                        union all
                        select event_id, user_id, organizer_id, null, status, arrival, name, language, reason, notify
                          from after)
                       as rows
                 group by event_id, user_id) as moved
         cross join lateral (select public_id, email, proved_at from users
                              where users.id = moved.user_id and email is not null limit 1) as person
         where kind is not null and notify and (kind <> 'confirm' or person.proved_at is null)
         order by arrival;
    end if;
    return null;
end $$;

create or replace trigger mail_updated after update on registrations
    referencing old table as before new table as after for each statement execute function mail_registrations();
create or replace trigger mail_deleted after delete on registrations
    referencing old table as before for each statement execute function mail_registrations();
