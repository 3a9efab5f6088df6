-- The console lists the events of an organizer by their dates, also cancelled ones.
create index events_by_date on events (organizer_id, datetime, id);
