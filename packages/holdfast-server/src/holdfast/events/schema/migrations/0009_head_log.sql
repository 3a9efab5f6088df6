-- The head log: the public log of the heads of all other logs (docs/events/fairness.md).

alter type log_entry_kind add value 'head';

alter table logs drop constraint a_log_is_of_an_event_or_a_queue,
    add constraint a_log_is_of_an_event_or_a_queue_or_of_heads check (num_nonnulls(event_id, queue_id) <= 1);
comment on table logs is 'Public logs. The one of neither an event nor a queue is the head log: the heads of all others. '
    'A further generation follows a restored backup, or a log that was switched off.';
create unique index head_logs on logs (generation) where event_id is null and queue_id is null;

alter table log_heads add listed_in bigint references logs, add listed_index bigint check (listed_index >= 0),
    add constraint a_listed_head_has_a_place check ((listed_in is null) = (listed_index is null));
comment on column log_heads.listed_in is 'The head log that has a signed head of this log.';
comment on column log_heads.listed_index is 'The index of the last such entry that is signed.';
