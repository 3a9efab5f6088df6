-- Shops whose merchants have installed the app on the storefront platform, and the tokens with which the service acts for
-- them there. A shop that an operator has added has neither, until its merchant installs the app.

create table installs (
    shop_id         bigint primary key references shops,
    scopes          text[] not null,
    installed_at    timestamptz not null default now(),
    uninstalled_at  timestamptz,
    redacted_at     timestamptz check (redacted_at is null or uninstalled_at is not null),
    broken          text check (length(broken) <= 500)
);
comment on column installs.installed_at is 'When it was installed last, by the clock of the database.';
comment on column installs.redacted_at is 'When the platform asked to delete the shop; its rows are deleted from then on.';
comment on column installs.broken is 'Why the merchant must open or install the app again; null: nothing is wrong.';
create index installs_uninstalled on installs (uninstalled_at) where uninstalled_at is not null;

create table platform_tokens (
    shop_id             bigint primary key references installs,
    sealed              bytea not null,
    expires_at          timestamptz,
    refresh_expires_at  timestamptz,
    generation          bigint not null default 1,
    leased_until        timestamptz
);
comment on column platform_tokens.sealed is 'The access token and the refresh token, encrypted.';
comment on column platform_tokens.expires_at is 'When the access token ends; null: it does not end by itself.';
comment on column platform_tokens.generation is 'Grows with every new token.';
comment on column platform_tokens.leased_until is 'Until when one process alone refreshes the tokens.';

alter table installs enable row level security;
create policy own_shop on installs to holdfast_shop using (shop_id = (select current_shop()));
alter table platform_tokens enable row level security;
create policy own_shop on platform_tokens to holdfast_shop using (shop_id = (select current_shop()));
grant select, update (broken) on installs to holdfast_shop;
grant select, delete, update (sealed, expires_at, refresh_expires_at, generation, leased_until)
   on platform_tokens to holdfast_shop;

-- The ledger stays append-only for as long as its shop is there. When the platform asks to delete a shop, it goes too.
create or replace function refuse_change() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and tg_level = 'ROW' then
        if exists (select from installs where shop_id = old.shop_id and redacted_at is not null) then
            return old;
        end if;
    end if;
    raise exception 'the ledger is append-only' using errcode = 'integrity_constraint_violation';
end $$;
drop trigger append_only on ledger;
create trigger append_only before update or truncate on ledger for each statement execute function refuse_change();
create trigger kept_with_its_shop before delete on ledger for each row execute function refuse_change();

create function delete_of_shop(shop bigint, most int) returns bigint language plpgsql as $$
declare
    name regclass;
    has_id boolean;
    deleted bigint;
    total bigint := 0;
begin
    if not exists (select from installs where shop_id = shop and redacted_at is not null) then
        return 0;
    end if;
    for name, has_id in
        select of_shop.attrelid::regclass, exists (select from pg_attribute as other where other.attrelid = of_shop.attrelid
                                                      and other.attname = 'id' and not other.attisdropped)
          from pg_attribute as of_shop join pg_class on pg_class.oid = of_shop.attrelid
         where of_shop.attname = 'shop_id' and not of_shop.attisdropped and pg_class.relkind = 'r'
           and pg_class.relnamespace = (select relnamespace from pg_class where oid = 'shops'::regclass)
           and of_shop.attrelid <> 'installs'::regclass
    loop
        begin
            execute format('delete from %s where ctid = any(array(select ctid from %1$s where shop_id = $1 %s limit $2))',
                           name, case when has_id then 'order by id desc' else '' end) using shop, most;
            get diagnostics deleted = row_count;
            total := total + deleted;
        exception when foreign_key_violation then
            null; -- rows of another table still name these
        end;
    end loop;
    if total = 0 then
        delete from installs where shop_id = shop;
        delete from shops where id = shop;
    end if;
    return total;
end $$;
comment on function delete_of_shop is
    'Deletes up to so many rows of each table that are of a shop to be deleted, and at last the shop itself. Returns how
many; call it until that is 0.';
