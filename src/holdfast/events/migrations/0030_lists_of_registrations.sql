-- Lists of registrations read their page from an index that has their order, whatever else is stored.

-- Whose event it is, so that an index can have all registrations of an organizer in order. The reference below keeps it
-- right, also when an event is handed over.
alter table registrations add organizer_id bigint;
comment on column registrations.organizer_id is 'Whose event it is.';

drop index registrations_in_order, registrations_waiting, registrations_held;

-- The table is written once more, with its other indexes: an update would leave every row behind as garbage, and run the
-- triggers. A function may look up what an expression here may not.
create function organizer_of_event(event bigint) returns bigint stable language plpgsql as $$
begin
    return (select organizer_id from events where id = event);
end $$;
alter table registrations alter organizer_id type bigint using organizer_of_event(event_id);
drop function organizer_of_event(bigint);

drop index events_of_organizer;
create unique index events_of_organizer on events (organizer_id, id);
alter table registrations
    alter organizer_id set not null,
    drop constraint registrations_event_id_fkey,
    add constraint registrations_event_id_fkey foreign key (organizer_id, event_id)
        references events (organizer_id, id) on update cascade;

-- Of one event, each state by itself: the states that are wanted are merged.
create index registrations_of_event on registrations (event_id, status, received_at, arrival);

-- Only what is listed. What waits to be settled is in none of these, so they cost accepting nothing.
create index registrations_of_organizer on registrations (organizer_id, received_at, arrival)
    where status in ('registered', 'waitlisted');
create index registrations_in_order on registrations (received_at, arrival)
    where status in ('registered', 'waitlisted');
create index people_of_organizer on registrations (organizer_id, user_id)
    where status in ('registered', 'waitlisted');
