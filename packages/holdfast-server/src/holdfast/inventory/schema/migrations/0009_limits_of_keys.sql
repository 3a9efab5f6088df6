-- The limit of a key goes with it. A transaction of a shop counts what its calls use, and cannot change the limit.
alter table agent_limits add foreign key (key_id) references api_keys on delete cascade;
alter table agent_limits enable row level security;
create policy own_shop on agent_limits to holdfast_shop using (tenant_id = (select current_shop()));
grant select, update (day, used, allowed) on agent_limits to holdfast_shop;
