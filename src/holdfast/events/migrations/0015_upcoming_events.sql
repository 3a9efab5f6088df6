-- The pages of organizers list what is to come, a page at a time.

create index events_to_come on events (organizer_id, datetime, id) where cancelled_at is null;
