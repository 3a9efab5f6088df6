-- People give up their registrations with time to undo it, and the seats that somebody who waited takes are counted
-- (docs/decisions/0106).

alter table registrations
    add gives_up_at timestamptz,
    add constraint what_has_no_place_is_not_given_up check (gives_up_at is null or status <> 'rejected');
comment on column registrations.gives_up_at is
    'When it is given up, since the person has asked for that and has not undone it. Null: it is not.';
create index registrations_given_up on registrations (gives_up_at) where gives_up_at is not null;

alter table events add seats_passed_on integer not null default 0 check (seats_passed_on >= 0);
comment on column events.seats_passed_on is
    'How many seats that people gave up were taken by people who waited. A trigger of given_up_places counts them.';

create table given_up_places (
    event_id bigint not null references events on delete cascade,
    arrival bigint not null,
    given_up_at timestamptz not null,
    had_seat boolean not null,
    next_arrival bigint,
    taken_at timestamptz,
    primary key (event_id, arrival),
    constraint only_a_seat_has_a_next_person check (had_seat or next_arrival is null),
    constraint only_the_next_person_takes_it check (next_arrival is not null or taken_at is null)
);
comment on table given_up_places is
    'Registrations that people gave up, by the numbers of their arrivals: the links of these people say what became of the place. It has no people.';
comment on column given_up_places.next_arrival is
    'The arrival of the registration that got the seat from the waiting list; null: nobody waited, or it was no seat.';
comment on column given_up_places.taken_at is
    'When that registration had the seat for good: a seat that has to be paid is held first.';
create index given_up_places_old on given_up_places (given_up_at);
create index given_up_places_held on given_up_places (event_id, next_arrival)
    where next_arrival is not null and taken_at is null;

create table push_subscriptions (
    id bigint generated always as identity primary key,
    event_id bigint not null,
    user_id bigint not null,
    organizer_id bigint not null,
    digest bytea not null,
    sealed bytea not null,
    language text not null check (language ~ '^[a-z]{2}$'),
    inserted_at timestamptz not null default now(),
    forget_at timestamptz not null,
    due_at timestamptz,
    attempts integer not null default 0,
    lease_id uuid,
    error text,
    unique (event_id, user_id, digest),
    foreign key (event_id, user_id) references registrations on update cascade on delete cascade
);
comment on table push_subscriptions is
    'Browsers that are told by a push message when a registration moves up from the waiting list.';
comment on column push_subscriptions.organizer_id is
    'The organizer of the event when the browser subscribed: messages are sent in turns of organizers.';
comment on column push_subscriptions.digest is 'SHA-256 of the address that the push service gave the browser.';
comment on column push_subscriptions.sealed is 'That address and the keys of the browser, sealed.';
comment on column push_subscriptions.forget_at is
    'A day after the event begins, as it was planned: when it is looked up whether the subscription is still needed.';
comment on column push_subscriptions.due_at is
    'When it is sent, or until when it is leased; null: the person still waits.';
create index push_subscriptions_old on push_subscriptions (forget_at);
create index push_subscriptions_of_user on push_subscriptions (user_id);
create index push_subscriptions_due on push_subscriptions (due_at) where due_at is not null;
create index push_subscriptions_turns on push_subscriptions (organizer_id, due_at) where due_at is not null;
