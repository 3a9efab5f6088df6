-- Draws of events (docs/events/fairness.md). Who registers before `draw_at` is an entry of a list that is drawn.

alter type registration_status add value 'in_draw';
alter type log_entry_kind add value 'places';

alter table log_pending add numbers bigint[];
alter table log_pending alter numbers set storage external;
comment on column log_pending.numbers is 'Of `places`: who gets the outcomes, in the order in which they are given.';

alter table events
    add draw_at timestamptz, add draw_round bigint, add draw_round_at timestamptz, add draw_entries bigint,
    add drawn_at timestamptz, add draw_void_at timestamptz, add takes_entries boolean not null default false,
    add draw_placed bigint not null default 0,
    -- What else is always true of a draw is checked by a trigger: settlement changes events, and each check costs it.
    add constraint nobody_has_a_place_before_the_draw check (
        draw_at is null or drawn_at is not null or registered_count = 0 and waitlisted_count = 0);
comment on column events.draw_at is 'When the event opens: the list of entries closes, and is drawn.';
comment on column events.draw_round is 'The round of the public beacon that draws the list.';
comment on column events.draw_round_at is 'The time of that round.';
comment on column events.draw_entries is 'Of a frozen list: its tickets are 1 to this number. Later ones follow in their order.';
comment on column events.draw_void_at is 'When the draw became void, because the list was not frozen in time.';
comment on column events.takes_entries is 'Whether who registers becomes an entry, until all entries have their outcomes.';
comment on column events.draw_placed is 'How many places of the drawn order have their outcomes.';
create index events_to_draw on events (draw_at)
    where draw_at is not null and drawn_at is null and draw_void_at is null and cancelled_at is null;
create index events_to_place on events (id) where takes_entries;

create table event_entries (
    event_id    bigint not null references events on delete cascade,
    ticket      bigint not null check (ticket > 0),
    user_id     bigint,
    entered_at  timestamptz not null,
    primary key (event_id, ticket)
);
comment on table event_entries is 'The entries of draws. A ticket is the number of the arrival in the log.';
comment on column event_entries.user_id is 'Whose registration it is; null: it is gone, and its ticket stays in the list.';
comment on column event_entries.entered_at is 'When it came. Its registration gets another `received_at` by the draw.';

create table event_freezes (
    event_id   bigint primary key references events on delete cascade,
    origin     text not null,
    entries    bigint not null check (entries >= 0),
    size       bigint not null check (size > 0),
    root       bytea not null check (length(root) = 32),
    round      bigint not null check (round > 0),
    frozen_at  timestamptz not null,
    unique (event_id, round)
);
comment on table event_freezes is 'The frozen list of each draw: its tickets are 1 to `entries`, in the log with this root.';

-- An event has one draw, with the round that its freeze names.
create table event_draws (
    event_id    bigint primary key,
    round       bigint not null,
    signature   bytea not null check (length(signature) = 48),
    seed        bytea not null check (length(seed) = 32),
    order_hash  bytea not null check (length(order_hash) = 32),
    drawn_at    timestamptz not null,
    foreign key (event_id, round) references event_freezes (event_id, round) on delete cascade
);

create table event_drawn_tickets (
    event_id  bigint not null references event_draws on delete cascade,
    number    bigint not null check (number >= 0),
    tickets   integer[] not null check (cardinality(tickets) between 1 and 256),
    primary key (event_id, number)
);
alter table event_drawn_tickets alter tickets set storage plain;
comment on table event_drawn_tickets is 'The tickets in their drawn order, 256 a row: row 0 has the places 1 to 256.';
