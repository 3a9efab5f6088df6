-- An organizer looks for the mails that wait, were sent or failed: an index for all of these instead of one for all
-- mails of an event.
drop index mails_of_event;
create index mails_of_event on mails (
    ((arguments ->> 'event_id')::bigint), coalesce(outcome, 'waiting'), id) where arguments ? 'event_id';
