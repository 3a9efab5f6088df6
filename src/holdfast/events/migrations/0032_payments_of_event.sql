-- The newest payments for an event are read a page at a time, however many it has.

create index payments_of_event on payments (event_id, id);
