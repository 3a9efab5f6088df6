-- Draws of queues (docs/events/waiting-room.md). Tickets stay as they were given out: a draw stores the place of each.

alter table queues
    add draw_at timestamptz, add draw_round bigint check (draw_round > 0), add draw_round_at timestamptz,
    add draw_entries bigint check (draw_entries between 0 and 2147483647), add drawn_at timestamptz,
    add draw_void_at timestamptz,
    add constraint a_draw_names_its_round check (
        (draw_at is null) = (draw_round is null) and (draw_at is null) = (draw_round_at is null)),
    add constraint only_a_frozen_list_is_drawn check (
        drawn_at is null or (draw_at is not null and draw_entries is not null)),
    add constraint a_void_draw_draws_nobody check (drawn_at is null or draw_void_at is null),
    add constraint nobody_is_released_before_the_draw check (draw_at is null or drawn_at is not null or serving = 0);
comment on column queues.draw_at is 'When the list of entries closes. Nobody is released before it is drawn.';
comment on column queues.draw_round is 'The round of the public beacon that draws the list.';
comment on column queues.draw_round_at is 'The time of that round.';
comment on column queues.draw_entries is 'Of a frozen list: its tickets are 1 to this number. Later ones follow in their order.';
comment on column queues.draw_void_at is 'When the draw became void, because the list was not frozen in time.';
create index queues_to_draw on queues (draw_at)
    where draw_at is not null and drawn_at is null and draw_void_at is null and deleted_at is null;

create table queue_freezes (
    queue_id   bigint primary key references queues on delete cascade,
    origin     text not null,
    entries    bigint not null check (entries >= 0),
    size       bigint not null check (size > 0),
    root       bytea not null check (length(root) = 32),
    round      bigint not null check (round > 0),
    frozen_at  timestamptz not null,
    unique (queue_id, round)
);
comment on table queue_freezes is 'The frozen list of each draw: its tickets are 1 to `entries`, in the log with this root.';

-- A queue has one draw, with the round that its freeze names.
create table queue_draws (
    queue_id    bigint primary key,
    round       bigint not null,
    signature   bytea not null check (length(signature) = 48),
    seed        bytea not null check (length(seed) = 32),
    order_hash  bytea not null check (length(order_hash) = 32),
    drawn_at    timestamptz not null,
    foreign key (queue_id, round) references queue_freezes (queue_id, round) on delete cascade
);

create table queue_places (
    queue_id  bigint not null references queue_draws on delete cascade,
    number    bigint not null check (number >= 0),
    places    integer[] not null check (cardinality(places) between 1 and 256),
    primary key (queue_id, number)
);
alter table queue_places alter places set storage plain;
comment on table queue_places is 'The drawn places of tickets, 256 a row: row 0 has those of the tickets 1 to 256.';
