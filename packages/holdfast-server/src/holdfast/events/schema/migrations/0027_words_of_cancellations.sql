-- One word for what people do with registrations of their own: they cancel them.

alter table registrations rename gives_up_at to cancels_at;
alter table registrations rename constraint what_has_no_place_is_not_given_up to what_was_rejected_is_not_cancelled;
alter index registrations_given_up rename to registrations_cancelling;
comment on column registrations.cancels_at is
    'When it is cancelled, since the person has asked for that and has not undone it. Null: it is not.';
comment on column events.seats_passed_on is
    'How many seats that people cancelled went to people who waited. A trigger of own_cancellations counts them.';

alter table given_up_places rename to own_cancellations;
alter table own_cancellations rename given_up_at to cancelled_at;
alter table own_cancellations rename taken_at to passed_on_at;
alter table own_cancellations rename constraint only_the_next_person_takes_it to only_to_the_next_person_it_is_passed_on;
alter table own_cancellations rename constraint given_up_places_pkey to own_cancellations_pkey;
alter table own_cancellations rename constraint given_up_places_event_id_fkey to own_cancellations_event_id_fkey;
alter index given_up_places_old rename to own_cancellations_old;
alter index given_up_places_held rename to own_cancellations_held;
comment on table own_cancellations is
    'Registrations that people cancelled themselves, by the numbers of their arrivals: the links of these people say who has the seat. It has no people.';
comment on column own_cancellations.passed_on_at is
    'When that registration had the seat for good: a seat that has to be paid is held first.';
