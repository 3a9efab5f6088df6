-- Prices that move, and events that recur.

create index events_with_a_moving_price on events (datetime) where pricing_mode = 'dynamic' and cancelled_at is null;

alter table events add recurs_from timestamptz, add follows_id bigint unique references events,
                   add continued_at timestamptz;
update events set recurs_from = datetime;
alter table events alter recurs_from set not null;
comment on column events.recurs_from is 'The date from which the occurrences of its series are counted.';
comment on column events.follows_id is 'The occurrence before it. It is unique: an event is continued at most once.';
comment on column events.continued_at is 'When its next occurrence was created, or found not to exist.';
create index events_to_continue on events (datetime)
    where recurrence_frequency <> 'none' and cancelled_at is null and continued_at is null;
