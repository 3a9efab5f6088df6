-- When keys ended, and whether somebody asked for it.

alter table api_keys add revoked_at timestamptz, add owner_verified boolean not null default false;
update api_keys set revoked_at = now() where not active;
alter table api_keys add constraint revoked_at_a_moment check (active = (revoked_at is null)),
                     add constraint a_verified_owner_ends_keys check (not (active and owner_verified));
comment on column api_keys.owner_verified is 'Ended because the owner of the organizer''s address was verified.';
create index api_keys_revoked on api_keys (revoked_at) where revoked_at is not null;
