-- The tokens that a refresh token was exchanged for, so that the same client gets them again for a short time: several
-- processes of one client refresh at once. They are sealed with the refresh token itself, which is not stored.

alter table oauth_refresh_tokens
    add column sealed_successor bytea,
    add check (sealed_successor is null or used_at is not null);
comment on column oauth_refresh_tokens.sealed_successor is
    'The tokens that it was exchanged for, under a key derived from itself; null once its successor was used.';
