-- The logs of events that became drafts end, as they do from now on when an event becomes a draft (log_event.sql).
with closed as (
    update logs set closed_at = now() from events
     where events.id = event_id and not published and closed_at is null
    returning logs.id)
insert into log_pending (log_id, kind, details) select id, 'close', '{"reason": "draft"}' from closed order by id;
