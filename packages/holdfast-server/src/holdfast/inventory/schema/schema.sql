-- The schema of the inventory service, to read. `python -m tests.programs.schema` makes it from the
-- migrations, and nothing is applied from it. The tables of the job library are left out.


CREATE TYPE entry_kind AS ENUM (
    'sale',
    'cancel',
    'restock',
    'set',
    'adjust',
    'transfer',
    'hold',
    'release',
    'external_edit',
    'reconcile',
    'import',
    'revert'
);

CREATE TYPE pool_status AS ENUM (
    'active',
    'paused',
    'archived'
);

CREATE VIEW availability WITH (security_invoker='true') AS
 SELECT members.shop_id,
    members.variant_gid,
        CASE
            WHEN bool_and((pools.status = 'active'::pool_status)) THEN min((GREATEST((0)::bigint, ((pools.on_hand - pools.held) - pools.buffer)) / members.units_per_sale))
            ELSE NULL::bigint
        END AS quantity
   FROM (members
     JOIN pools ON ((pools.id = members.pool_id)))
  GROUP BY members.shop_id, members.variant_gid;

CREATE FUNCTION catalog_variants_containing(part text) RETURNS SETOF catalog_variants
    LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 100
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
declare
    own constant bigint := current_shop();
    pattern constant text := search_pattern(part);
    wanted constant bigint[] := parts(own, fold_text(part));
begin
    if wanted <> '{}' then
        -- No index is searched for `is not distinct from`, so none with everything of the shop is read.
        return query select * from catalog_variants
                      where parts(shop_id, fold_text(searched)) @> wanted and shop_id is not distinct from own
                        and fold_text(searched) like pattern;
    else
        -- Shorter texts have no parts.
        return query select * from catalog_variants where shop_id = own and fold_text(searched) like pattern;
    end if;
end $$;

CREATE FUNCTION count_drawn() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    takes boolean;
    names_variants boolean;
    differs boolean;
    reverts boolean;
begin
    select bool_or(by_variant is null and delta < 0 and reverts_id is null), bool_or(by_variant is not null),
           bool_or(by_variant is not null
                   and delta <> (select -coalesce(sum(value::bigint), 0) from jsonb_each_text(by_variant))),
           bool_or(reverts_id is not null)
      into takes, names_variants, differs, reverts from new_entries;
    if differs then
        raise exception 'variants took another number than these entries'
            using errcode = 'integrity_constraint_violation';
    end if;
    if takes then
        insert into drawn (shop_id, pool_id, day, source, variant_gid, times, taken, returned)
        select shop_id, pool_id, (created_at at time zone 'UTC')::date as day, source, '', count(*), -sum(delta), 0
          from new_entries where by_variant is null and delta < 0 and reverts_id is null
         group by shop_id, pool_id, day, source
         order by pool_id, day, source
            on conflict (pool_id, day, source, variant_gid) do update
           set times = drawn.times + excluded.times, taken = drawn.taken + excluded.taken;
    end if;
    if names_variants then
        insert into drawn (shop_id, pool_id, day, source, variant_gid, times, taken, returned)
        select shop_id, pool_id, (created_at at time zone 'UTC')::date as day, source, each.key,
               count(*) filter (where units > 0), coalesce(sum(units) filter (where units > 0), 0),
               coalesce(-sum(units) filter (where units < 0), 0)
          from new_entries
         cross join lateral jsonb_each_text(by_variant) as each
         cross join lateral (select each.value::bigint as units) as taken
         where by_variant is not null and units <> 0
         group by shop_id, pool_id, day, source, each.key
         order by pool_id, day, source, each.key
            on conflict (pool_id, day, source, variant_gid) do update
           set times = drawn.times + excluded.times, taken = drawn.taken + excluded.taken,
               returned = drawn.returned + excluded.returned;
    end if;
    if reverts then
        if exists (select from new_entries
                    where reverts_id is not null
                      and not exists (select from ledger where ledger.shop_id = new_entries.shop_id
                                                           and ledger.id = new_entries.reverts_id)) then
            raise exception 'these entries revert one that does not exist' using errcode = 'foreign_key_violation';
        end if;
        insert into drawn (shop_id, pool_id, day, source, variant_gid, times, taken, returned)
        select original.shop_id, original.pool_id, (original.created_at at time zone 'UTC')::date, original.source,
               taken.variant_gid, 0, 0, sum(taken.units)
          from new_entries
         cross join lateral (select * from ledger
                              where shop_id = new_entries.shop_id and id = new_entries.reverts_id limit 1) as original
         cross join lateral (
               select '' as variant_gid, -original.delta as units where original.by_variant is null
                union all
               select each.key, each.value::bigint from jsonb_each_text(original.by_variant) as each) as taken
         where original.delta < 0 and taken.units > 0
         group by 1, 2, 3, 4, 5
         order by 2, 3, 4, 5
            on conflict (pool_id, day, source, variant_gid) do update
           set returned = drawn.returned + excluded.returned;
    end if;
    return null;
end $$;

CREATE FUNCTION count_stock() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    fallen bigint[];
    broken boolean;
    repeated boolean;
    without_pool boolean;
begin
    with entry as (
        select shop_id, pool_id, seq, version, balance_after, held_after, delta, held_delta,
               lag(seq) over of_pool as seq_before, lag(balance_after) over of_pool as balance_before,
               lag(held_after) over of_pool as held_before
          from new_entries window of_pool as (partition by shop_id, pool_id order by seq)),
    change as (
        select shop_id, pool_id, count(*) as entries, max(version) as version, min(seq) as first_seq,
               min(balance_after - delta) filter (where seq_before is null) as balance_before,
               min(held_after - held_delta) filter (where seq_before is null) as held_before,
               sum(delta)::bigint as delta, sum(held_delta)::bigint as held_delta,
               coalesce(bool_or(seq = seq_before), false) as repeats,
               coalesce(bool_or(seq <> seq_before + 1 or balance_after <> balance_before + delta
                                or held_after <> held_before + held_delta), false) as breaks
          from entry group by shop_id, pool_id),
    counted as (
        update pools set on_hand = on_hand + change.delta, held = held + change.held_delta,
                         entries = pools.entries + change.entries, version = change.version
          from change
         where pools.shop_id = change.shop_id and pools.id = change.pool_id
     returning pools.id, status, low_stock_at, on_hand - pools.held - buffer as available,
               change.delta - change.held_delta as more,
               repeats or first_seq <= pools.entries - change.entries as repeats,
               breaks or (pools.entries - change.entries, on_hand - change.delta, pools.held - change.held_delta)
                         <> (first_seq - 1, balance_before, held_before) as differs)
    select array_agg(id) filter (where available <= low_stock_at and available - more > low_stock_at
                                       and status = 'active'),
           bool_or(differs), bool_or(repeats), count(*) < (select count(*) from change)
      into fallen, broken, repeated, without_pool from counted;
    if without_pool then
        raise exception 'these entries are of a pool that does not exist' using errcode = 'foreign_key_violation';
    end if;
    if repeated then
        raise exception 'a number of these entries is taken' using errcode = 'unique_violation';
    end if;
    if broken then
        raise exception 'these entries do not continue the ledger' using errcode = 'integrity_constraint_violation';
    end if;
    if fallen is not null then
        insert into mails (kind, thread, recipient, arguments)
        select 'low_stock', 'low stock ' || pools.id || ' ' || merchants.id, merchants.email,
               jsonb_build_object('pool_id', pools.id, 'merchant_id', merchants.id)
          from pools join merchants on merchants.shop_id = pools.shop_id
         where pools.id = any(fallen) and merchants.email is not null and merchants.proved_at is not null
           and wants_low_stock;
    end if;
    return null;
end $$;

CREATE FUNCTION current_shop() RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ select nullif(current_setting('holdfast.shop', true), '')::bigint $$;

CREATE FUNCTION delete_of_shop(shop bigint, most integer) RETURNS bigint
    LANGUAGE plpgsql
    AS $_$
declare
    name regclass;
    owner text;
    has_id boolean;
    deleted bigint;
    total bigint := 0;
begin
    if not exists (select from installs where shop_id = shop and redacted_at is not null) then
        return 0;
    end if;
    for name, owner, has_id in
        select of_shop.attrelid::regclass, of_shop.attname, exists (select from pg_attribute as other where other.attrelid = of_shop.attrelid
                                                      and other.attname = 'id' and not other.attisdropped)
          from pg_attribute as of_shop join pg_class on pg_class.oid = of_shop.attrelid
         where of_shop.attname in ('shop_id', 'tenant_id') and not of_shop.attisdropped and pg_class.relkind = 'r'
           and pg_class.relnamespace = (select relnamespace from pg_class where oid = 'shops'::regclass)
           and of_shop.attrelid <> 'installs'::regclass
    loop
        begin
            execute format('delete from %s where ctid = any(array(select ctid from %1$s where %I = $1 %s limit $2))',
                           name, owner, case when has_id then 'order by id desc' else '' end) using shop, most;
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
end $_$;

