-- What the cart check reads of a variant: the pools that it draws on, and how much of each can be sold. It is written to
-- a metafield of the variant at the storefront platform, if the merchant has granted the service to do so.

create table cart_numbers (
    shop_id      bigint not null references shops,
    variant_gid  text not null,
    wanted       jsonb not null,
    version      bigint not null,
    written      jsonb,
    digest       text check (length(digest) <= 200),
    written_at   timestamptz,
    read_again   boolean not null default false,
    refused      text check (length(refused) <= 500),
    primary key (shop_id, variant_gid)
) with (fillfactor = 70);
comment on column cart_numbers.wanted is 'Its pools, each as [id, units of one sale, units that can be sold]; [] is not written first.';
comment on column cart_numbers.version is 'The version of the shop at which that was so.';
comment on column cart_numbers.written is 'What the platform has, as far as is known; null: nothing.';
comment on column cart_numbers.digest is 'How the platform names what it has: it is changed from that only.';
comment on column cart_numbers.refused is 'Why the platform does not take it; it is tried again when something else is wanted.';
create index cart_numbers_to_write on cart_numbers (shop_id, written_at nulls first)
    where (read_again or wanted <> coalesce(written, '[]')) and refused is null;
create index cart_numbers_by_age on cart_numbers (shop_id, written_at) where wanted <> '[]' and refused is null;

alter table syncs
    add column numbers boolean not null default false,
    add column numbers_error text check (length(numbers_error) <= 1000),
    add column numbers_rest_until timestamptz;
comment on column syncs.numbers is 'Whether the numbers for the cart check are reckoned.';
comment on column syncs.numbers_error is 'Why none could be written the last time.';

alter table cart_numbers enable row level security;
create policy own_shop on cart_numbers to holdfast_shop using (shop_id = (select current_shop()));
grant select, insert, update, delete on cart_numbers to holdfast_shop;
