-- Entries of the draw of an event come first if the address was confirmed before the list closed (docs/events/fairness.md).

alter type log_entry_kind add value 'confirmations';

alter table events add draw_confirmed bigint;
comment on column events.draw_confirmed is 'How many entries of a closed list have a confirmed address; null: not stored yet.';

create table event_confirmations (
    event_id  bigint not null references events on delete cascade,
    number    bigint not null check (number >= 0),
    tickets   integer[] not null check (cardinality(tickets) between 1 and 1000),
    primary key (event_id, number)
);
alter table event_confirmations alter tickets set storage plain;
comment on table event_confirmations is
    'The tickets of a closed list whose addresses were confirmed: row 0 has those of the tickets 1 to 1000.';