CREATE FUNCTION fold_text(whole text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
declare
    folded text;
begin
    if octet_length(whole) = length(whole) then
        return lower(whole);
    end if;
    -- A letter with marks becomes the letter and its marks. The marks are dropped, and what is not visible.
    folded := lower(regexp_replace(normalize(replace(whole, '´', ''''), nfkd),
        '[\u00AD\u0300-\u036F\u0483-\u0487\u0591-\u05C7\u0610-\u061A\u0640\u064B-\u065F\u0670\u06D6-\u06DC'
        '\u06DF-\u06E8\u06EA-\u06ED\u061C\u180B-\u180F\u1AB0-\u1AFF\u1DC0-\u1DFF\u200B-\u200F\u202A-\u202E'
        '\u2060-\u206F\u20D0-\u20FF\uFE00-\uFE0F\uFE20-\uFE2F\uFEFF]', '', 'g'));
    -- Letters that have no mark to drop, and punctuation that keyboards do not have.
    if folded ~ '[ßæœþøłđðħıŧŋĸƀɓƈɖɗƒɠɨƙƚɲɵƥƭʈʉʋƴƶɛɔəς’‘‚‛ʼʻʹʾʿ`′“”„«»‐‒–—―−⁃·•]' then
        folded := translate(folded,
            'øłđðħıŧŋĸƀɓƈɖɗƒɠɨƙƚɲɵƥƭʈʉʋƴƶɛɔəς’‘‚‛ʼʻʹʾʿ`′“”„«»‐‒–—―−⁃·•',
            'olddhitnkbbcddfgiklnopttuvyzeoeσ''''''''''''''''''''''"""""-------  ');
        folded := replace(replace(replace(replace(folded, 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'þ', 'th');
    end if;
    return normalize(folded, nfc);
end $$;

CREATE FUNCTION forget_stamp() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    update shared_inventories set stamp = null
     where shop_id = coalesce(new.shop_id, old.shop_id) and stamp is not null;
    return null;
end $$;

CREATE FUNCTION has_webhooks() RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return exists (select from webhook_endpoints);
end $$;

CREATE FUNCTION keep_pools_of_ledger() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    kept bigint;
begin
    select pool_id into kept from before
     cross join lateral (select pool_id from ledger where shop_id = before.shop_id and pool_id = before.id limit 1)
                        as its_entry
     limit 1;
    if found then
        raise exception 'pool % has entries in the ledger', kept using errcode = 'foreign_key_violation';
    end if;
    return null;
end $$;

CREATE FUNCTION mail_failing_webhook() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into mails (kind, thread, recipient, arguments)
    select 'webhook_failing', 'webhook ' || new.id || ' ' || merchants.id, email,
           jsonb_build_object('endpoint_id', new.id, 'merchant_id', merchants.id)
      from merchants where shop_id = new.tenant_id and email is not null and proved_at is not null;
    return null;
end $$;

CREATE FUNCTION mail_request() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    insert into mails (kind, thread, recipient, arguments, due_at)
    select 'agent_requests', 'agent requests ' || mail.limit_id || ' ' || merchants.id, merchants.email,
           jsonb_build_object('limit_id', mail.limit_id, 'merchant_id', merchants.id), mail.due_at
      from plan_request_mail(new.tenant_id, new.key_id, new.client_id) as mail
      join merchants on merchants.shop_id = new.tenant_id
     where merchants.email is not null and merchants.proved_at is not null;
    return null;
end $$;

CREATE FUNCTION mail_share(recipient text) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT COST 100000 PARALLEL SAFE
    AS $_$
    select (hashtextextended(
        replace(regexp_replace(lower(recipient collate "C"), '([+].*)?@[^@]*$', ''), '.', '') || '@'
            || case when recipient ~ '@[A-Za-z0-9.-]+$' and recipient !~* '@(.*[.])?xn--[^@]*$'
                    then replace(regexp_replace(lower(recipient collate "C"), '^.*@', ''), 'googlemail.com', 'gmail.com')
                    else '' end,
        0) & 63)::integer
$_$;

CREATE VIEW named_variants WITH (security_invoker='true') AS
 SELECT variants.shop_id,
    variants.gid,
    COALESCE(variants.title, shown_title(known.product_title, known.title)) AS title,
    COALESCE(variants.sku, NULLIF(known.sku, ''::text)) AS sku
   FROM (variants
     LEFT JOIN catalog_variants known ON (((known.shop_id = variants.shop_id) AND (known.gid = variants.gid))));

CREATE FUNCTION parts(shop bigint, whole text) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ select array(select hashtextextended(substr(whole, n, 3), shop)
                      from generate_series(1, length(whole) - 2) as n) $$;

CREATE FUNCTION plan_request_mail(tenant bigint, key bigint, client text) RETURNS TABLE(limit_id bigint, due_at timestamp with time zone)
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    update agent_limits
       set mail_at = greatest(clock_timestamp() + interval '1 minute', mail_at + interval '1 hour')
     where (key_id = key or tenant_id = tenant and client_id = client) and mails_requests
       and (mail_at is null or mail_at <= clock_timestamp() + interval '10 seconds')
    returning id, mail_at
$$;

CREATE FUNCTION pools_containing(part text) RETURNS SETOF pools
    LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 100
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
declare
    own constant bigint := current_shop();
    pattern constant text := search_pattern(part);
    wanted constant bigint[] := parts(own, fold_text(part));
begin
    if wanted <> '{}' then
        -- No index is searched for `is not distinct from`, so none with everything of the shop is read.
        return query select * from pools
                      where parts(shop_id, fold_text(name_key)) @> wanted and shop_id is not distinct from own
                        and fold_text(name_key) like pattern;
    else
        -- Shorter texts have no parts.
        return query select * from pools where shop_id = own and fold_text(name_key) like pattern;
    end if;
end $$;

CREATE FUNCTION pools_of_hold(shop bigint, hold bigint) RETURNS jsonb
    LANGUAGE sql STABLE
    AS $$
    select jsonb_agg(jsonb_build_object('pool_id', pool_id, 'quantity', quantity) order by pool_id)
      from hold_lines where shop_id = shop and hold_id = hold
$$;

CREATE FUNCTION refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    if tg_op = 'DELETE' and tg_level = 'ROW' then
        if exists (select from installs where shop_id = old.shop_id and redacted_at is not null) then
            return old;
        end if;
    end if;
    raise exception 'the ledger is append-only' using errcode = 'integrity_constraint_violation';
end $$;

CREATE FUNCTION refuse_change_of_key() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    raise exception 'the key of a pool cannot change' using errcode = 'foreign_key_violation';
end $$;

CREATE FUNCTION remember_links() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    second constant timestamptz := date_trunc('second', clock_timestamp());
begin
    if tg_op = 'UPDATE' and new.units_per_sale = old.units_per_sale then
        return null;
    end if;
    if tg_op <> 'INSERT' then
        delete from links where pool_id = old.pool_id and variant_gid = old.variant_gid and until = 'infinity'
                            and since >= second;
        update links set until = second
         where pool_id = old.pool_id and variant_gid = old.variant_gid and until = 'infinity';
    end if;
    if tg_op <> 'DELETE' then
        insert into links (shop_id, pool_id, variant_gid, units_per_sale, since)
        values (new.shop_id, new.pool_id, new.variant_gid, new.units_per_sale, second);
    end if;
    return null;
end $$;

CREATE FUNCTION search_pattern(whole text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    select '%' || replace(replace(replace(fold_text(whole), '\', '\\'), '%', '\%'), '_', '\_') || '%'
$$;

CREATE FUNCTION sellable_of_pool(shop bigint, pool bigint) RETURNS jsonb
    LANGUAGE sql STABLE
    AS $$
    select case when count(*) <= 100
                then coalesce(jsonb_object_agg(variant_gid, quantity) filter (where quantity is not null), '{}') end
      from (select variant_gid from members where shop_id = shop and pool_id = pool limit 101) as member
     cross join lateral (select quantity from availability
                          where availability.shop_id = shop and availability.variant_gid = member.variant_gid) as sellable
$$;

CREATE VIEW settable_locations WITH (security_invoker='true') AS
 SELECT locations.shop_id,
    locations.gid,
        CASE
            WHEN (catalogs.rule = 'all'::text) THEN 0
            ELSE locations.share_from
        END AS part_from,
        CASE
            WHEN (catalogs.rule = 'all'::text) THEN 100
            ELSE locations.share_to
        END AS part_to
   FROM (locations
     JOIN catalogs ON ((catalogs.shop_id = locations.shop_id)))
  WHERE (locations.active AND (((catalogs.rule = 'all'::text) AND (locations.fulfillment_service = false)) OR ((catalogs.rule <> 'all'::text) AND (locations.share_from < locations.share_to))));

CREATE FUNCTION shown_title(product_title text, title text) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ select nullif(concat_ws(' · ', nullif(product_title, ''), nullif(nullif(title, ''), 'Default Title')), '') $$;

CREATE FUNCTION tell_of_mails() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    if exists (select from inserted) then
        perform pg_notify('holdfast', 'mails ');
    end if;
    return null;
end $$;

CREATE FUNCTION tell_webhooks_of_app() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select new.shop_id, 'app.connected', 'app', jsonb_build_object('shop', domain, 'scopes', to_jsonb(new.scopes))
      from shops where id = new.shop_id and wants_webhook(new.shop_id, 'app.connected');
    if found then
        -- The name of the channel and a space: it must match MESSAGES_CHANNEL in kit/webhooks/endpoints.py.
        perform pg_notify('holdfast', 'webhook_messages ');
    end if;
    return null;
end $$;

CREATE FUNCTION tell_webhooks_of_ended_holds() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select shop_id, 'hold.ended', 'hold ' || id,
           jsonb_build_object('hold_id', id, 'reference', after.reference,
                              'reason', case when after.sold then 'sold'
                                             when after.released_at >= after.expires_at then 'expired'
                                             else 'released' end,
                              'pools', pools_of_hold(shop_id, id))
      from before join after using (shop_id, id)
     where before.released_at is null and after.released_at is not null and wants_webhook(shop_id, 'hold.ended')
     order by id;
    return null;
end $$;

CREATE FUNCTION tell_webhooks_of_ended_key() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select new.shop_id, 'key.revoked', 'key ' || new.id, jsonb_build_object('key_id', new.id, 'scopes', to_jsonb(new.scopes))
     where wants_webhook(new.shop_id, 'key.revoked');
    if found then
        -- The name of the channel and a space: it must match MESSAGES_CHANNEL in kit/webhooks/endpoints.py.
        perform pg_notify('holdfast', 'webhook_messages ');
    end if;
    return null;
end $$;

CREATE FUNCTION tell_webhooks_of_new_holds() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select shop_id, 'hold.placed', 'hold ' || id,
           jsonb_build_object('hold_id', id, 'reference', reference,
                              'expires_at', to_char(expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                              'pools', pools_of_hold(shop_id, id))
      from added where wants_webhook(shop_id, 'hold.placed') order by id;
    return null;
end $$;

CREATE FUNCTION tell_webhooks_of_stock() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select change.shop_id, type, 'pool ' || change.pool_id, data
      from (select shop_id, pool_id, count(*) as entries, max(id) as last_entry_id, sum(delta)::bigint as delta,
                   sum(held_delta)::bigint as held_delta, array_agg(distinct kind order by kind) as kinds
              from new_entries group by shop_id, pool_id) as change
      join pools on pools.shop_id = change.shop_id and pools.id = change.pool_id
     cross join lateral (select greatest(0, on_hand - pools.held - buffer) as available) as level
     cross join lateral (
           values (1, 'stock.changed', true), (2, 'stock.low',
                   is_low and status = 'active' and on_hand - pools.held - buffer - delta + held_delta > low_stock_at))
               as message (place, type, applies)
     cross join lateral (
           select case when type = 'stock.low'
                       then jsonb_build_object('pool_id', pools.id, 'available', available,
                                               'low_stock_at', low_stock_at, 'version', pools.version)
                       else jsonb_build_object('pool_id', pools.id, 'on_hand', on_hand, 'held', pools.held,
                                               'available', available, 'version', pools.version, 'delta', delta,
                                               'held_delta', held_delta, 'kinds', kinds, 'entries', change.entries,
                                               'last_entry_id', last_entry_id,
                                               'variants', sellable_of_pool(pools.shop_id, pools.id)) end as data)
                         as body
     where applies and wants_webhook(change.shop_id, type)
     order by change.pool_id, place;
    return null;
end $$;

CREATE FUNCTION variants_containing(part text) RETURNS SETOF variants
    LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 100
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
declare
    own constant bigint := current_shop();
    pattern constant text := search_pattern(part);
    wanted constant bigint[] := parts(own, fold_text(part));
begin
    if wanted <> '{}' then
        -- No index is searched for `is not distinct from`, so none with everything of the shop is read.
        return query select * from variants
                      where parts(shop_id, fold_text(searched)) @> wanted and shop_id is not distinct from own
                        and fold_text(searched) like pattern;
    else
        -- Shorter texts have no parts.
        return query select * from variants where shop_id = own and fold_text(searched) like pattern;
    end if;
end $$;

CREATE FUNCTION wants_webhook(tenant bigint, type text) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    select exists (
        select from webhook_endpoints
         where tenant_id = tenant and status <> 'paused' and (types = '{}' or wants_webhook.type = any(types)))
$$;

-- FUNCTION ------------------------------------------------------------------------------------------------------------

REVOKE ALL ON FUNCTION catalog_variants_containing(part text) FROM PUBLIC;
GRANT ALL ON FUNCTION catalog_variants_containing(part text) TO holdfast_shop;
REVOKE ALL ON FUNCTION pools_containing(part text) FROM PUBLIC;
GRANT ALL ON FUNCTION pools_containing(part text) TO holdfast_shop;
REVOKE ALL ON FUNCTION variants_containing(part text) FROM PUBLIC;
GRANT ALL ON FUNCTION variants_containing(part text) TO holdfast_shop;

-- SCHEMA --------------------------------------------------------------------------------------------------------------

GRANT USAGE ON SCHEMA public TO holdfast_shop;

-- agent_actions -------------------------------------------------------------------------------------------------------

CREATE TABLE agent_actions (
    id bigint NOT NULL,
    shop_id bigint NOT NULL,
    key_id bigint NOT NULL,
    agent_name text,
    operation text NOT NULL,
    pool_id bigint,
    number bigint,
    done_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT agent_actions_agent_name_check CHECK (((length(agent_name) >= 1) AND (length(agent_name) <= 300))),
    CONSTRAINT agent_actions_number_check CHECK ((number >= 0))
);
ALTER TABLE agent_actions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME agent_actions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY agent_actions
    ADD CONSTRAINT agent_actions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY agent_actions
    ADD CONSTRAINT agent_actions_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
CREATE INDEX agent_actions_of_shop ON agent_actions USING btree (shop_id, id);
CREATE INDEX agent_actions_over ON agent_actions USING btree (done_at);
ALTER TABLE agent_actions ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON agent_actions TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT ON TABLE agent_actions TO holdfast_shop;

-- agent_limits --------------------------------------------------------------------------------------------------------

CREATE TABLE agent_limits (
    id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    key_id bigint,
    client_id text,
    daily_limit bigint,
    day date DEFAULT ((clock_timestamp() AT TIME ZONE 'UTC'::text))::date NOT NULL,
    used bigint DEFAULT 0 NOT NULL,
    allowed bigint,
    set_at timestamp with time zone DEFAULT now() NOT NULL,
    asks_first boolean DEFAULT false NOT NULL,
    mails_requests boolean DEFAULT true NOT NULL,
    language text,
    mail_at timestamp with time zone,
    CONSTRAINT agent_limits_daily_limit_check CHECK (((daily_limit >= 0) AND (daily_limit <= '1000000000000'::bigint))),
    CONSTRAINT agent_limits_language_check CHECK ((length(language) <= 10)),
    CONSTRAINT allowed_with_a_limit CHECK ((((allowed IS NULL) = (daily_limit IS NULL)) AND (allowed >= daily_limit))),
    CONSTRAINT never_beyond_the_limit CHECK (((used >= 0) AND (used <= allowed))),
    CONSTRAINT one_credential CHECK ((num_nonnulls(key_id, client_id) = 1))
);
ALTER TABLE agent_limits ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME agent_limits_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY agent_limits
    ADD CONSTRAINT agent_limits_key_id_key UNIQUE (key_id);
ALTER TABLE ONLY agent_limits
    ADD CONSTRAINT agent_limits_pkey PRIMARY KEY (id);
ALTER TABLE ONLY agent_limits
    ADD CONSTRAINT agent_limits_tenant_id_client_id_key UNIQUE (tenant_id, client_id);
ALTER TABLE ONLY agent_limits
    ADD CONSTRAINT agent_limits_client_id_fkey FOREIGN KEY (client_id) REFERENCES oauth_clients(id) ON DELETE CASCADE;
ALTER TABLE ONLY agent_limits
    ADD CONSTRAINT agent_limits_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys(id) ON DELETE CASCADE;
CREATE INDEX agent_limits_of_client ON agent_limits USING btree (client_id) WHERE (client_id IS NOT NULL);
ALTER TABLE agent_limits ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON agent_limits TO holdfast_shop USING ((tenant_id = ( SELECT current_shop() AS current_shop)));
GRANT UPDATE(allowed) ON TABLE agent_limits TO holdfast_shop;
GRANT UPDATE(day) ON TABLE agent_limits TO holdfast_shop;
GRANT UPDATE(used) ON TABLE agent_limits TO holdfast_shop;
GRANT SELECT ON TABLE agent_limits TO holdfast_shop;

-- agent_registrations -------------------------------------------------------------------------------------------------

CREATE TABLE agent_registrations (
    id text NOT NULL,
    shop_id bigint NOT NULL,
    api_key_id bigint NOT NULL,
    hash bytea NOT NULL,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT agent_registrations_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT agent_registrations_id_check CHECK ((id ~ '^reg_[A-Za-z0-9_-]{22}$'::text))
);
ALTER TABLE ONLY agent_registrations
    ADD CONSTRAINT agent_registrations_api_key_id_key UNIQUE (api_key_id);
ALTER TABLE ONLY agent_registrations
    ADD CONSTRAINT agent_registrations_hash_key UNIQUE (hash);
ALTER TABLE ONLY agent_registrations
    ADD CONSTRAINT agent_registrations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY agent_registrations
    ADD CONSTRAINT agent_registrations_api_key_id_fkey FOREIGN KEY (api_key_id) REFERENCES api_keys(id);
ALTER TABLE ONLY agent_registrations
    ADD CONSTRAINT agent_registrations_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
ALTER TABLE agent_registrations ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON agent_registrations TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));

-- agent_requests ------------------------------------------------------------------------------------------------------

CREATE TABLE agent_requests (
    id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    key_id bigint,
    client_id text,
    slot smallint,
    digest bytea NOT NULL,
    operation text NOT NULL,
    sealed bytea NOT NULL,
    status text DEFAULT 'waiting'::text NOT NULL,
    is_answered boolean DEFAULT false CONSTRAINT agent_requests_is_told_not_null NOT NULL,
    requested_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone DEFAULT (now() + '24:00:00'::interval) NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT agent_requests_digest_check CHECK ((length(digest) = 32)),
    CONSTRAINT agent_requests_slot_check CHECK (((slot >= 1) AND (slot <= 50))),
    CONSTRAINT agent_requests_status_check CHECK ((status = ANY (ARRAY['waiting'::text, 'done'::text, 'declined'::text, 'expired'::text]))),
    CONSTRAINT ends_once CHECK (((status = 'waiting'::text) = (ended_at IS NULL))),
    CONSTRAINT nothing_is_kept_of_what_ended CHECK (((status = 'waiting'::text) OR (sealed = '\x'::bytea))),
    CONSTRAINT one_credential_asks CHECK ((num_nonnulls(key_id, client_id) = 1)),
    CONSTRAINT waits_in_a_slot CHECK (((status = 'waiting'::text) = (slot IS NOT NULL)))
);
ALTER TABLE agent_requests ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME agent_requests_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY agent_requests
    ADD CONSTRAINT agent_requests_pkey PRIMARY KEY (id);
ALTER TABLE ONLY agent_requests
    ADD CONSTRAINT agent_requests_client_id_fkey FOREIGN KEY (client_id) REFERENCES oauth_clients(id) ON DELETE CASCADE;
ALTER TABLE ONLY agent_requests
    ADD CONSTRAINT agent_requests_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys(id) ON DELETE CASCADE;
CREATE INDEX agent_requests_by_age ON agent_requests USING btree (requested_at);
CREATE INDEX agent_requests_by_client ON agent_requests USING btree (client_id, tenant_id) WHERE (client_id IS NOT NULL);
CREATE INDEX agent_requests_by_digest ON agent_requests USING btree (digest, id);
CREATE INDEX agent_requests_by_key ON agent_requests USING btree (key_id) WHERE (key_id IS NOT NULL);
CREATE INDEX agent_requests_by_tenant ON agent_requests USING btree (tenant_id);
CREATE UNIQUE INDEX agent_requests_of_client ON agent_requests USING btree (tenant_id, client_id, slot) WHERE ((status = 'waiting'::text) AND (client_id IS NOT NULL));
CREATE UNIQUE INDEX agent_requests_of_key ON agent_requests USING btree (key_id, slot) WHERE ((status = 'waiting'::text) AND (key_id IS NOT NULL));
CREATE INDEX agent_requests_of_tenant ON agent_requests USING btree (tenant_id, id) WHERE (status = 'waiting'::text);
CREATE UNIQUE INDEX agent_requests_waiting ON agent_requests USING btree (digest) WHERE (status = 'waiting'::text);
CREATE TRIGGER mail_request AFTER INSERT ON agent_requests FOR EACH ROW EXECUTE FUNCTION mail_request();
ALTER TABLE agent_requests ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON agent_requests TO holdfast_shop USING ((tenant_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT,UPDATE ON TABLE agent_requests TO holdfast_shop;

-- api_keys ------------------------------------------------------------------------------------------------------------

CREATE TABLE api_keys (
    id bigint NOT NULL,
    shop_id bigint NOT NULL,
    hash bytea NOT NULL,
    sealed bytea NOT NULL,
    scopes text[] NOT NULL,
    active boolean DEFAULT true NOT NULL,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT api_keys_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT api_keys_scopes_check CHECK ((scopes <@ ARRAY['read_inventory'::text, 'write_inventory'::text, 'read_pools'::text, 'write_pools'::text]))
);
ALTER TABLE api_keys ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME api_keys_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_hash_key UNIQUE (hash);
ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
CREATE UNIQUE INDEX one_active_key_a_shop ON api_keys USING btree (shop_id) WHERE active;
CREATE TRIGGER tell_webhooks_of_ended_key AFTER UPDATE OF active ON api_keys FOR EACH ROW WHEN ((old.active AND (NOT new.active))) EXECUTE FUNCTION tell_webhooks_of_ended_key();
ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON api_keys TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));

-- availability --------------------------------------------------------------------------------------------------------

GRANT SELECT ON TABLE availability TO holdfast_shop;

-- cart_numbers --------------------------------------------------------------------------------------------------------

CREATE TABLE cart_numbers (
    shop_id bigint NOT NULL,
    variant_gid text NOT NULL,
    wanted jsonb NOT NULL,
    version bigint NOT NULL,
    written jsonb,
    digest text,
    written_at timestamp with time zone,
    read_again boolean DEFAULT false NOT NULL,
    refused text,
    CONSTRAINT cart_numbers_digest_check CHECK ((length(digest) <= 200)),
    CONSTRAINT cart_numbers_refused_check CHECK ((length(refused) <= 500))
)
WITH (fillfactor='70');
ALTER TABLE ONLY cart_numbers
    ADD CONSTRAINT cart_numbers_pkey PRIMARY KEY (shop_id, variant_gid);
ALTER TABLE ONLY cart_numbers
    ADD CONSTRAINT cart_numbers_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
CREATE INDEX cart_numbers_by_age ON cart_numbers USING btree (shop_id, written_at) WHERE ((wanted <> '[]'::jsonb) AND (refused IS NULL));
CREATE INDEX cart_numbers_to_write ON cart_numbers USING btree (shop_id, written_at NULLS FIRST) WHERE ((read_again OR (wanted <> COALESCE(written, '[]'::jsonb))) AND (refused IS NULL));
ALTER TABLE cart_numbers ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON cart_numbers TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE cart_numbers TO holdfast_shop;

-- catalog_variants ----------------------------------------------------------------------------------------------------

CREATE TABLE catalog_variants (
    shop_id bigint NOT NULL,
    gid text NOT NULL,
    product_gid text NOT NULL,
    product_title text DEFAULT ''::text NOT NULL,
    title text DEFAULT ''::text NOT NULL,
    sku text,
    item_gid text NOT NULL,
    tracked boolean DEFAULT true NOT NULL,
    updated_at timestamp with time zone,
    import_id bigint DEFAULT 0 NOT NULL,
    searched text GENERATED ALWAYS AS (lower(((((product_title || ' '::text) || title) || ' '::text) || COALESCE(sku, ''::text)))) STORED,
    sku_key text GENERATED ALWAYS AS (lower(NULLIF(sku, ''::text))) STORED,
    picture text,
    CONSTRAINT catalog_variants_gid_check CHECK ((gid ~ '^gid://[A-Za-z0-9_-]+/ProductVariant/[0-9]{1,20}$'::text)),
    CONSTRAINT catalog_variants_picture_check CHECK ((length(picture) <= 2000))
)
WITH (fillfactor='50');
ALTER TABLE ONLY catalog_variants
    ADD CONSTRAINT catalog_variants_pkey PRIMARY KEY (shop_id, gid);
ALTER TABLE ONLY catalog_variants
    ADD CONSTRAINT catalog_variants_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
CREATE INDEX catalog_variants_by_parts ON catalog_variants USING gin (parts(shop_id, fold_text(searched))) WITH (gin_pending_list_limit='512');
CREATE INDEX catalog_variants_by_title ON catalog_variants USING btree (shop_id, product_title, title, gid);
CREATE INDEX catalog_variants_of_item ON catalog_variants USING btree (shop_id, item_gid);
CREATE INDEX catalog_variants_of_product ON catalog_variants USING btree (shop_id, product_gid);
CREATE INDEX catalog_variants_of_sku ON catalog_variants USING btree (shop_id, sku_key) WHERE (sku_key IS NOT NULL);
ALTER TABLE catalog_variants ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON catalog_variants TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE catalog_variants TO holdfast_shop;

-- catalogs ------------------------------------------------------------------------------------------------------------

CREATE TABLE catalogs (
    shop_id bigint NOT NULL,
    changes bigint DEFAULT 0 NOT NULL,
    rule text DEFAULT 'one'::text NOT NULL,
    import_id bigint DEFAULT 0 NOT NULL,
    bulk_gid text,
    stored_lines bigint DEFAULT 0 NOT NULL,
    objects bigint DEFAULT 0 NOT NULL,
    requested_at timestamp with time zone,
    finished_at timestamp with time zone,
    error text,
    CONSTRAINT catalogs_error_check CHECK ((length(error) <= 1000)),
    CONSTRAINT catalogs_rule_check CHECK ((rule = ANY (ARRAY['all'::text, 'one'::text, 'shares'::text])))
);
ALTER TABLE ONLY catalogs
    ADD CONSTRAINT catalogs_pkey PRIMARY KEY (shop_id);
ALTER TABLE ONLY catalogs
    ADD CONSTRAINT catalogs_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
ALTER TABLE catalogs ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON catalogs TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE catalogs TO holdfast_shop;

-- drawn ---------------------------------------------------------------------------------------------------------------

CREATE TABLE drawn (
    shop_id bigint NOT NULL,
    pool_id bigint NOT NULL,
    day date NOT NULL,
    source text NOT NULL,
    variant_gid text NOT NULL,
    times bigint NOT NULL,
    taken bigint NOT NULL,
    returned bigint NOT NULL,
    CONSTRAINT drawn_check CHECK (((times >= 0) AND (taken >= times) AND (returned >= 0)))
)
WITH (fillfactor='70');
ALTER TABLE ONLY drawn
    ADD CONSTRAINT drawn_pkey PRIMARY KEY (pool_id, day, source, variant_gid);
CREATE INDEX drawn_by_day ON drawn USING btree (day);
ALTER TABLE drawn ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON drawn TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT ON TABLE drawn TO holdfast_shop;

-- ended_levels --------------------------------------------------------------------------------------------------------

CREATE TABLE ended_levels (
    shop_id bigint NOT NULL,
    item_gid text NOT NULL,
    ended_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
ALTER TABLE ONLY ended_levels
    ADD CONSTRAINT ended_levels_pkey PRIMARY KEY (shop_id, item_gid);
ALTER TABLE ONLY ended_levels
    ADD CONSTRAINT ended_levels_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
CREATE INDEX ended_levels_by_age ON ended_levels USING btree (ended_at);
ALTER TABLE ended_levels ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON ended_levels TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ended_levels TO holdfast_shop;

-- functions -----------------------------------------------------------------------------------------------------------

CREATE TABLE functions (
    name text NOT NULL,
    checksum text NOT NULL
);
ALTER TABLE ONLY functions
    ADD CONSTRAINT functions_pkey PRIMARY KEY (name);

-- hold_lines ----------------------------------------------------------------------------------------------------------

CREATE TABLE hold_lines (
    shop_id bigint NOT NULL,
    hold_id bigint NOT NULL,
    pool_id bigint NOT NULL,
    quantity bigint NOT NULL,
    CONSTRAINT hold_lines_quantity_check CHECK ((quantity > 0))
);
ALTER TABLE ONLY hold_lines
    ADD CONSTRAINT hold_lines_pkey PRIMARY KEY (shop_id, hold_id, pool_id);
ALTER TABLE ONLY hold_lines
    ADD CONSTRAINT hold_lines_shop_id_hold_id_fkey FOREIGN KEY (shop_id, hold_id) REFERENCES holds(shop_id, id);
ALTER TABLE ONLY hold_lines
    ADD CONSTRAINT hold_lines_shop_id_pool_id_fkey FOREIGN KEY (shop_id, pool_id) REFERENCES pools(shop_id, id);
CREATE INDEX hold_lines_of_pool ON hold_lines USING btree (pool_id);
ALTER TABLE hold_lines ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON hold_lines TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT ON TABLE hold_lines TO holdfast_shop;

-- holds ---------------------------------------------------------------------------------------------------------------

CREATE TABLE holds (
    shop_id bigint NOT NULL,
    id bigint NOT NULL,
    reference text,
    expires_at timestamp with time zone NOT NULL,
    released_at timestamp with time zone,
    inserted_at timestamp with time zone NOT NULL,
    sold boolean DEFAULT false NOT NULL,
    CONSTRAINT sold_holds_have_ended CHECK (((released_at IS NOT NULL) OR (NOT sold)))
);
ALTER TABLE ONLY holds
    ADD CONSTRAINT holds_pkey PRIMARY KEY (shop_id, id);
ALTER TABLE ONLY holds
    ADD CONSTRAINT holds_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
CREATE INDEX holds_active ON holds USING btree (shop_id, id) WHERE (released_at IS NULL);
CREATE INDEX holds_ended ON holds USING btree (released_at) WHERE (released_at IS NOT NULL);
CREATE INDEX holds_to_expire ON holds USING btree (expires_at) WHERE (released_at IS NULL);
CREATE TRIGGER tell_webhooks_of_ended_holds AFTER UPDATE ON holds REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT WHEN (has_webhooks()) EXECUTE FUNCTION tell_webhooks_of_ended_holds();
CREATE TRIGGER tell_webhooks_of_new_holds AFTER INSERT ON holds REFERENCING NEW TABLE AS added FOR EACH STATEMENT WHEN (has_webhooks()) EXECUTE FUNCTION tell_webhooks_of_new_holds();
ALTER TABLE holds ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON holds TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT UPDATE(released_at) ON TABLE holds TO holdfast_shop;
GRANT UPDATE(sold) ON TABLE holds TO holdfast_shop;
GRANT SELECT,INSERT ON TABLE holds TO holdfast_shop;

-- idempotency_answers -------------------------------------------------------------------------------------------------

CREATE TABLE idempotency_answers (
    id bytea NOT NULL,
    fingerprint bytea NOT NULL,
    sealed bytea NOT NULL,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    shop_id bigint DEFAULT current_shop() NOT NULL,
    account text,
    CONSTRAINT idempotency_answers_fingerprint_check CHECK ((length(fingerprint) = 32)),
    CONSTRAINT idempotency_answers_id_check CHECK ((length(id) = 32))
);
ALTER TABLE ONLY idempotency_answers
    ADD CONSTRAINT idempotency_answers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY idempotency_answers
    ADD CONSTRAINT idempotency_answers_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
CREATE INDEX idempotency_answers_by_age ON idempotency_answers USING btree (inserted_at);
CREATE INDEX idempotency_answers_large ON idempotency_answers USING btree (account, inserted_at) WHERE (account IS NOT NULL);
ALTER TABLE idempotency_answers ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON idempotency_answers TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT INSERT(account),UPDATE(account) ON TABLE idempotency_answers TO holdfast_shop;
GRANT INSERT(fingerprint),UPDATE(fingerprint) ON TABLE idempotency_answers TO holdfast_shop;
GRANT INSERT(id) ON TABLE idempotency_answers TO holdfast_shop;
GRANT UPDATE(inserted_at) ON TABLE idempotency_answers TO holdfast_shop;
GRANT INSERT(sealed),UPDATE(sealed) ON TABLE idempotency_answers TO holdfast_shop;
GRANT SELECT ON TABLE idempotency_answers TO holdfast_shop;

-- installs ------------------------------------------------------------------------------------------------------------

CREATE TABLE installs (
    shop_id bigint NOT NULL,
    scopes text[] NOT NULL,
    installed_at timestamp with time zone DEFAULT now() NOT NULL,
    uninstalled_at timestamp with time zone,
    redacted_at timestamp with time zone,
    broken text,
    subscription_errors text[] DEFAULT '{}'::text[] NOT NULL,
    CONSTRAINT installs_broken_check CHECK ((length(broken) <= 500)),
    CONSTRAINT installs_check CHECK (((redacted_at IS NULL) OR (uninstalled_at IS NOT NULL)))
);
ALTER TABLE ONLY installs
    ADD CONSTRAINT installs_pkey PRIMARY KEY (shop_id);
ALTER TABLE ONLY installs
    ADD CONSTRAINT installs_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
CREATE INDEX installs_uninstalled ON installs USING btree (uninstalled_at) WHERE (uninstalled_at IS NOT NULL);
CREATE TRIGGER tell_webhooks_of_connected AFTER UPDATE ON installs FOR EACH ROW WHEN (((new.uninstalled_at IS NULL) AND (new.broken IS NULL) AND ((old.uninstalled_at IS NOT NULL) OR (old.broken IS NOT NULL)))) EXECUTE FUNCTION tell_webhooks_of_app();
CREATE TRIGGER tell_webhooks_of_installed AFTER INSERT ON installs FOR EACH ROW WHEN (((new.uninstalled_at IS NULL) AND (new.broken IS NULL))) EXECUTE FUNCTION tell_webhooks_of_app();
ALTER TABLE installs ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON installs TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT UPDATE(broken) ON TABLE installs TO holdfast_shop;
GRANT UPDATE(subscription_errors) ON TABLE installs TO holdfast_shop;
GRANT SELECT ON TABLE installs TO holdfast_shop;

-- known_browsers ------------------------------------------------------------------------------------------------------

CREATE TABLE known_browsers (
    hash bytea NOT NULL,
    account_id bigint NOT NULL,
    known_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT known_browsers_hash_check CHECK ((length(hash) = 32))
);
ALTER TABLE ONLY known_browsers
    ADD CONSTRAINT known_browsers_pkey PRIMARY KEY (hash);
CREATE INDEX known_browsers_by_age ON known_browsers USING btree (known_at);
CREATE INDEX known_browsers_of_account ON known_browsers USING btree (account_id);

-- ledger --------------------------------------------------------------------------------------------------------------

CREATE TABLE ledger (
    shop_id bigint NOT NULL,
    id bigint NOT NULL,
    pool_id bigint NOT NULL,
    seq bigint NOT NULL,
    kind entry_kind NOT NULL,
    delta bigint NOT NULL,
    held_delta bigint NOT NULL,
    balance_after bigint NOT NULL,
    held_after bigint NOT NULL,
    below_zero boolean NOT NULL,
    version bigint NOT NULL,
    actor text NOT NULL,
    actor_id bigint,
    source text NOT NULL,
    source_ref text,
    reason text,
    idempotency_key text,
    reverts_id bigint,
    hold_id bigint,
    created_at timestamp with time zone NOT NULL,
    heard_at timestamp with time zone DEFAULT (NULLIF(current_setting('holdfast.heard_at'::text, true), ''::text))::timestamp with time zone,
    by_variant jsonb,
    agent_name text,
    CONSTRAINT ledger_actor_check CHECK ((actor = ANY (ARRAY['agent'::text, 'staff'::text, 'platform'::text, 'system'::text]))),
    CONSTRAINT ledger_agent_name_check CHECK ((length(agent_name) <= 64)),
    CONSTRAINT ledger_held_after_check CHECK ((held_after >= 0)),
    CONSTRAINT nothing_is_promised_twice CHECK (((balance_after >= held_after) OR ((delta >= 0) AND (held_delta <= 0)) OR below_zero OR (kind = ANY (ARRAY['cancel'::entry_kind, 'external_edit'::entry_kind, 'reconcile'::entry_kind])) OR ((kind = 'sale'::entry_kind) AND ((actor = ANY (ARRAY['platform'::text, 'system'::text])) OR ((delta >= held_delta) AND (balance_after >= 0))))))
);
ALTER TABLE ONLY ledger
    ADD CONSTRAINT ledger_pkey PRIMARY KEY (shop_id, id);
CREATE INDEX ledger_of_pool ON ledger USING btree (shop_id, pool_id, created_at, seq);
CREATE UNIQUE INDEX reverted_once ON ledger USING btree (shop_id, reverts_id) WHERE (reverts_id IS NOT NULL);
CREATE TRIGGER append_only BEFORE UPDATE OR TRUNCATE ON ledger FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER count_drawn AFTER INSERT ON ledger REFERENCING NEW TABLE AS new_entries FOR EACH STATEMENT EXECUTE FUNCTION count_drawn();
CREATE TRIGGER count_stock AFTER INSERT ON ledger REFERENCING NEW TABLE AS new_entries FOR EACH STATEMENT EXECUTE FUNCTION count_stock();
CREATE TRIGGER kept_with_its_shop BEFORE DELETE ON ledger FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER tell_webhooks_of_stock AFTER INSERT ON ledger REFERENCING NEW TABLE AS new_entries FOR EACH STATEMENT WHEN (has_webhooks()) EXECUTE FUNCTION tell_webhooks_of_stock();
ALTER TABLE ledger ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON ledger TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT ON TABLE ledger TO holdfast_shop;

-- levels --------------------------------------------------------------------------------------------------------------

CREATE TABLE levels (
    shop_id bigint NOT NULL,
    item_gid text NOT NULL,
    location_gid text NOT NULL,
    gid text,
    available bigint NOT NULL,
    seen_at timestamp with time zone,
    import_id bigint DEFAULT 0 NOT NULL,
    target bigint,
    expected bigint,
    wanted bigint GENERATED ALWAYS AS (
CASE
    WHEN (expected IS NOT NULL) THEN LEAST(GREATEST(((target + available) - expected), (0)::bigint), (1000000000)::bigint)
    ELSE NULL::bigint
END) STORED,
    push_id bigint,
    pushed_from bigint,
    pushed_to bigint,
    pushed_at timestamp with time zone,
    suspect_at timestamp with time zone,
    read_again boolean DEFAULT false NOT NULL,
    parked text,
    caused_at timestamp with time zone,
    brisk integer DEFAULT 0 NOT NULL,
    based_at timestamp with time zone,
    paused boolean DEFAULT false NOT NULL,
    CONSTRAINT levels_check CHECK ((((push_id IS NULL) = (pushed_to IS NULL)) AND ((push_id IS NULL) = (pushed_from IS NULL)))),
    CONSTRAINT levels_parked_check CHECK ((length(parked) <= 500)),
    CONSTRAINT levels_target_check CHECK ((target >= 0))
)
WITH (fillfactor='70');
ALTER TABLE ONLY levels
    ADD CONSTRAINT levels_pkey PRIMARY KEY (shop_id, item_gid, location_gid);
ALTER TABLE ONLY levels
    ADD CONSTRAINT levels_push_id_fkey FOREIGN KEY (push_id) REFERENCES pushes(id);
ALTER TABLE ONLY levels
    ADD CONSTRAINT levels_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
CREATE INDEX levels_of_push ON levels USING btree (push_id) WHERE (push_id IS NOT NULL);
CREATE INDEX levels_suspect ON levels USING btree (shop_id, suspect_at) WHERE (suspect_at IS NOT NULL);
CREATE INDEX levels_to_push ON levels USING btree (shop_id, pushed_at NULLS FIRST) WHERE ((wanted <> available) AND (push_id IS NULL) AND (parked IS NULL) AND (NOT read_again));
CREATE INDEX levels_to_read ON levels USING btree (shop_id, item_gid, location_gid) WHERE read_again;
CREATE INDEX levels_unplanned ON levels USING btree (shop_id, item_gid) WHERE (expected IS NULL);
ALTER TABLE levels ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON levels TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE levels TO holdfast_shop;

-- links ---------------------------------------------------------------------------------------------------------------

CREATE TABLE links (
    shop_id bigint NOT NULL,
    pool_id bigint NOT NULL,
    variant_gid text NOT NULL,
    units_per_sale bigint NOT NULL,
    since timestamp with time zone NOT NULL,
    until timestamp with time zone DEFAULT 'infinity'::timestamp with time zone NOT NULL,
    CONSTRAINT links_check CHECK ((since < until))
);
ALTER TABLE ONLY links
    ADD CONSTRAINT links_pkey PRIMARY KEY (pool_id, variant_gid, until);
ALTER TABLE ONLY links
    ADD CONSTRAINT links_shop_id_pool_id_fkey FOREIGN KEY (shop_id, pool_id) REFERENCES pools(shop_id, id);
CREATE INDEX links_of_variant ON links USING btree (shop_id, variant_gid);
ALTER TABLE links ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON links TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT ON TABLE links TO holdfast_shop;

-- locations -----------------------------------------------------------------------------------------------------------

CREATE TABLE locations (
    shop_id bigint NOT NULL,
    gid text NOT NULL,
    name text NOT NULL,
    active boolean NOT NULL,
    share_from integer DEFAULT 0 NOT NULL,
    share_to integer DEFAULT 0 NOT NULL,
    updated_at timestamp with time zone,
    import_id bigint DEFAULT 0 NOT NULL,
    fulfillment_service boolean DEFAULT false,
    CONSTRAINT locations_check CHECK (((share_to >= share_from) AND (share_to <= 100))),
    CONSTRAINT locations_gid_check CHECK ((gid ~ '^gid://[A-Za-z0-9_-]+/Location/[0-9]{1,20}$'::text)),
    CONSTRAINT locations_share_from_check CHECK (((share_from >= 0) AND (share_from <= 100)))
);
ALTER TABLE ONLY locations
    ADD CONSTRAINT locations_pkey PRIMARY KEY (shop_id, gid);
ALTER TABLE ONLY locations
    ADD CONSTRAINT locations_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
ALTER TABLE locations ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON locations TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE locations TO holdfast_shop;

-- mail_rate -----------------------------------------------------------------------------------------------------------

CREATE TABLE mail_rate (
    is_only_row boolean DEFAULT true NOT NULL,
    next_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT mail_rate_is_only_row_check CHECK (is_only_row)
);
ALTER TABLE ONLY mail_rate
    ADD CONSTRAINT mail_rate_pkey PRIMARY KEY (is_only_row);

-- mail_sender ---------------------------------------------------------------------------------------------------------

CREATE TABLE mail_sender (
);

-- mail_shares ---------------------------------------------------------------------------------------------------------

CREATE TABLE mail_shares (
    share integer NOT NULL,
    lease_id uuid,
    due_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT mail_shares_share_check CHECK (((share >= 0) AND (share <= 63)))
);
ALTER TABLE ONLY mail_shares
    ADD CONSTRAINT mail_shares_pkey PRIMARY KEY (share);

-- mails ---------------------------------------------------------------------------------------------------------------

CREATE TABLE mails (
    id bigint NOT NULL,
    kind text NOT NULL,
    thread text NOT NULL,
    bulk boolean DEFAULT false NOT NULL,
    recipient text NOT NULL,
    arguments jsonb NOT NULL,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    due_at timestamp with time zone DEFAULT now() NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    ended_at timestamp with time zone,
    outcome text,
    error text,
    hold text,
    released_at timestamp with time zone,
    counted_for text,
    counted_at timestamp with time zone,
    CONSTRAINT mails_attempts_check CHECK ((attempts >= 0)),
    CONSTRAINT mails_check CHECK (((outcome IS NULL) = (ended_at IS NULL))),
    CONSTRAINT mails_check1 CHECK (((outcome IS DISTINCT FROM 'failed'::text) OR (error IS NOT NULL))),
    CONSTRAINT mails_error_check CHECK ((length(error) <= 1000)),
    CONSTRAINT mails_hold_check CHECK (((length(hold) >= 1) AND (length(hold) <= 100))),
    CONSTRAINT mails_kind_check CHECK (((length(kind) >= 1) AND (length(kind) <= 100))),
    CONSTRAINT mails_outcome_check CHECK ((outcome = ANY (ARRAY['sent'::text, 'superseded'::text, 'failed'::text]))),
    CONSTRAINT mails_thread_check CHECK (((length(thread) >= 1) AND (length(thread) <= 200)))
);
ALTER TABLE mails ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME mails_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY mails
    ADD CONSTRAINT mails_pkey PRIMARY KEY (id);
CREATE INDEX mails_counted ON mails USING btree (counted_for, counted_at) WHERE (counted_for IS NOT NULL);
CREATE INDEX mails_ended ON mails USING btree (ended_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX mails_failed ON mails USING btree (id) WHERE (outcome = 'failed'::text);
CREATE INDEX mails_held ON mails USING btree (due_at, id) WHERE ((ended_at IS NULL) AND (hold IS NOT NULL));
CREATE INDEX mails_in_shares ON mails USING btree (mail_share(recipient), bulk, COALESCE((arguments ->> 'organizer_id'::text), (arguments ->> 'merchant_id'::text), ''::text), due_at, id) WHERE ((ended_at IS NULL) AND (hold IS NULL));
CREATE INDEX mails_in_threads ON mails USING btree (thread, id) WHERE (ended_at IS NULL);
CREATE INDEX mails_in_turns ON mails USING btree (bulk, COALESCE((arguments ->> 'organizer_id'::text), (arguments ->> 'merchant_id'::text), ''::text), due_at, id) WHERE ((ended_at IS NULL) AND (hold IS NULL));
CREATE INDEX mails_of_recipient ON mails USING hash (recipient);
CREATE INDEX mails_to_send ON mails USING btree (bulk, due_at, id) WHERE ((ended_at IS NULL) AND (hold IS NULL));
CREATE TRIGGER tell_of_mails AFTER INSERT ON mails REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION tell_of_mails();

-- members -------------------------------------------------------------------------------------------------------------

CREATE TABLE members (
    shop_id bigint NOT NULL,
    pool_id bigint NOT NULL,
    variant_gid text NOT NULL,
    units_per_sale bigint NOT NULL,
    CONSTRAINT members_units_per_sale_check CHECK (((units_per_sale >= 1) AND (units_per_sale <= 1000000000)))
);
ALTER TABLE ONLY members
    ADD CONSTRAINT members_pkey PRIMARY KEY (pool_id, variant_gid);
ALTER TABLE ONLY members
    ADD CONSTRAINT members_shop_id_pool_id_fkey FOREIGN KEY (shop_id, pool_id) REFERENCES pools(shop_id, id);
ALTER TABLE ONLY members
    ADD CONSTRAINT members_shop_id_variant_gid_fkey FOREIGN KEY (shop_id, variant_gid) REFERENCES variants(shop_id, gid);
CREATE INDEX members_of_pool ON members USING btree (shop_id, pool_id, variant_gid) INCLUDE (units_per_sale);
CREATE INDEX members_of_variant ON members USING btree (shop_id, variant_gid) INCLUDE (pool_id);
CREATE TRIGGER forget_stamp AFTER INSERT OR DELETE OR UPDATE ON members FOR EACH ROW EXECUTE FUNCTION forget_stamp();
CREATE TRIGGER remember_links AFTER INSERT OR DELETE OR UPDATE ON members FOR EACH ROW EXECUTE FUNCTION remember_links();
ALTER TABLE members ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON members TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE members TO holdfast_shop;

-- merchants -----------------------------------------------------------------------------------------------------------

CREATE TABLE merchants (
    id bigint NOT NULL,
    shop_id bigint NOT NULL,
    email text,
    staff_id text,
    proved_at timestamp with time zone,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    wants_low_stock boolean DEFAULT true NOT NULL,
    language text,
    CONSTRAINT merchants_check CHECK ((num_nonnulls(email, staff_id) = 1)),
    CONSTRAINT merchants_email_check CHECK (((length(email) >= 3) AND (length(email) <= 254))),
    CONSTRAINT merchants_language_check CHECK ((length(language) <= 10)),
    CONSTRAINT merchants_staff_id_check CHECK (((length(staff_id) >= 1) AND (length(staff_id) <= 64)))
);
ALTER TABLE merchants ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME merchants_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY merchants
    ADD CONSTRAINT merchants_email_key UNIQUE (email);
ALTER TABLE ONLY merchants
    ADD CONSTRAINT merchants_pkey PRIMARY KEY (id);
ALTER TABLE ONLY merchants
    ADD CONSTRAINT merchants_shop_id_staff_id_key UNIQUE (shop_id, staff_id);
ALTER TABLE ONLY merchants
    ADD CONSTRAINT merchants_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
CREATE INDEX merchants_of_shop ON merchants USING btree (shop_id);
CREATE INDEX merchants_with_unusual_address ON merchants USING btree (id) WHERE ((email !~ '^[a-z0-9._+-]+@([a-z0-9-]+[.])+[a-z]+$'::text) OR (email ~~ '%xn--%'::text));
ALTER TABLE merchants ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON merchants TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT UPDATE(language) ON TABLE merchants TO holdfast_shop;
GRANT UPDATE(wants_low_stock) ON TABLE merchants TO holdfast_shop;
GRANT SELECT ON TABLE merchants TO holdfast_shop;

-- migrations ----------------------------------------------------------------------------------------------------------

CREATE TABLE migrations (
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (name);

-- named_variants ------------------------------------------------------------------------------------------------------

GRANT SELECT ON TABLE named_variants TO holdfast_shop;

-- oauth_access_tokens -------------------------------------------------------------------------------------------------

CREATE TABLE oauth_access_tokens (
    hash bytea NOT NULL,
    grant_id bigint NOT NULL,
    scopes text[] NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT oauth_access_tokens_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT oauth_access_tokens_scopes_check CHECK ((cardinality(scopes) > 0))
);
ALTER TABLE ONLY oauth_access_tokens
    ADD CONSTRAINT oauth_access_tokens_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY oauth_access_tokens
    ADD CONSTRAINT oauth_access_tokens_grant_id_fkey FOREIGN KEY (grant_id) REFERENCES oauth_grants(id) ON DELETE CASCADE;
CREATE INDEX oauth_access_tokens_of_grant ON oauth_access_tokens USING btree (grant_id);
CREATE INDEX oauth_access_tokens_over ON oauth_access_tokens USING btree (expires_at);
ALTER TABLE oauth_access_tokens ENABLE ROW LEVEL SECURITY;

-- oauth_clients -------------------------------------------------------------------------------------------------------

CREATE TABLE oauth_clients (
    id text NOT NULL,
    name text,
    redirect_uris text[] NOT NULL,
    fetched_until timestamp with time zone,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    used_at timestamp with time zone,
    auth_methods text[] DEFAULT '{none}'::text[] NOT NULL,
    jwks jsonb,
    jwks_uri text,
    CONSTRAINT oauth_clients_auth_methods_check CHECK (((cardinality(auth_methods) > 0) AND (auth_methods <@ '{none,private_key_jwt}'::text[]))),
    CONSTRAINT oauth_clients_check CHECK (((fetched_until IS NOT NULL) = starts_with(id, 'https://'::text))),
    CONSTRAINT oauth_clients_check1 CHECK ((num_nonnulls(jwks, jwks_uri) = (('private_key_jwt'::text = ANY (auth_methods)))::integer)),
    CONSTRAINT oauth_clients_id_check CHECK (((length(id) >= 1) AND (length(id) <= 500))),
    CONSTRAINT oauth_clients_jwks_check CHECK ((jsonb_typeof(jwks) = 'array'::text)),
    CONSTRAINT oauth_clients_jwks_uri_check CHECK ((length(jwks_uri) <= 500)),
    CONSTRAINT oauth_clients_name_check CHECK (((length(name) >= 1) AND (length(name) <= 100))),
    CONSTRAINT oauth_clients_redirect_uris_check CHECK (((cardinality(redirect_uris) >= 1) AND (cardinality(redirect_uris) <= 20)))
);
ALTER TABLE ONLY oauth_clients
    ADD CONSTRAINT oauth_clients_pkey PRIMARY KEY (id);
CREATE INDEX oauth_clients_unused ON oauth_clients USING btree (COALESCE(used_at, inserted_at));
ALTER TABLE oauth_clients ENABLE ROW LEVEL SECURITY;

-- oauth_codes ---------------------------------------------------------------------------------------------------------

CREATE TABLE oauth_codes (
    hash bytea NOT NULL,
    grant_id bigint NOT NULL,
    redirect_uri text NOT NULL,
    challenge text NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    CONSTRAINT oauth_codes_challenge_check CHECK ((challenge ~ '^[A-Za-z0-9_-]{43}$'::text)),
    CONSTRAINT oauth_codes_hash_check CHECK ((length(hash) = 32))
);
ALTER TABLE ONLY oauth_codes
    ADD CONSTRAINT oauth_codes_grant_id_key UNIQUE (grant_id);
ALTER TABLE ONLY oauth_codes
    ADD CONSTRAINT oauth_codes_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY oauth_codes
    ADD CONSTRAINT oauth_codes_grant_id_fkey FOREIGN KEY (grant_id) REFERENCES oauth_grants(id) ON DELETE CASCADE;
ALTER TABLE oauth_codes ENABLE ROW LEVEL SECURITY;

-- oauth_grants --------------------------------------------------------------------------------------------------------

CREATE TABLE oauth_grants (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    client_id text NOT NULL,
    scopes text[] NOT NULL,
    granted_at timestamp with time zone DEFAULT now() NOT NULL,
    used_at timestamp with time zone,
    expires_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    reason text,
    CONSTRAINT oauth_grants_check CHECK (((ended_at IS NULL) = (reason IS NULL))),
    CONSTRAINT oauth_grants_reason_check CHECK ((reason = ANY (ARRAY['disconnected'::text, 'revoked'::text, 'code_misused'::text, 'refresh_token_misused'::text]))),
    CONSTRAINT oauth_grants_scopes_check CHECK ((cardinality(scopes) > 0))
);
ALTER TABLE oauth_grants ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME oauth_grants_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY oauth_grants
    ADD CONSTRAINT oauth_grants_pkey PRIMARY KEY (id);
ALTER TABLE ONLY oauth_grants
    ADD CONSTRAINT oauth_grants_client_id_fkey FOREIGN KEY (client_id) REFERENCES oauth_clients(id);
CREATE INDEX oauth_grants_of_account ON oauth_grants USING btree (account_id);
CREATE INDEX oauth_grants_of_client ON oauth_grants USING btree (client_id);
CREATE INDEX oauth_grants_of_tenant ON oauth_grants USING btree (tenant_id, client_id);
CREATE INDEX oauth_grants_over ON oauth_grants USING btree (LEAST(expires_at, ended_at));
ALTER TABLE oauth_grants ENABLE ROW LEVEL SECURITY;

-- oauth_refresh_tokens ------------------------------------------------------------------------------------------------

CREATE TABLE oauth_refresh_tokens (
    hash bytea NOT NULL,
    grant_id bigint NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    sealed_successor bytea,
    CONSTRAINT oauth_refresh_tokens_check CHECK (((sealed_successor IS NULL) OR (used_at IS NOT NULL))),
    CONSTRAINT oauth_refresh_tokens_hash_check CHECK ((length(hash) = 32))
);
ALTER TABLE ONLY oauth_refresh_tokens
    ADD CONSTRAINT oauth_refresh_tokens_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY oauth_refresh_tokens
    ADD CONSTRAINT oauth_refresh_tokens_grant_id_fkey FOREIGN KEY (grant_id) REFERENCES oauth_grants(id) ON DELETE CASCADE;
CREATE UNIQUE INDEX oauth_refresh_token_of_now ON oauth_refresh_tokens USING btree (grant_id) WHERE (used_at IS NULL);
CREATE INDEX oauth_refresh_tokens_of_grant ON oauth_refresh_tokens USING btree (grant_id);
CREATE INDEX oauth_refresh_tokens_over ON oauth_refresh_tokens USING btree (expires_at);
ALTER TABLE oauth_refresh_tokens ENABLE ROW LEVEL SECURITY;

-- order_catches -------------------------------------------------------------------------------------------------------

CREATE TABLE order_catches (
    shop_id bigint NOT NULL,
    until timestamp with time zone NOT NULL
);
ALTER TABLE ONLY order_catches
    ADD CONSTRAINT order_catches_pkey PRIMARY KEY (shop_id);
ALTER TABLE ONLY order_catches
    ADD CONSTRAINT order_catches_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
ALTER TABLE order_catches ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON order_catches TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT UPDATE(until) ON TABLE order_catches TO holdfast_shop;
GRANT SELECT,INSERT ON TABLE order_catches TO holdfast_shop;

-- order_draws ---------------------------------------------------------------------------------------------------------

CREATE TABLE order_draws (
    shop_id bigint NOT NULL,
    order_id bigint NOT NULL,
    line_id bigint NOT NULL,
    pool_id bigint NOT NULL,
    units_per_sale bigint NOT NULL,
    CONSTRAINT order_draws_units_per_sale_check CHECK (((units_per_sale >= 1) AND (units_per_sale <= 1000000000)))
);
ALTER TABLE ONLY order_draws
    ADD CONSTRAINT order_draws_pkey PRIMARY KEY (shop_id, order_id, line_id, pool_id);
ALTER TABLE ONLY order_draws
    ADD CONSTRAINT order_draws_shop_id_order_id_line_id_fkey FOREIGN KEY (shop_id, order_id, line_id) REFERENCES order_lines(shop_id, order_id, id);
ALTER TABLE ONLY order_draws
    ADD CONSTRAINT order_draws_shop_id_pool_id_fkey FOREIGN KEY (shop_id, pool_id) REFERENCES pools(shop_id, id);
CREATE INDEX order_draws_of_pool ON order_draws USING btree (pool_id);
ALTER TABLE order_draws ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON order_draws TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT ON TABLE order_draws TO holdfast_shop;

-- order_level_changes -------------------------------------------------------------------------------------------------

CREATE TABLE order_level_changes (
    id bigint NOT NULL,
    shop_id bigint NOT NULL,
    variant_gid text NOT NULL,
    location_gid text,
    amount bigint NOT NULL,
    not_before timestamp with time zone NOT NULL,
    received_at timestamp with time zone DEFAULT clock_timestamp() CONSTRAINT order_level_changes_told_at_not_null NOT NULL,
    CONSTRAINT order_level_changes_amount_check CHECK ((amount <> 0))
);
ALTER TABLE order_level_changes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME order_level_changes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY order_level_changes
    ADD CONSTRAINT order_level_changes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY order_level_changes
    ADD CONSTRAINT order_level_changes_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
CREATE INDEX order_level_changes_by_age ON order_level_changes USING btree (received_at);
CREATE INDEX order_level_changes_of_variant ON order_level_changes USING btree (shop_id, variant_gid);
ALTER TABLE order_level_changes ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON order_level_changes TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE order_level_changes TO holdfast_shop;

-- order_lines ---------------------------------------------------------------------------------------------------------

CREATE TABLE order_lines (
    shop_id bigint NOT NULL,
    order_id bigint NOT NULL,
    id bigint NOT NULL,
    variant_gid text NOT NULL,
    taken bigint NOT NULL,
    returned bigint DEFAULT 0 NOT NULL,
    CONSTRAINT order_lines_id_check CHECK ((id > 0)),
    CONSTRAINT order_lines_returned_check CHECK ((returned >= 0)),
    CONSTRAINT order_lines_taken_check CHECK ((taken >= 0))
);
ALTER TABLE ONLY order_lines
    ADD CONSTRAINT order_lines_pkey PRIMARY KEY (shop_id, order_id, id);
ALTER TABLE ONLY order_lines
    ADD CONSTRAINT order_lines_shop_id_order_id_fkey FOREIGN KEY (shop_id, order_id) REFERENCES orders(shop_id, id);
ALTER TABLE order_lines ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON order_lines TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT UPDATE(returned) ON TABLE order_lines TO holdfast_shop;
GRANT UPDATE(taken) ON TABLE order_lines TO holdfast_shop;
GRANT SELECT,INSERT ON TABLE order_lines TO holdfast_shop;

-- orders --------------------------------------------------------------------------------------------------------------

CREATE TABLE orders (
    shop_id bigint NOT NULL,
    id bigint NOT NULL,
    placed_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    revision bigint DEFAULT 1 NOT NULL,
    CONSTRAINT orders_id_check CHECK ((id > 0))
);
ALTER TABLE ONLY orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (shop_id, id);
ALTER TABLE ONLY orders
    ADD CONSTRAINT orders_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
CREATE INDEX orders_by_moment ON orders USING btree (shop_id, placed_at);
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON orders TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT UPDATE(revision) ON TABLE orders TO holdfast_shop;
GRANT UPDATE(updated_at) ON TABLE orders TO holdfast_shop;
GRANT SELECT,INSERT ON TABLE orders TO holdfast_shop;

-- platform_tokens -----------------------------------------------------------------------------------------------------

CREATE TABLE platform_tokens (
    shop_id bigint NOT NULL,
    sealed bytea NOT NULL,
    expires_at timestamp with time zone,
    refresh_expires_at timestamp with time zone,
    generation bigint DEFAULT 1 NOT NULL,
    leased_until timestamp with time zone
);
ALTER TABLE ONLY platform_tokens
    ADD CONSTRAINT platform_tokens_pkey PRIMARY KEY (shop_id);
ALTER TABLE ONLY platform_tokens
    ADD CONSTRAINT platform_tokens_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES installs(shop_id);
ALTER TABLE platform_tokens ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON platform_tokens TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT UPDATE(expires_at) ON TABLE platform_tokens TO holdfast_shop;
GRANT UPDATE(generation) ON TABLE platform_tokens TO holdfast_shop;
GRANT UPDATE(leased_until) ON TABLE platform_tokens TO holdfast_shop;
GRANT UPDATE(refresh_expires_at) ON TABLE platform_tokens TO holdfast_shop;
GRANT UPDATE(sealed) ON TABLE platform_tokens TO holdfast_shop;
GRANT SELECT,DELETE ON TABLE platform_tokens TO holdfast_shop;

-- pools ---------------------------------------------------------------------------------------------------------------

CREATE TABLE pools (
    id bigint NOT NULL,
    shop_id bigint NOT NULL,
    name text NOT NULL,
    unit text NOT NULL,
    on_hand bigint DEFAULT 0 NOT NULL,
    held bigint DEFAULT 0 NOT NULL,
    buffer bigint DEFAULT 0 NOT NULL,
    low_stock_at bigint,
    allow_negative boolean DEFAULT false NOT NULL,
    status pool_status DEFAULT 'active'::pool_status NOT NULL,
    version bigint NOT NULL,
    entries bigint DEFAULT 0 NOT NULL,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    policy text DEFAULT 'adopt'::text NOT NULL,
    name_key text GENERATED ALWAYS AS (lower(name)) STORED,
    status_key text GENERATED ALWAYS AS (
CASE
    WHEN (status = 'active'::pool_status) THEN 'active'::text
    WHEN (status = 'paused'::pool_status) THEN 'paused'::text
    ELSE 'archived'::text
END) STORED,
    is_low boolean GENERATED ALWAYS AS (COALESCE((GREATEST((0)::bigint, ((on_hand - held) - buffer)) <= low_stock_at), false)) STORED NOT NULL,
    CONSTRAINT pools_buffer_check CHECK ((buffer >= 0)),
    CONSTRAINT pools_held_check CHECK ((held >= 0)),
    CONSTRAINT pools_low_stock_at_check CHECK ((low_stock_at >= 0)),
    CONSTRAINT pools_name_check CHECK (((name <> ''::text) AND (name = btrim(name)) AND (length(name) <= 100))),
    CONSTRAINT pools_policy_check CHECK ((policy = ANY (ARRAY['adopt'::text, 'enforce'::text, 'flag'::text]))),
    CONSTRAINT pools_unit_check CHECK (((unit <> ''::text) AND (unit = btrim(unit)) AND (length(unit) <= 20)))
)
WITH (fillfactor='50');
ALTER TABLE pools ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME pools_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY pools
    ADD CONSTRAINT pools_pkey PRIMARY KEY (id);
ALTER TABLE ONLY pools
    ADD CONSTRAINT pools_shop_id_id_key UNIQUE (shop_id, id);
ALTER TABLE ONLY pools
    ADD CONSTRAINT pools_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
CREATE INDEX low_pools ON pools USING btree (shop_id, id) WHERE (is_low AND (status <> 'archived'::pool_status));
CREATE UNIQUE INDEX pool_names ON pools USING btree (shop_id, name_key) WHERE (status <> 'archived'::pool_status);
CREATE INDEX pools_by_parts ON pools USING gin (parts(shop_id, fold_text(name_key))) WITH (gin_pending_list_limit='512');
CREATE INDEX pools_by_status ON pools USING btree (shop_id, status_key, id);
CREATE TRIGGER forget_stamp AFTER DELETE OR UPDATE OF name, unit, buffer, low_stock_at, allow_negative, status ON pools FOR EACH ROW EXECUTE FUNCTION forget_stamp();
CREATE TRIGGER keep_pools_of_ledger AFTER DELETE ON pools REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION keep_pools_of_ledger();
CREATE TRIGGER refuse_change_of_key BEFORE UPDATE OF id, shop_id ON pools FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_key();
ALTER TABLE pools ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON pools TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT INSERT(allow_negative),UPDATE(allow_negative) ON TABLE pools TO holdfast_shop;
GRANT INSERT(buffer),UPDATE(buffer) ON TABLE pools TO holdfast_shop;
GRANT INSERT(low_stock_at),UPDATE(low_stock_at) ON TABLE pools TO holdfast_shop;
GRANT INSERT(name),UPDATE(name) ON TABLE pools TO holdfast_shop;
GRANT INSERT(policy),UPDATE(policy) ON TABLE pools TO holdfast_shop;
GRANT INSERT(shop_id) ON TABLE pools TO holdfast_shop;
GRANT UPDATE(status) ON TABLE pools TO holdfast_shop;
GRANT INSERT(unit),UPDATE(unit) ON TABLE pools TO holdfast_shop;
GRANT INSERT(version),UPDATE(version) ON TABLE pools TO holdfast_shop;
GRANT SELECT ON TABLE pools TO holdfast_shop;

-- pushes --------------------------------------------------------------------------------------------------------------

CREATE TABLE pushes (
    id bigint NOT NULL,
    shop_id bigint NOT NULL,
    key uuid DEFAULT gen_random_uuid(),
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    adjust_key uuid,
    CONSTRAINT pushes_check CHECK ((num_nonnulls(key, adjust_key) = 1))
);
ALTER TABLE pushes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME pushes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY pushes
    ADD CONSTRAINT pushes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY pushes
    ADD CONSTRAINT pushes_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
CREATE UNIQUE INDEX one_push_a_shop ON pushes USING btree (shop_id);
ALTER TABLE pushes ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON pushes TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE pushes TO holdfast_shop;

-- replay_pages --------------------------------------------------------------------------------------------------------

CREATE TABLE replay_pages (
    shop_id bigint NOT NULL,
    number integer NOT NULL,
    orders jsonb NOT NULL
);
ALTER TABLE ONLY replay_pages
    ADD CONSTRAINT replay_pages_pkey PRIMARY KEY (shop_id, number);
ALTER TABLE ONLY replay_pages
    ADD CONSTRAINT replay_pages_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
ALTER TABLE replay_pages ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON replay_pages TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE replay_pages TO holdfast_shop;

-- replays -------------------------------------------------------------------------------------------------------------

CREATE TABLE replays (
    shop_id bigint NOT NULL,
    replay_id bigint NOT NULL,
    requested_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    since timestamp with time zone NOT NULL,
    pools jsonb NOT NULL,
    cursor text DEFAULT ''::text NOT NULL,
    pages integer DEFAULT 0 NOT NULL,
    read integer DEFAULT 0 NOT NULL,
    gone_lines integer DEFAULT 0 NOT NULL,
    result jsonb,
    error text,
    CONSTRAINT replays_cursor_check CHECK ((length(cursor) <= 2000)),
    CONSTRAINT replays_error_check CHECK ((length(error) <= 1000))
);
ALTER TABLE ONLY replays
    ADD CONSTRAINT replays_pkey PRIMARY KEY (shop_id);
ALTER TABLE ONLY replays
    ADD CONSTRAINT replays_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
ALTER TABLE replays ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON replays TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE replays TO holdfast_shop;

-- sessions ------------------------------------------------------------------------------------------------------------

CREATE TABLE sessions (
    id bigint NOT NULL,
    hash bytea NOT NULL,
    account_id bigint NOT NULL,
    way text NOT NULL,
    browser text NOT NULL,
    began_at timestamp with time zone DEFAULT now() NOT NULL,
    seen_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT sessions_browser_check CHECK ((length(browser) <= 300)),
    CONSTRAINT sessions_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT sessions_way_check CHECK ((way = ANY (ARRAY['link'::text, 'password'::text, 'platform'::text])))
);
ALTER TABLE sessions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sessions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY sessions
    ADD CONSTRAINT sessions_hash_key UNIQUE (hash);
ALTER TABLE ONLY sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);
CREATE INDEX sessions_by_age ON sessions USING btree (seen_at);
CREATE INDEX sessions_of_account ON sessions USING btree (account_id, id);
ALTER TABLE sessions ENABLE ROW LEVEL SECURITY;

-- settable_locations --------------------------------------------------------------------------------------------------

GRANT SELECT ON TABLE settable_locations TO holdfast_shop;

-- shared_inventories --------------------------------------------------------------------------------------------------

CREATE TABLE shared_inventories (
    id bigint NOT NULL,
    shop_id bigint NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    entries bigint DEFAULT 0 NOT NULL,
    stamp bigint
);
ALTER TABLE shared_inventories ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME shared_inventories_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY shared_inventories
    ADD CONSTRAINT shared_inventories_pkey PRIMARY KEY (id);
ALTER TABLE ONLY shared_inventories
    ADD CONSTRAINT shared_inventories_shop_id_key UNIQUE (shop_id);
ALTER TABLE ONLY shared_inventories
    ADD CONSTRAINT shared_inventories_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
ALTER TABLE shared_inventories ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON shared_inventories TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT UPDATE(entries) ON TABLE shared_inventories TO holdfast_shop;
GRANT UPDATE(stamp) ON TABLE shared_inventories TO holdfast_shop;
GRANT UPDATE(version) ON TABLE shared_inventories TO holdfast_shop;
GRANT SELECT ON TABLE shared_inventories TO holdfast_shop;

-- shops ---------------------------------------------------------------------------------------------------------------

CREATE TABLE shops (
    id bigint NOT NULL,
    domain text NOT NULL,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT shops_domain_check CHECK ((domain ~ '^[a-z0-9][a-z0-9-]{0,59}\.myshopify\.com$'::text))
);
ALTER TABLE shops ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME shops_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY shops
    ADD CONSTRAINT shops_domain_key UNIQUE (domain);
ALTER TABLE ONLY shops
    ADD CONSTRAINT shops_pkey PRIMARY KEY (id);
ALTER TABLE shops ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON shops TO holdfast_shop USING ((id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT ON TABLE shops TO holdfast_shop;

-- sign_in_links -------------------------------------------------------------------------------------------------------

CREATE TABLE sign_in_links (
    id bigint NOT NULL,
    email text NOT NULL,
    browser bytea,
    return_to text NOT NULL,
    language text,
    asked_at timestamp with time zone DEFAULT now() NOT NULL,
    used_at timestamp with time zone,
    CONSTRAINT sign_in_links_browser_check CHECK ((length(browser) = 32)),
    CONSTRAINT sign_in_links_email_check CHECK ((length(email) <= 254)),
    CONSTRAINT sign_in_links_return_to_check CHECK ((length(return_to) <= 8000))
);
ALTER TABLE sign_in_links ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sign_in_links_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY sign_in_links
    ADD CONSTRAINT sign_in_links_pkey PRIMARY KEY (id);
CREATE INDEX sign_in_links_by_age ON sign_in_links USING btree (asked_at);
ALTER TABLE sign_in_links ENABLE ROW LEVEL SECURITY;

-- signing_keys --------------------------------------------------------------------------------------------------------

CREATE TABLE signing_keys (
    kid text NOT NULL,
    sealed bytea NOT NULL,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY signing_keys
    ADD CONSTRAINT signing_keys_pkey PRIMARY KEY (kid);
ALTER TABLE signing_keys ENABLE ROW LEVEL SECURITY;

-- stopped_mails -------------------------------------------------------------------------------------------------------

CREATE TABLE stopped_mails (
    mailbox bytea NOT NULL,
    stopped_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT stopped_mails_mailbox_check CHECK ((length(mailbox) = 32))
);
ALTER TABLE ONLY stopped_mails
    ADD CONSTRAINT stopped_mails_pkey PRIMARY KEY (mailbox);

-- sync_lags -----------------------------------------------------------------------------------------------------------

CREATE TABLE sync_lags (
    shop_id bigint NOT NULL,
    pushed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    seconds real NOT NULL
);
ALTER TABLE ONLY sync_lags
    ADD CONSTRAINT sync_lags_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
CREATE INDEX sync_lags_by_age ON sync_lags USING btree (pushed_at);
CREATE INDEX sync_lags_of_shop ON sync_lags USING btree (shop_id, pushed_at);
ALTER TABLE sync_lags ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON sync_lags TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE sync_lags TO holdfast_shop;

-- syncs ---------------------------------------------------------------------------------------------------------------

CREATE TABLE syncs (
    shop_id bigint NOT NULL,
    planned_version bigint DEFAULT '-1'::integer NOT NULL,
    planned_entries bigint DEFAULT 0 NOT NULL,
    planned_changes bigint DEFAULT '-1'::integer NOT NULL,
    due_at timestamp with time zone DEFAULT now(),
    leased_until timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    error text,
    numbers boolean DEFAULT false NOT NULL,
    numbers_error text,
    numbers_rest_until timestamp with time zone,
    lease_id uuid,
    CONSTRAINT syncs_error_check CHECK ((length(error) <= 1000)),
    CONSTRAINT syncs_numbers_error_check CHECK ((length(numbers_error) <= 1000))
);
ALTER TABLE ONLY syncs
    ADD CONSTRAINT syncs_pkey PRIMARY KEY (shop_id);
ALTER TABLE ONLY syncs
    ADD CONSTRAINT syncs_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
CREATE INDEX syncs_due ON syncs USING btree (due_at) WHERE (due_at IS NOT NULL);
ALTER TABLE syncs ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON syncs TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE syncs TO holdfast_shop;

-- trusted_auth_keys ---------------------------------------------------------------------------------------------------

CREATE TABLE trusted_auth_keys (
    kid text NOT NULL,
    sealed bytea NOT NULL,
    inserted_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY trusted_auth_keys
    ADD CONSTRAINT trusted_auth_keys_pkey PRIMARY KEY (kid);
ALTER TABLE trusted_auth_keys ENABLE ROW LEVEL SECURITY;

-- variants ------------------------------------------------------------------------------------------------------------

CREATE TABLE variants (
    shop_id bigint NOT NULL,
    gid text NOT NULL,
    sku text,
    title text,
    version bigint NOT NULL,
    sku_key text GENERATED ALWAYS AS (lower(sku)) STORED,
    searched text GENERATED ALWAYS AS (lower(((COALESCE(title, ''::text) || ' '::text) || COALESCE(sku, ''::text)))) STORED,
    CONSTRAINT variants_gid_check CHECK ((gid ~ '^gid://[A-Za-z0-9_-]+/ProductVariant/[0-9]{1,20}$'::text))
);
ALTER TABLE ONLY variants
    ADD CONSTRAINT variants_pkey PRIMARY KEY (shop_id, gid);
ALTER TABLE ONLY variants
    ADD CONSTRAINT variants_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
CREATE INDEX variants_by_length ON variants USING btree (shop_id, length(title), gid);
CREATE INDEX variants_by_parts ON variants USING gin (parts(shop_id, fold_text(searched))) WITH (gin_pending_list_limit='512');
CREATE INDEX variants_by_version ON variants USING btree (shop_id, version);
CREATE INDEX variants_of_sku ON variants USING btree (shop_id, sku_key) WHERE (sku_key IS NOT NULL);
ALTER TABLE variants ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON variants TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT,UPDATE ON TABLE variants TO holdfast_shop;

-- webhook_attempts ----------------------------------------------------------------------------------------------------

CREATE TABLE webhook_attempts (
    id bigint NOT NULL,
    endpoint_id bigint NOT NULL,
    message_id bigint NOT NULL,
    attempted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    status integer,
    milliseconds integer NOT NULL,
    error text,
    reason text
);
ALTER TABLE webhook_attempts ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME webhook_attempts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY webhook_attempts
    ADD CONSTRAINT webhook_attempts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY webhook_attempts
    ADD CONSTRAINT webhook_attempts_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoints(id) ON DELETE CASCADE;
ALTER TABLE ONLY webhook_attempts
    ADD CONSTRAINT webhook_attempts_message_id_fkey FOREIGN KEY (message_id) REFERENCES webhook_messages(id) ON DELETE CASCADE;
CREATE INDEX webhook_attempts_of_endpoint ON webhook_attempts USING btree (endpoint_id);
CREATE INDEX webhook_attempts_of_message ON webhook_attempts USING btree (message_id, endpoint_id, id);
ALTER TABLE webhook_attempts ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON webhook_attempts TO holdfast_shop USING ((endpoint_id IN ( SELECT webhook_endpoints.id
   FROM webhook_endpoints)));
GRANT SELECT ON TABLE webhook_attempts TO holdfast_shop;

-- webhook_deliveries --------------------------------------------------------------------------------------------------

CREATE TABLE webhook_deliveries (
    subject_id bigint NOT NULL,
    number bigint NOT NULL,
    endpoint_id bigint NOT NULL,
    message_id bigint NOT NULL,
    status text DEFAULT 'waiting'::text NOT NULL,
    due_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    ended_at timestamp with time zone,
    early_attempts smallint DEFAULT 0 NOT NULL,
    CONSTRAINT ends_once CHECK (((status = 'waiting'::text) = (ended_at IS NULL))),
    CONSTRAINT is_due_while_it_waits CHECK (((due_at IS NULL) OR (status = 'waiting'::text))),
    CONSTRAINT webhook_deliveries_status_check CHECK ((status = ANY (ARRAY['waiting'::text, 'delivered'::text, 'failed'::text])))
);
ALTER TABLE ONLY webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (subject_id, number);
ALTER TABLE ONLY webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoints(id) ON DELETE CASCADE;
ALTER TABLE ONLY webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_message_id_fkey FOREIGN KEY (message_id) REFERENCES webhook_messages(id) ON DELETE CASCADE;
ALTER TABLE ONLY webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_subject_id_fkey FOREIGN KEY (subject_id) REFERENCES webhook_subjects(id) ON DELETE CASCADE;
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries USING btree (endpoint_id, message_id) WHERE (status = 'failed'::text);
CREATE INDEX webhook_deliveries_not_ended ON webhook_deliveries USING btree (endpoint_id, due_at) WHERE (status = 'waiting'::text);
CREATE UNIQUE INDEX webhook_deliveries_of_endpoint ON webhook_deliveries USING btree (endpoint_id, message_id);
CREATE INDEX webhook_deliveries_of_message ON webhook_deliveries USING btree (message_id);
CREATE INDEX webhook_deliveries_retried ON webhook_deliveries USING btree (endpoint_id, message_id) WHERE ((status = 'waiting'::text) AND (attempts > 1) AND (early_attempts < 5));
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries USING btree (subject_id, number) WHERE (status = 'waiting'::text);
ALTER TABLE webhook_deliveries ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON webhook_deliveries TO holdfast_shop USING ((endpoint_id IN ( SELECT webhook_endpoints.id
   FROM webhook_endpoints)));
GRANT SELECT,UPDATE ON TABLE webhook_deliveries TO holdfast_shop;

-- webhook_endpoints ---------------------------------------------------------------------------------------------------

CREATE TABLE webhook_endpoints (
    id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    url text NOT NULL,
    types text[] NOT NULL,
    is_ordered boolean NOT NULL,
    status text DEFAULT 'active'::text NOT NULL,
    sealed bytea NOT NULL,
    language text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    failing_since timestamp with time zone,
    failures integer DEFAULT 0 NOT NULL,
    is_slow boolean DEFAULT false NOT NULL,
    next_due_at timestamp with time zone,
    leased_until timestamp with time zone DEFAULT now() NOT NULL,
    lease_id uuid,
    attempts integer DEFAULT 0 NOT NULL,
    CONSTRAINT webhook_endpoints_language_check CHECK ((length(language) <= 10)),
    CONSTRAINT webhook_endpoints_status_check CHECK ((status = ANY (ARRAY['active'::text, 'paused'::text, 'failing'::text]))),
    CONSTRAINT webhook_endpoints_types_check CHECK ((cardinality(types) <= 100)),
    CONSTRAINT webhook_endpoints_url_check CHECK ((length(url) <= 2000))
);
ALTER TABLE webhook_endpoints ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME webhook_endpoints_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (id);
ALTER TABLE ONLY webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES shops(id);
CREATE INDEX webhook_endpoints_due ON webhook_endpoints USING btree (next_due_at) WHERE ((status = 'active'::text) AND (next_due_at IS NOT NULL));
CREATE INDEX webhook_endpoints_leased ON webhook_endpoints USING btree (tenant_id) WHERE (lease_id IS NOT NULL);
CREATE INDEX webhook_endpoints_of_tenant ON webhook_endpoints USING btree (tenant_id);
CREATE TRIGGER mail_failing_webhook AFTER UPDATE OF status ON webhook_endpoints FOR EACH ROW WHEN (((new.status = 'failing'::text) AND (old.status <> 'failing'::text))) EXECUTE FUNCTION mail_failing_webhook();
ALTER TABLE webhook_endpoints ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON webhook_endpoints TO holdfast_shop USING ((tenant_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE webhook_endpoints TO holdfast_shop;

-- webhook_messages ----------------------------------------------------------------------------------------------------

CREATE TABLE webhook_messages (
    id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    endpoint_id bigint,
    type text NOT NULL,
    subject text NOT NULL,
    data jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    is_fanned_out boolean DEFAULT false NOT NULL
);
ALTER TABLE webhook_messages ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME webhook_messages_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY webhook_messages
    ADD CONSTRAINT webhook_messages_pkey PRIMARY KEY (id);
ALTER TABLE ONLY webhook_messages
    ADD CONSTRAINT webhook_messages_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoints(id) ON DELETE CASCADE;
CREATE INDEX webhook_messages_by_age ON webhook_messages USING btree (created_at);
CREATE INDEX webhook_messages_new ON webhook_messages USING btree (tenant_id, id) WHERE (NOT is_fanned_out);
CREATE INDEX webhook_messages_of_endpoint ON webhook_messages USING btree (endpoint_id) WHERE (endpoint_id IS NOT NULL);
CREATE INDEX webhook_messages_of_tenant ON webhook_messages USING btree (tenant_id, created_at);
ALTER TABLE webhook_messages ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON webhook_messages TO holdfast_shop USING ((tenant_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT,INSERT ON TABLE webhook_messages TO holdfast_shop;

-- webhook_subjects ----------------------------------------------------------------------------------------------------

CREATE TABLE webhook_subjects (
    id bigint NOT NULL,
    endpoint_id bigint NOT NULL,
    subject text NOT NULL,
    last_number bigint NOT NULL
);
ALTER TABLE webhook_subjects ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME webhook_subjects_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY webhook_subjects
    ADD CONSTRAINT webhook_subjects_endpoint_id_subject_key UNIQUE (endpoint_id, subject);
ALTER TABLE ONLY webhook_subjects
    ADD CONSTRAINT webhook_subjects_pkey PRIMARY KEY (id);
ALTER TABLE ONLY webhook_subjects
    ADD CONSTRAINT webhook_subjects_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoints(id) ON DELETE CASCADE;
ALTER TABLE webhook_subjects ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON webhook_subjects TO holdfast_shop USING ((endpoint_id IN ( SELECT webhook_endpoints.id
   FROM webhook_endpoints)));

-- webhooks ------------------------------------------------------------------------------------------------------------

CREATE TABLE webhooks (
    id bigint NOT NULL,
    shop_id bigint NOT NULL,
    webhook_id text NOT NULL,
    event_id text,
    topic text NOT NULL,
    triggered_at timestamp with time zone,
    payload bytea,
    received_at timestamp with time zone DEFAULT now() NOT NULL,
    handled_at timestamp with time zone,
    due_at timestamp with time zone DEFAULT now(),
    attempts integer DEFAULT 0 NOT NULL,
    error text,
    lease_id uuid,
    CONSTRAINT webhooks_check CHECK (((handled_at IS NULL) OR ((due_at IS NULL) AND (payload IS NULL)))),
    CONSTRAINT webhooks_event_id_check CHECK ((length(event_id) <= 100)),
    CONSTRAINT webhooks_webhook_id_check CHECK (((length(webhook_id) >= 1) AND (length(webhook_id) <= 100)))
)
WITH (fillfactor='70');
ALTER TABLE webhooks ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME webhooks_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (id);
ALTER TABLE ONLY webhooks
    ADD CONSTRAINT webhooks_shop_id_webhook_id_key UNIQUE (shop_id, webhook_id);
ALTER TABLE ONLY webhooks
    ADD CONSTRAINT webhooks_shop_id_fkey FOREIGN KEY (shop_id) REFERENCES shops(id);
CREATE INDEX webhooks_due ON webhooks USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX webhooks_handled ON webhooks USING btree (handled_at) WHERE (handled_at IS NOT NULL);
CREATE INDEX webhooks_parked ON webhooks USING btree (id) WHERE ((due_at IS NULL) AND (handled_at IS NULL));
ALTER TABLE webhooks ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_shop ON webhooks TO holdfast_shop USING ((shop_id = ( SELECT current_shop() AS current_shop)));
GRANT SELECT(attempts) ON TABLE webhooks TO holdfast_shop;
GRANT SELECT(due_at) ON TABLE webhooks TO holdfast_shop;
GRANT SELECT(error) ON TABLE webhooks TO holdfast_shop;
GRANT SELECT(handled_at) ON TABLE webhooks TO holdfast_shop;
GRANT SELECT(id) ON TABLE webhooks TO holdfast_shop;
GRANT SELECT(lease_id),UPDATE(lease_id) ON TABLE webhooks TO holdfast_shop;
GRANT SELECT(received_at) ON TABLE webhooks TO holdfast_shop;
GRANT SELECT(shop_id) ON TABLE webhooks TO holdfast_shop;
GRANT SELECT(topic) ON TABLE webhooks TO holdfast_shop;
GRANT SELECT(triggered_at) ON TABLE webhooks TO holdfast_shop;
