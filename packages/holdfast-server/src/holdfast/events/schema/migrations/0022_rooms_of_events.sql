-- A waiting room before an event of its organizer (docs/events/waiting-room.md).

alter table queues add event_id bigint references events;
comment on column queues.event_id is 'The event that the waiting room stands before; null: it stands before another site.';
create unique index an_event_has_one_waiting_room on queues (event_id) where event_id is not null and deleted_at is null;

alter table events add queue_id bigint references queues;
comment on column events.queue_id is
    'The waiting room before the event, kept by a trigger from `queues.event_id`. Null: people register without a release.';
create index events_behind_queues on events (queue_id) where queue_id is not null;
