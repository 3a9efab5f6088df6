-- Drafts: events that only their organizer sees. All events that are stored already are published.
alter table events
    add column published boolean not null default true,
    add constraint nobody_has_a_place_at_a_draft
        check (published or registered_count = 0 and waitlisted_count = 0);
comment on column events.published is 'Whether others see it, and can register for it; if not, it is a draft.';
comment on column events.inserted_at is
    'When it was created, or when it was published if it was a draft: from then on it is on sale.';

-- A draft is not continued. So drafts that have passed, of which there can be many, are not in this index.
drop index events_to_continue;
create index events_to_continue on events (datetime)
    where recurrence_frequency <> 'none' and cancelled_at is null and continued_at is null and published;
