-- Who has come: each scan of a registration at the entrance.

create sequence check_in_changes;

create table check_in_scans (
    event_id       bigint not null,
    id             uuid not null,
    user_id        bigint not null,
    device         text not null check (length(device) between 1 and 60),
    told_at        timestamptz not null,
    stored_at      timestamptz not null default clock_timestamp(),
    number         bigint generated always as identity,
    is_entry       boolean not null,
    taken_back_at  timestamptz,
    changed        bigint not null default nextval('check_in_changes'),
    primary key (event_id, id),
    foreign key (event_id, user_id) references registrations on delete cascade,
    constraint what_was_taken_back_is_no_entry check (not is_entry or taken_back_at is null),
    constraint told_before_it_was_stored check (told_at <= stored_at)
);
comment on column check_in_scans.id is 'Made by the device, so that a scan that is sent again is stored once.';
comment on column check_in_scans.told_at is 'When the device says that it was; never after the time of the database.';
comment on column check_in_scans.number is 'The order in which the scans of an event were stored: its row is locked meanwhile.';
comment on column check_in_scans.changed is 'Devices ask for what changed after the last they have heard of.';
create unique index one_entry_a_registration on check_in_scans (event_id, user_id) where is_entry;
create index check_in_scans_of_registration on check_in_scans (event_id, user_id, number);
create index changed_check_in_scans on check_in_scans (event_id, changed);
