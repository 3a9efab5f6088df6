-- How many mails a second all processes send together: each mail takes a turn in this row, before it is sent.

create table mail_rate (
    is_only_row  boolean primary key default true check (is_only_row),
    next_at      timestamptz not null default now()
);
comment on table mail_rate is 'The turns of mails where SMTP_MAX_PER_SECOND is set: one row.';
comment on column mail_rate.next_at is 'The first moment that no turn has taken.';
insert into mail_rate default values;
