-- Replaces the migrations up to 0051_registrations_of_owners_valid.sql, the last of the version of 2026-11-25 (70cc5f1).

-- Organizers, their keys, and the people who are registered for their events.

create type user_role as enum ('user', 'organizer', 'admin');

create table users (
    id                bigint generated always as identity primary key,
    public_id         text not null unique check (public_id ~ '^[a-z2-7]{8}$'),
    email             text check (email = lower(email collate "C")),
    name              text,
    role              user_role not null default 'user',
    slug              text check (slug ~ '^[a-z0-9-]{3,100}$'),
    password_hash     text,
    payouts_ready     boolean not null default false,
    inserted_at       timestamptz not null default now(),
    proved_at         timestamptz,
    erased_at         timestamptz,
    data_link_at      timestamptz,
    data_link_holder  bytea check (length(data_link_holder) = 32),
    check (role <> 'organizer' or (slug is not null and name is not null)),
    constraint only_the_erased_have_no_address check ((email is null) = (erased_at is not null)),
    -- The row of an organizer that the owner of its address has ended stays for its cancelled events, under a slug that
    -- nobody chose.
    constraint nothing_of_the_erased_is_kept check (
        erased_at is null or (role = 'user' and coalesce(name, password_hash) is null
                              and (slug is null or slug ~ '^ended-[a-z2-7]{8}$')
                              and coalesce(proved_at, data_link_at) is null and data_link_holder is null))
);
comment on column users.email is 'Of an organizer who has not proved it, the address may also be that of a person.';
comment on column users.proved_at is 'When the owner of the address proved it, and kept or ended the keys and the password
that had been made before.';
comment on column users.erased_at is 'When the person''s data was erased.';
comment on column users.data_link_at is 'When the link to the person''s own data was last sent. It is valid for an hour.';
comment on column users.data_link_holder is 'SHA-256 of what the page holds that used this link first: it works for no other.';
create unique index users_slug on users (slug) where slug is not null;
-- Anybody can register an organizer with any address. Until the owner of the address has proved it, the organizer is
-- kept apart from the person with that address: they are two rows.
create unique index users_email_of_owner on users (email) where role <> 'organizer' or proved_at is not null;
create unique index users_email_of_organizer on users (email) where role <> 'user';
-- Organizers are few among the people; their list reads none of the others.
create index organizers on users (id) where role = 'organizer';

create table api_keys (
    id              bigint generated always as identity primary key,
    user_id         bigint references users,
    name            text not null,
    start           text not null check (length(start) = 8),
    hash            bytea not null unique check (length(hash) = 32),
    active          boolean not null default true,
    inserted_at     timestamptz not null default now(),
    revoked_at      timestamptz,
    owner_verified  boolean not null default false,
    used_at         timestamptz,
    constraint revoked_at_a_moment check (active = (revoked_at is null)),
    constraint a_verified_owner_ends_keys check (not (active and owner_verified))
);
comment on column api_keys.user_id is 'The organizer the key acts for; null for an admin key.';
comment on column api_keys.owner_verified is 'Ended because the owner of the organizer''s address was verified.';
comment on column api_keys.used_at is 'Noted when the key is looked up, at most once an hour.';
-- Of every row, and not only of those in use: an account is deleted only if no row refers to it.
create index api_keys_of_user on api_keys (user_id);
create index api_keys_revoked on api_keys (revoked_at) where revoked_at is not null;

-- Which subject of an authorization server is which organizer here.
create table oauth_subjects (
    -- The only key that an insert may run into, because those who insert the same row at once must all run into the same.
    hash     bytea primary key,
    issuer   text not null,
    subject  text not null check (length(subject) between 1 and 255),
    user_id  bigint references users,
    email    text,
    since    timestamptz not null default now(),
    check (hash = sha256(convert_to(issuer || e'\n' || subject, 'UTF8'))),
    check (email is null or user_id is not null)
);
comment on column oauth_subjects.user_id is 'Null once the operator has unlinked it: no address links it again.';
comment on column oauth_subjects.email is 'The verified address that made the link; null where the operator made it.';
create index oauth_subjects_of_user on oauth_subjects (user_id);
-- An address makes one link. Whoever makes it holds the lock of the account, so nobody runs into this.
create unique index oauth_subject_by_address on oauth_subjects (user_id, issuer) where email is not null;

