-- Endpoints of webhooks belong to a shop, and so does what they get. The fan-out and the sending work for all shops.
alter table webhook_endpoints add foreign key (tenant_id) references shops;

alter table webhook_endpoints enable row level security;
create policy own_shop on webhook_endpoints to holdfast_shop using (tenant_id = (select current_shop()));
alter table webhook_messages enable row level security;
create policy own_shop on webhook_messages to holdfast_shop using (tenant_id = (select current_shop()));

do $$
declare
    each text;
begin
    foreach each in array array['webhook_subjects', 'webhook_deliveries', 'webhook_attempts'] loop
        execute format('alter table %I enable row level security', each);
        -- The endpoints that the role sees are those of its shop.
        execute format('create policy own_shop on %I to holdfast_shop using (endpoint_id in (select id from webhook_endpoints))', each);
    end loop;
end $$;

grant select, insert, update, delete on webhook_endpoints to holdfast_shop;
grant select, insert on webhook_messages to holdfast_shop;
grant select, update on webhook_deliveries to holdfast_shop;
grant select on webhook_attempts to holdfast_shop;
