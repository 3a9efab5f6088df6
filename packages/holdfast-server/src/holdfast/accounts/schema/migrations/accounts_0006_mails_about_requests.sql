-- People are mailed when an agent waits for their approval: at most once an hour for each credential.
alter table agent_limits
    add column mails_requests boolean not null default true,
    add column language text check (length(language) <= 10),
    add column mail_at timestamptz;
comment on column agent_limits.mails_requests is 'Whether people are mailed when the credential waits for their approval.';
comment on column agent_limits.language is 'Of the page on which the limit was set last, for these mails; null: English.';
comment on column agent_limits.mail_at is 'When the newest of these mails is due, or was; null: there was none.';