-- How requests were answered that may come again with their Idempotency-Key.
create table idempotency_answers (
    id           bytea primary key check (length(id) = 32),
    fingerprint  bytea constraint idempotency_answers_print_not_null not null
                 constraint idempotency_answers_print_check check (length(fingerprint) = 32),
    sealed       bytea not null,
    inserted_at  timestamptz not null default now(),
    account      text
);
comment on column idempotency_answers.id is 'SHA-256 of the key and of whose it is.';
comment on column idempotency_answers.fingerprint is 'SHA-256 of the request.';
comment on column idempotency_answers.sealed is 'The answer, encrypted.';
comment on column idempotency_answers.account is 'Whose it is, if it is large: of each, so many bytes are kept.';
create index idempotency_answers_by_age on idempotency_answers (inserted_at);
create index idempotency_answers_large on idempotency_answers (account, inserted_at) where account is not null;

-- Events: who organizes them, what they cost, and what their pages show.

create type pricing_mode as enum ('free', 'fixed', 'dynamic');
create type recurrence_frequency as enum ('none', 'days', 'weeks', 'months', 'years');

create table events (
    id                    bigint generated always as identity primary key,
    organizer_id          bigint not null references users,
    title                 text not null,
    body                  text not null,
    datetime              timestamptz not null,
    capacity              integer not null check (capacity > 0),
    waitinglist_capacity  integer not null check (waitinglist_capacity >= 0),
    registered_count      integer not null default 0 check (registered_count >= 0),
    waitlisted_count      integer not null default 0 check (waitlisted_count >= 0),
    currency              text not null check (currency ~ '^[A-Z]{3}$'),
    pricing_mode          pricing_mode not null,
    price                 bigint not null check (price >= 0),
    min_price             bigint check (min_price >= 0),
    max_price             bigint check (max_price >= 0),
    current_price         bigint check (current_price >= 0),
    recurrence_frequency  recurrence_frequency not null,
    recurrence_interval   integer not null check (recurrence_interval >= 0),
    address               text,
    location_name         text,
    latitude              double precision check (latitude between -90 and 90),
    longitude             double precision check (longitude between -180 and 180),
    image_keys            text[] not null default '{}',
    cancelled_at          timestamptz,
    inserted_at           timestamptz not null default now(),
    recurs_from           timestamptz not null,
    follows_id            bigint unique references events,
    continued_at          timestamptz,
    prices_thinned_at     timestamptz,
    timezone              text,
    cancellation_hours    integer not null default 0 check (cancellation_hours >= 0),
    calendar_sequence     integer not null default 0,
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
comment on column events.recurs_from is 'The date from which the occurrences of its series are counted.';
comment on column events.follows_id is 'The occurrence before it. It is unique: an event is continued at most once.';
comment on column events.continued_at is 'When its next occurrence was created, or found not to exist.';
comment on column events.prices_thinned_at is 'When its price history was thinned, after it had taken place.';
comment on column events.timezone is 'The IANA name of the zone in which people read its date; null is UTC.';
comment on column events.cancellation_hours is 'How many hours before the event people can no longer cancel themselves.';
comment on column events.calendar_sequence is 'How often what a calendar shows of it has changed.';
create unique index events_of_organizer on events (organizer_id, id);
comment on index events_of_organizer is
    'Unique, so that an event is not handed over while a registration is being stored under its organizer.';
-- The pages of organizers list what is to come, a page at a time.
create index events_to_come on events (organizer_id, datetime, id) where cancelled_at is null;
create index events_with_a_moving_price on events (datetime) where pricing_mode = 'dynamic' and cancelled_at is null;
create index events_to_continue on events (datetime)
    where recurrence_frequency <> 'none' and cancelled_at is null and continued_at is null;
create index events_to_thin on events (datetime) where pricing_mode = 'dynamic' and prices_thinned_at is null;

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

-- The texts of events as HTML, made when they are written. One of another text or another renderer is not used.
create table event_texts (
    event_id  bigint primary key references events,
    version   integer not null,
    digest    bytea not null,
    html      text not null,
    summary   text not null
);
comment on column event_texts.version is 'Of the renderer.';
comment on column event_texts.digest is 'The SHA-256 of the Markdown.';

-- Under whom the registrations and mails of an event are filed: its organizer, and for a while also one who has handed
-- it over. So an event is handed over in an instant, however large it is; a job files the rest anew, later.
create table event_owners (
    event_id      bigint not null references events on delete cascade,
    organizer_id  bigint not null,
    primary key (event_id, organizer_id)
);
comment on table event_owners is 'The organizer of each event, and who has handed it over and has something of it filed.';

-- A table of its own, which is nearly always empty: lists look into it.
create table event_hand_overs (
    event_id      bigint not null,
    organizer_id  bigint not null,
    handed_to     bigint not null check (handed_to <> organizer_id),
    last_user_id  bigint not null default 0,
    primary key (event_id, organizer_id),
    foreign key (event_id, organizer_id) references event_owners on delete cascade
);
comment on table event_hand_overs is 'Who has handed an event over, until nothing of it is filed there any more.';
comment on column event_hand_overs.handed_to is 'Whose event it is now.';
comment on column event_hand_overs.last_user_id is 'Registrations up to this person are filed anew.';

-- Photos of events, and the uploads they begin as.

-- A file is written only after its row is stored, and a row goes only after its files have: whatever is killed when,
-- no file is forgotten. `awaited`: to be uploaded and looked at; `accepted`: a photo; `doomed`: its files are being
-- deleted, and no event can show it any more.
create type photo_state as enum ('awaited', 'accepted', 'doomed');

create table photos (
    key             text primary key check (key ~ '^photos/([1-9][0-9]*|admin)/[A-Za-z0-9_-]{22}\.(jpg|png|webp|gif)$'),
    organizer_id    bigint references users,
    state           photo_state not null default 'awaited',
    content_type    text not null check (content_type in ('image/jpeg', 'image/png', 'image/webp', 'image/gif')),
    content_length  integer not null check (content_length between 1 and 5000000),
    upload_ends     timestamptz,
    idle_since      timestamptz default now(),
    inserted_at     timestamptz not null default now(),
    width           integer check (width > 0),
    height          integer check (height > 0),
    widths          integer[] not null default '{}',
    scaling_due     timestamptz default now(),
    scaling_tried   integer not null default 0,
    unique (key, state),
    constraint a_key_names_whose_it_is check (split_part(key, '/', 2) = coalesce(organizer_id::text, 'admin')),
    constraint a_size_is_not_wider_than_its_photo check (
        cardinality(widths) = 0 or (width is not null and height is not null and width >= all (widths)))
);
comment on column photos.organizer_id is 'Null for a photo of an admin.';
comment on column photos.upload_ends is 'Until when an upload may be written; null when none is left to clear away.';
comment on column photos.idle_since is 'Since when no event shows it; null while one does.';
comment on column photos.width is 'Of the original, as it is shown: upright. Null until its sizes have been made.';
comment on column photos.widths is 'The widths of the sizes that are stored, ascending. None is stored that is not here, except while it is made.';
comment on column photos.scaling_due is 'From when its sizes may be made, once it is accepted; null when they are, or cannot be.';
comment on column photos.scaling_tried is 'How often its sizes were begun.';
create index photos_idle on photos (idle_since) where idle_since is not null;
create index photos_idle_of_organizer on photos (organizer_id) where idle_since is not null;
create index photos_of_organizer on photos (organizer_id);
create index photos_uploaded on photos (upload_ends) where upload_ends is not null;
create index photos_to_scale on photos (scaling_due) where state = 'accepted' and scaling_due is not null;

-- Which events show which photos, kept by the database itself from `events.image_keys`. What an event shows has been
-- accepted, and cannot be doomed while it is shown.
create table event_photos (
    event_id  bigint not null references events,
    key       text not null,
    state     photo_state not null default 'accepted' check (state = 'accepted'),
    primary key (event_id, key),
    foreign key (key, state) references photos (key, state)
);
create index event_photos_of_photo on event_photos (key);

-- One row a person and event, from the moment it is accepted. `pending` is accepted but not settled; `held` is a seat
-- that counts, and belongs to the person once it is paid; `rejected` is settled without a place, and kept so that the
-- person who asks is told. The two other states are the contract's.
create type registration_status as enum ('pending', 'held', 'registered', 'waitlisted', 'rejected');

create sequence registration_arrivals;

create table registrations (
    event_id      bigint not null,
    user_id       bigint not null references users,
    arrival       bigint not null,
    status        registration_status not null default 'pending',
    amount_paid   bigint not null check (amount_paid >= 0),
    received_at   timestamptz not null,
    settled_at    timestamptz,
    reason        text,
    name          text check (length(name) between 1 and 200),
    language      text check (language ~ '^[a-z]{2}$'),
    notify        boolean not null default true,
    promoted_at   timestamptz,
    details_at    timestamptz,
    amount_due    bigint check (amount_due > 0),
    held_until    timestamptz,
    organizer_id  bigint not null,
    primary key (event_id, user_id),
    -- It is filed under its organizer, or under one who has handed the event over.
    constraint registrations_event_id_fkey foreign key (event_id, organizer_id) references event_owners,
    check ((status = 'pending') = (settled_at is null)),
    constraint rejections_have_a_reason check (
        case status when 'rejected' then reason is not null
                    when 'waitlisted' then reason is null or reason = 'by_organizer'
                    else reason is null end),
    constraint only_held_seats_end check ((status = 'held') = (held_until is not null)),
    constraint seats_are_held_for_an_amount check (status <> 'held' or amount_due is not null)
);
comment on column registrations.arrival is 'Breaks ties of received_at.';
comment on column registrations.reason is
    'Why there is no place; or `by_organizer`: the organizer has put the person on the waiting list.';
comment on column registrations.name is 'What the person wrote into the form. It changes no account.';
comment on column registrations.language is 'The language of its mails; null is English.';
comment on column registrations.notify is 'Whether mails are sent about it.';
comment on column registrations.promoted_at is 'When it moved up from the waiting list.';
comment on column registrations.details_at is 'When its details were last sent again because somebody typed its address.';
comment on column registrations.amount_due is 'What the person has to pay for the seat, in minor units; null: nothing.';
comment on column registrations.held_until is 'When the seat is given away if it has not been paid.';
comment on column registrations.organizer_id is
    'Whose event it is, or under whom it is still filed after the event was handed over.';
create index registrations_to_settle on registrations (received_at, arrival) where status = 'pending';
-- Of one event, each state by itself: the states that are wanted are merged.
create index registrations_of_event on registrations (event_id, status, received_at, arrival);
-- Who was put on the waiting list by hand stays there until moved back: they are the few of a waiting list who do not
-- wait for a free seat.
create index registrations_moved on registrations (event_id, received_at, arrival)
    where status = 'waitlisted' and reason is not null;
-- A handle works only for those who are known to the organizer.
create index registrations_of_user on registrations (user_id);
-- Only what is listed. What waits to be settled is in none of these, so they cost accepting nothing.
create index registrations_of_organizer on registrations (organizer_id, received_at, arrival)
    where status in ('registered', 'waitlisted');
create index registrations_in_order on registrations (received_at, arrival)
    where status in ('registered', 'waitlisted');
create index people_of_organizer on registrations (organizer_id, user_id)
    where status in ('registered', 'waitlisted');

-- A part of a name or an address is found down an index, however many registrations an event has. Few have so many that
-- this pays, and fewer are searched: an event is written here when somebody has searched it, by a job.

create function parts(event bigint, whole text) returns bigint[] language sql immutable strict parallel safe as
    $$ select array(select hashtextextended(substr(whole, n, 3), event)
                      from generate_series(1, length(whole) - 2) as n) $$;
comment on function parts is 'A number for each three characters of a text. The same characters differ between events.';

create table searched_events (
    event_id     bigint primary key references events,
    received_at  timestamptz not null default '-infinity',
    arrival      bigint not null default 0,
    places       bigint not null default 0,
    touched_at   timestamptz not null default now()
);
comment on table searched_events is 'Events whose registrations are in `searched_registrations`, up to an arrival.';
comment on column searched_events.places is 'How many people had a place when it was up to date.';
comment on column searched_events.touched_at is 'When somebody last asked for it, or the job wrote.';

create table searched_registrations (
    event_id     bigint not null,
    user_id      bigint not null,
    words        text not null,
    received_at  timestamptz not null,
    arrival      bigint not null,
    primary key (event_id, user_id),
    foreign key (event_id, user_id) references registrations on delete cascade
);
comment on column searched_registrations.words is 'The address and the name, in lower case.';
comment on column searched_registrations.arrival is 'That of the registration, when its words were written.';
-- What was written is put into this index together, when it is 512 kB; until then each search reads it.
create index searched_by_parts on searched_registrations using gin (parts(event_id, words))
    with (gin_pending_list_limit = 512);

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

-- What people pay for their seats, and where the money goes.

-- The account of an organizer at the payment processor. Only the owner of an address, in a session of their own, is led
-- to the processor.
create table payout_accounts (
    organizer_id  bigint primary key references users,
    account_id    text not null unique,
    refund_days   integer not null default 0 check (refund_days between 0 and 3650),
    due_at        timestamptz,
    attempts      integer not null default 0,
    error         text check (length(error) <= 1000),
    inserted_at   timestamptz not null default now(),
    is_confirmed  boolean not null default false,
    linked_at     timestamptz,
    lease_id      uuid
);
comment on column payout_accounts.refund_days is 'Who cancels until so many days before an event gets everything back, later nothing.';
comment on column payout_accounts.due_at is 'When the processor is to be asked whether money can be paid out; null: not.';
comment on column payout_accounts.is_confirmed is 'Whether nobody but the owner of the address could give it a bank account, or the owner has said that it is theirs.';
comment on column payout_accounts.linked_at is 'When its owner was led to the processor last.';
-- By its lease, a process that stalled, and whose row another one has taken since, can store nothing when it wakes.
comment on column payout_accounts.lease_id is 'The lease under which a process works on it, or did when it ended; null: none.';
create index payout_accounts_due on payout_accounts (due_at) where due_at is not null;

-- Accounts that are an organizer's no more. They are counted, so that the processor makes another one next time.
create table ended_payout_accounts (
    account_id    text primary key,
    organizer_id  bigint not null references users,
    ended_at      timestamptz not null default now()
);
create index ended_payout_accounts_of_organizer on ended_payout_accounts (organizer_id);

-- One try to pay for one seat: a checkout session of the processor.
create type payment_state as enum ('opening', 'open', 'paid', 'ended', 'refused');

create table payments (
    id           bigint generated always as identity primary key,
    event_id     bigint not null references events,
    user_id      bigint not null references users,
    arrival      bigint not null,
    amount       bigint not null check (amount > 0),
    fee          bigint not null check (fee >= 0 and fee < amount),
    currency     text not null check (currency ~ '^[A-Z]{3}$'),
    account_id   text,
    refund_days  integer not null default 0,
    state        payment_state not null default 'opening',
    session_id   text unique,
    intent_id    text unique,
    url          text,
    checkout     jsonb,
    ends_at      timestamptz not null,
    due_at       timestamptz default now(),
    attempts     integer not null default 0,
    error        text check (length(error) <= 1000),
    refunded     bigint not null default 0,
    kept         bigint not null default 0,
    inserted_at  timestamptz not null default now(),
    paid_at      timestamptz,
    language     text check (language ~ '^[a-z]{2}$'),
    lease_id     uuid,
    constraint no_more_is_given_back_than_was_paid check (refunded >= 0 and kept >= 0 and refunded + kept <= amount),
    check (state not in ('open', 'paid') or session_id is not null),
    check ((state = 'paid') = (paid_at is not null)),
    check (state = 'paid' or refunded + kept = 0)
);
comment on column payments.arrival is 'Of the registration: who registers anew pays anew.';
comment on column payments.account_id is 'The account that the money goes to, without the fee.';
comment on column payments.refund_days is 'The rule for cancellations when the seat was held; later changes do not concern it.';
comment on column payments.url is 'The page of the processor where it can be paid.';
comment on column payments.checkout is 'What the processor is told, again and again until it answers.';
comment on column payments.ends_at is 'From when on it must not be paid any more.';
comment on column payments.due_at is 'When the processor is to be asked, or told, next; null: not.';
comment on column payments.refunded is 'The sum of its refunds, also of those that are still to be made.';
comment on column payments.kept is 'What stays with the organizer by the rule for cancellations.';
-- Money goes back after the registration was deleted, so the payment itself knows the language.
comment on column payments.language is 'In which the person registered, for mails.';
comment on column payments.lease_id is 'The lease under which a process works on it, or did when it ended; null: none.';
create index payments_of_registration on payments (event_id, user_id, arrival);
create unique index one_payment_at_a_time on payments (event_id, user_id, arrival) where state in ('opening', 'open');
create index payments_due on payments (due_at) where due_at is not null;
create index payments_newest on payments (inserted_at);
create index payments_of_person on payments (user_id);
-- The newest payments for an event are read a page at a time, however many it has.
create index payments_of_event on payments (event_id, id);

-- Money that goes back to the person. The transfer to the organizer and the fee are taken back in proportion.
create type refund_state as enum ('wanted', 'made', 'refused');

create table refunds (
    id              bigint generated always as identity primary key,
    payment_id      bigint not null references payments,
    amount          bigint not null check (amount > 0),
    reason          text not null check (reason in ('no_seat', 'seat_lost', 'event_cancelled', 'by_organizer')),
    state           refund_state not null default 'wanted',
    refund_id       text unique,
    due_at          timestamptz default now(),
    attempts        integer not null default 0,
    error           text check (length(error) <= 1000),
    inserted_at     timestamptz not null default now(),
    awaits_dispute  boolean not null default false,
    lease_id        uuid,
    check (state <> 'made' or refund_id is not null)
);
comment on column refunds.awaits_dispute is 'Whether it has waited for the end of a dispute, and the person was told so.';
comment on column refunds.lease_id is 'The lease under which a process works on it, or did when it ended; null: none.';
create index refunds_of_payment on refunds (payment_id);
create index refunds_due on refunds (due_at) where due_at is not null;

-- Payments that the bank of a card has taken back, or wants to, because the holder of the card disputes them.
create type dispute_state as enum ('unknown', 'inquiry', 'open', 'won', 'lost', 'closed');

create table disputes (
    id           bigint generated always as identity primary key,
    dispute_id   text not null unique check (length(dispute_id) between 1 and 255),
    intent_id    text not null check (length(intent_id) between 1 and 255),
    state        dispute_state not null default 'unknown',
    amount       bigint check (amount >= 0),
    refundable   boolean not null default false,
    due_at       timestamptz default now(),
    attempts     integer not null default 0,
    error        text check (length(error) <= 1000),
    inserted_at  timestamptz not null default now(),
    lease_id     uuid,
    check (state = 'unknown' or amount is not null)
);
comment on column disputes.intent_id is 'Of the payment. The message of a dispute may arrive before that of its payment.';
comment on column disputes.state is 'Unknown until the processor was asked; closed: it ended and no money was taken.';
comment on column disputes.refundable is 'Whether the processor gives money back while it is not decided.';
comment on column disputes.lease_id is 'The lease under which a process works on it, or did when it ended; null: none.';
create index disputes_of_payment on disputes (intent_id);
create index disputes_due on disputes (due_at) where due_at is not null;

-- What the processor told us. Each of its messages is stored once.
create table processor_events (
    id           text primary key check (length(id) between 1 and 255),
    kind         text not null check (length(kind) between 1 and 255),
    object_id    text check (length(object_id) <= 255),
    received_at  timestamptz not null default now()
);
create index processor_events_received on processor_events (received_at);

-- Mails to people and about events. The table `mails` is the kit's.

-- What everybody who is registered for an event is to be told. It becomes mails a portion at a time, later: an event
-- may have a million registrations. Changes of an event are gathered for ten minutes, and told by one mail.
create table mail_announcements (
    id            bigint generated always as identity primary key,
    event_id      bigint not null references events,
    kind          text not null check (kind in ('event_changed', 'event_cancelled')),
    announced_at  timestamptz not null default clock_timestamp(),
    last_user_id  bigint not null default 0,
    due_at        timestamptz not null default now()
);
comment on column mail_announcements.announced_at is 'Who is settled later gets mails that know of it.';
comment on column mail_announcements.last_user_id is 'The registrations up to this person have become mails.';
comment on column mail_announcements.due_at is 'When it is told; later changes until then are told with it.';
create index mail_announcements_of_event on mail_announcements (event_id, id);
create index mail_announcements_due on mail_announcements (due_at, id);

-- Organizers add a paragraph of their own to the mails about an event: one to each kind of mail.
create table mail_paragraphs (
    event_id  bigint not null references events,
    kind      text not null check (kind in ('seat', 'waitlisted', 'promoted', 'refused', 'removed', 'event_changed',
                                            'event_cancelled', 'payment_due', 'refund')),
    text      text not null check (length(text) between 1 and 1000),
    primary key (event_id, kind)
);

-- Mails of an organizer that has not proved its address are held. When it proves it, they are released a portion at a
-- time, later: there may be a million of them.
create table mail_releases (
    organizer_id  bigint primary key references users on delete cascade
);
comment on table mail_releases is 'Organizers that have proved their addresses, and whose mails are still held.';
create index mails_held_of_organizer on mails (((arguments ->> 'organizer_id')::bigint), id)
    where ended_at is null and hold = 'organizer';
-- An organizer looks for the mails that wait, were sent or failed, the newest first.
create index mails_of_organizer on mails (
    ((arguments ->> 'organizer_id')::bigint), coalesce(outcome, 'waiting'), id) where arguments ? 'organizer_id';

-- Virtual waiting rooms: queues, who waits in them, and when they were let go.

-- A line is two numbers. Whoever joins gets the next ticket; serving is the last ticket that was released. Nobody leaves
-- the line but through its front, so position and length are subtractions, however many wait.
create table queues (
    id                 bigint generated always as identity primary key,
    organizer_id       bigint not null references users,
    title              text not null,
    description        text,
    active             boolean not null,
    paused_at          timestamptz,
    starts_at          timestamptz,
    ends_at            timestamptz,
    max_queue_size     integer check (max_queue_size > 0),
    release_rate       integer not null check (release_rate > 0),
    target_url         text not null check (target_url ~* '^https?://'),
    token_ttl_minutes  integer not null check (token_ttl_minutes > 0),
    tickets            bigint not null default 0,
    serving            bigint not null default 0,
    paced_at           timestamptz not null default clock_timestamp(),
    rated_at           timestamptz not null default clock_timestamp(),
    inserted_at        timestamptz not null default now(),
    deleted_at         timestamptz,
    constraint paused_since_a_moment check (active = (paused_at is null)),
    constraint starts_before_it_ends check (starts_at < ends_at),
    constraint serves_only_tickets_handed_out check (serving >= 0 and serving <= tickets)
) with (fillfactor = 20);
-- The row changes with every batch of joins: room to do so in place.
comment on column queues.paced_at is 'The moment up to which the rate has been spent.';
comment on column queues.rated_at is 'Since when the present rate applies.';
comment on column queues.deleted_at is 'When the queue was deleted; its visitors are removed a little later.';
create index queues_of_organizer on queues (organizer_id, id);
-- If one organizer has nearly all queues, PostgreSQL expects the same of every other one, and looks for the queues of
-- an organizer without any among all there are. Told that organizers have few, it reads the index of their queues.
alter table queues alter column organizer_id set (n_distinct = -0.1);

create table queue_visitors (
    queue_id     bigint not null references queues,
    visitor_id   text not null check (length(visitor_id) between 1 and 255),
    ticket       bigint not null check (ticket > 0),
    joined_at    timestamptz not null default clock_timestamp(),
    token_id     text,
    issued_at    timestamptz,
    expires_at   timestamptz,
    use_count    integer not null default 0 check (use_count >= 0),
    consumed_at  timestamptz,
    primary key (queue_id, visitor_id),
    constraint a_ticket_belongs_to_one_visitor unique (queue_id, ticket),
    constraint a_token_has_its_times check ((token_id is null) = (issued_at is null)
                                        and (token_id is null) = (expires_at is null)),
    constraint only_a_token_is_used check (token_id is not null or (use_count = 0 and consumed_at is null))
);
comment on column queue_visitors.token_id is 'Of the release token, once it was picked up.';

-- One row each time tickets were released: they are not found in the visitors, who are not touched by it.
create table queue_releases (
    queue_id      bigint not null references queues,
    first_ticket  bigint not null,
    last_ticket   bigint not null,
    released_at   timestamptz not null,
    primary key (queue_id, last_ticket),
    check (first_ticket <= last_ticket)
);
create index queue_releases_in_time on queue_releases (queue_id, released_at);

create table queue_signing_keys (
    kid          text primary key,
    sealed       bytea not null,
    inserted_at  timestamptz not null default now()
);
comment on table queue_signing_keys is 'Keys that release tokens are signed with, encrypted.';
