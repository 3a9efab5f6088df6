-- Who works in the console of a shop: people whom the storefront platform vouches for (its number of them is their
-- `staff_id`), and people who sign in by a link to their address. Their sessions are in the tables of accounts, which
-- belong to no shop: no transaction of a shop can read them.

create table merchants (
    id           bigint generated always as identity primary key,
    shop_id      bigint not null references shops,
    email        text unique check (length(email) between 3 and 254),
    staff_id     text check (length(staff_id) between 1 and 64),
    proved_at    timestamptz,
    inserted_at  timestamptz not null default now(),
    unique (shop_id, staff_id),
    check (num_nonnulls(email, staff_id) = 1)
);
comment on column merchants.proved_at is 'When the owner of the address first followed a link; with a staff_id, when the platform vouched first.';
create index merchants_of_shop on merchants (shop_id);

alter table merchants enable row level security;
create policy own_shop on merchants to holdfast_shop using (shop_id = (select current_shop()));
grant select on merchants to holdfast_shop;

do $$
declare
    each text;
begin
    foreach each in array array['sign_in_links', 'sessions', 'oauth_clients', 'oauth_grants', 'oauth_codes',
                                'oauth_access_tokens', 'oauth_refresh_tokens', 'trusted_auth_keys'] loop
        execute format('alter table %I enable row level security', each);
    end loop;
end $$;
