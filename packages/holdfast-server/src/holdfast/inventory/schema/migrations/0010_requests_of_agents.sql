-- The requests of a key go with it. A transaction of a shop stores what its agents ask for.
alter table agent_requests add foreign key (key_id) references api_keys on delete cascade;
alter table agent_requests enable row level security;
create policy own_shop on agent_requests to holdfast_shop using (tenant_id = (select current_shop()));
grant select, insert, update on agent_requests to holdfast_shop;
