-- How the pages, mails and tickets of an organizer look, and what it says about itself.
alter table users
    add column accent text check (accent ~ '^#[0-9a-f]{6}$'),
    add column logo_key text references photos (key),
    add column about text check (length(about) between 1 and 1000),
    add constraint no_look_of_the_erased_is_kept
        check (erased_at is null or coalesce(accent, logo_key, about) is null);
comment on column users.accent is 'The colour of its pages, as #rrggbb; null: ours.';
comment on column users.logo_key is 'The photo that is its logo. It cannot be deleted while it is.';
comment on column users.about is 'Its own words about itself, as plain text.';
create unique index users_logo on users (logo_key) where logo_key is not null;
