-- Organizers, their keys, events, and who is registered for them.

create type user_role as enum ('user', 'organizer', 'admin');

create table users (
    id             bigint generated always as identity primary key,
    public_id      text not null unique check (public_id ~ '^[a-z2-7]{8}$'),
    email          text not null unique check (email = lower(email collate "C")),
    name           text,
    role           user_role not null default 'user',
    slug           text check (slug ~ '^[a-z0-9-]{3,100}$'),
    password_hash  text,
    payouts_ready  boolean not null default false,
    inserted_at    timestamptz not null default now(),
    check (role <> 'organizer' or (slug is not null and name is not null))
);

create unique index users_slug on users (slug) where slug is not null;

create table api_keys (
    id           bigint generated always as identity primary key,
    user_id      bigint references users,
    name         text not null,
    start        text not null check (length(start) = 8),
    hash         bytea not null unique check (length(hash) = 32),
    active       boolean not null default true,
    inserted_at  timestamptz not null default now()
);
comment on column api_keys.user_id is 'The organizer the key acts for; null for an admin key.';
create index api_keys_of_user on api_keys (user_id) where active;

create type pricing_mode as enum ('free', 'fixed', 'dynamic');
create type recurrence_frequency as enum ('none', 'days', 'weeks', 'months', 'years');

create table events (
    id                     bigint generated always as identity primary key,
    organizer_id           bigint not null references users,
    title                  text not null,
    body                   text not null,
    datetime               timestamptz not null,
    capacity               integer not null check (capacity > 0),
    waitinglist_capacity   integer not null check (waitinglist_capacity >= 0),
    registered_count       integer not null default 0 check (registered_count >= 0),
    waitlisted_count       integer not null default 0 check (waitlisted_count >= 0),
    currency               text not null check (currency ~ '^[A-Z]{3}$'),
    pricing_mode           pricing_mode not null,
    price                  bigint not null check (price >= 0),
    min_price              bigint check (min_price >= 0),
    max_price              bigint check (max_price >= 0),
    current_price          bigint check (current_price >= 0),
    recurrence_frequency   recurrence_frequency not null,
    recurrence_interval    integer not null check (recurrence_interval >= 0),
    address                text,
    location_name          text,
    latitude               double precision check (latitude between -90 and 90),
    longitude              double precision check (longitude between -180 and 180),
    image_keys             text[] not null default '{}',
    cancelled_at           timestamptz,
    inserted_at            timestamptz not null default now(),
    constraint no_more_seats_than_capacity check (registered_count <= capacity),
    constraint price_fits_its_mode check (
        case pricing_mode
            when 'free' then price = 0 and current_price is null
            when 'fixed' then price >= 1 and current_price = price
            when 'dynamic' then min_price <= price and price <= max_price
                            and min_price <= current_price and current_price <= max_price
        end is true
    )
);
create index events_of_organizer on events (organizer_id, id);

create type price_change_reason as enum ('init', 'registration', 'tick', 'manual_change', 'other');

create table price_changes (
    id              bigint generated always as identity primary key,
    event_id        bigint not null references events,
    reason          price_change_reason not null,
    original_price  bigint,
    new_price       bigint not null,
    "timestamp"     timestamptz not null default clock_timestamp()
);
create index price_changes_of_event on price_changes (event_id, id desc);

-- One row a person and event, from the moment it is accepted. `pending` is accepted but not settled; `rejected` is
-- settled without a place, and kept so that the person who asks is told. The two other states are the contract's.
create type registration_status as enum ('pending', 'registered', 'waitlisted', 'rejected');

create sequence registration_arrivals;

create table registrations (
    event_id     bigint not null references events,
    user_id      bigint not null references users,
    arrival      bigint not null,
    status       registration_status not null default 'pending',
    amount_paid  bigint not null check (amount_paid >= 0),
    received_at  timestamptz not null,
    settled_at   timestamptz,
    reason       text,
    primary key (event_id, user_id),
    check ((status = 'pending') = (settled_at is null)),
    check ((status = 'rejected') = (reason is not null))
);
comment on column registrations.arrival is 'Breaks ties of received_at.';
create index registrations_to_settle on registrations (received_at, arrival) where status = 'pending';
create index registrations_waiting on registrations (event_id, received_at, arrival) where status = 'waitlisted';
create index registrations_in_order on registrations (received_at, arrival);

-- Seats are counted by the database itself, so that the counters cannot differ from the rows and the CHECK above
-- holds capacity whatever the code does.
create function count_seats() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        update events set registered_count = registered_count + change.registered,
                          waitlisted_count = waitlisted_count + change.waitlisted
          from (select event_id, count(*) filter (where status = 'registered') as registered,
                                 count(*) filter (where status = 'waitlisted') as waitlisted
                  from after where status in ('registered', 'waitlisted') group by event_id) as change
         where events.id = change.event_id;
    elsif tg_op = 'DELETE' then
        update events set registered_count = registered_count - change.registered,
                          waitlisted_count = waitlisted_count - change.waitlisted
          from (select event_id, count(*) filter (where status = 'registered') as registered,
                                 count(*) filter (where status = 'waitlisted') as waitlisted
                  from before where status in ('registered', 'waitlisted') group by event_id) as change
         where events.id = change.event_id;
    else
        update events set registered_count = registered_count + change.registered,
                          waitlisted_count = waitlisted_count + change.waitlisted
          from (select event_id, sum(seat) filter (where status = 'registered') as registered,
                                 sum(seat) filter (where status = 'waitlisted') as waitlisted
                  from (select event_id, status, 1 as seat from after
                        union all
                        select event_id, status, -1 from before) as seats
                 group by event_id) as moved
          cross join lateral (select moved.event_id, coalesce(moved.registered, 0) as registered,
                                     coalesce(moved.waitlisted, 0) as waitlisted) as change
         where events.id = change.event_id and (change.registered <> 0 or change.waitlisted <> 0);
    end if;
    return null;
end $$;

create trigger count_inserted after insert on registrations
    referencing new table as after for each statement execute function count_seats();
create trigger count_deleted after delete on registrations
    referencing old table as before for each statement execute function count_seats();
create trigger count_updated after update on registrations
    referencing old table as before new table as after for each statement execute function count_seats();
