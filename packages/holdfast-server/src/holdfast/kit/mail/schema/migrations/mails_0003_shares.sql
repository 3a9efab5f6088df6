-- The outbox has 64 shares, by mailbox. A process leases a share, and only that process sends its mails.

-- A function of an index: this text must not change. Mails to one mailbox have the same key (`mailbox` in
-- kit/contract/addresses.py). Mailboxes may share a key: dots are dropped for all domains, and so is a domain that has
-- another form in ASCII.
-- The cost keeps plans from computing it for many rows: the index has it.
create function mail_share(recipient text) returns integer
    language sql immutable strict parallel safe cost 100000 as $$
    select (hashtextextended(
        replace(regexp_replace(lower(recipient collate "C"), '([+].*)?@[^@]*$', ''), '.', '') || '@'
            || case when recipient ~ '@[A-Za-z0-9.-]+$' and recipient !~* '@(.*[.])?xn--[^@]*$'
                    then replace(regexp_replace(lower(recipient collate "C"), '^.*@', ''), 'googlemail.com', 'gmail.com')
                    else '' end,
        0) & 63)::integer
$$;
comment on function mail_share is 'The share of a mail: the same for all mails to one mailbox.';

-- The value stands in the index alone: a column would rewrite the table, while every registration waits.
create index mails_in_shares on mails
    (mail_share(recipient), bulk, (coalesce(arguments ->> 'organizer_id', arguments ->> 'merchant_id', '')), due_at, id)
    where ended_at is null and hold is null;

create table mail_shares (
    share     integer primary key check (share between 0 and 63),
    lease_id  uuid,
    due_at    timestamptz not null default now()
);
comment on table mail_shares is 'The shares of the outbox: which of them a process has leased.';
comment on column mail_shares.lease_id is 'The lease of the process that sends its mails; null: it was given back.';
comment on column mail_shares.due_at is 'The end of the lease: from then on another process may lease it.';
insert into mail_shares (share) select generate_series(0, 63);

-- The table `mail_sender` is the lock of the one sender of version 0.2.0, which holds it while this is applied: so nothing
-- here may lock it. Senders of shares hold it in row share mode, so that only one version sends. Release 0.4.0 no longer
-- locks it, and the release after that drops it.
