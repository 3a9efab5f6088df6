-- When an event ends: `ends_at` of the API. The column has another name than `payments.ends_at`, because statements of
-- older versions, which join both tables, go on running during an upgrade.
alter table events
    add column end_datetime timestamptz,
    add constraint it_ends_after_it_begins check (end_datetime > datetime);
comment on column events.end_datetime is 'When it ends; null: not stated.';
