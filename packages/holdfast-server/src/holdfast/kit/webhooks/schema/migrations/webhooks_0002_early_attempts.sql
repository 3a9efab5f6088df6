-- Further attempts are brought forward when an endpoint answers again; attempts say in one word why they failed; what waits
-- for an endpoint can be counted.

alter table webhook_attempts add column reason text;
comment on column webhook_attempts.reason is 'Why it failed, in one word, such as timeout; null: it was delivered, or is older than the column.';

alter table webhook_deliveries add column early_attempts smallint not null default 0;
comment on column webhook_deliveries.early_attempts is 'Those of its attempts that were brought forward. They do not count in the pauses between attempts.';

create index webhook_deliveries_not_ended on webhook_deliveries (endpoint_id, due_at) where status = 'waiting';
drop index webhook_deliveries_due;
create index webhook_deliveries_retried on webhook_deliveries (endpoint_id, message_id)
    where status = 'waiting' and attempts > 1 and early_attempts < 5;
