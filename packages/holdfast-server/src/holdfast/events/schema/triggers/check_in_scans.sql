-- What a change of a row causes:
--
-- * insert: tells the pages of organizers (tell_of_event_details); an entry is told to webhooks
--   (tell_webhooks_of_check_ins)
-- * update: tells the pages of organizers (tell_of_event_details)

-- tell ----------------------------------------------------------------------------------------------------------------

create or replace trigger tell_of_new_scans after insert on check_in_scans referencing new table as changed
    for each statement execute function tell_of_event_details();
create or replace trigger tell_of_changed_scans after update on check_in_scans referencing new table as changed
    for each statement execute function tell_of_event_details();

-- The first scan of a registration is its entry.
create or replace function tell_webhooks_of_check_ins() returns trigger language plpgsql as $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select organizer_id, 'registration.checked_in', 'event ' || event_id,
           jsonb_build_object('event_id', event_id, 'user_id', person.public_id, 'device', device,
                              'at', log_time(told_at))
      from added
      join events on events.id = event_id
      join users as person on person.id = user_id
     where is_entry and wants_webhook(organizer_id, 'registration.checked_in')
     order by number;
    if found then
        perform pg_notify('holdfast', 'webhook_messages ');
    end if;
    return null;
end $$;

create or replace trigger tell_webhooks_of_check_ins after insert on check_in_scans referencing new table as added
    for each statement when (has_webhooks()) execute function tell_webhooks_of_check_ins();
