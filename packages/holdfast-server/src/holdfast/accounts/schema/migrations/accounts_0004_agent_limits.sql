-- Daily limits that a person sets for an agent: for an API key, or for an app that the tenant has connected. All grants
-- of one app to one tenant share its limit, so connecting it again begins no new count.

create table agent_limits (
    id           bigint generated always as identity primary key,
    tenant_id    bigint not null,
    key_id       bigint unique,
    client_id    text references oauth_clients on delete cascade,
    daily_limit  bigint check (daily_limit between 0 and 1000000000000),
    day          date not null default (clock_timestamp() at time zone 'UTC')::date,
    used         bigint not null default 0,
    allowed      bigint,
    set_at       timestamptz not null default now(),
    unique (tenant_id, client_id),
    constraint one_credential check (num_nonnulls(key_id, client_id) = 1),
    constraint never_beyond_the_limit check (used between 0 and allowed),
    constraint allowed_with_a_limit check ((allowed is null) = (daily_limit is null) and allowed >= daily_limit)
);
comment on table agent_limits is 'What the calls of one API key, or of one connected app, may do in a day.';
comment on column agent_limits.daily_limit is 'Registrations, or units of stock; null: no limit, and nothing is counted.';
comment on column agent_limits.day is 'The day in UTC that `used` and `allowed` are of.';
comment on column agent_limits.allowed is
    'The limit of this day. It is above `daily_limit` if more was used already when the limit was lowered.';
create index agent_limits_of_client on agent_limits (client_id) where client_id is not null;
