-- An organizer sees what came of the mails about its events, the newest first.

create index mails_of_event on mails (((arguments ->> 'event_id')::bigint), id) where arguments ? 'event_id';
