-- What agents did to pools and their variants. What they did to stock is in the ledger.
create table agent_actions (
    id          bigint generated always as identity primary key,
    shop_id     bigint not null references shops,
    key_id      bigint not null,
    agent_name  text check (length(agent_name) between 1 and 300),
    operation   text not null,
    pool_id     bigint,
    number      bigint check (number >= 0),
    done_at     timestamptz not null default now()
);
comment on table agent_actions is
    'Changes of pools and variants that agents made. Of a key or a pool only the id is kept. Kept for 90 days.';
comment on column agent_actions.agent_name is 'What its program called itself; null: nothing.';
comment on column agent_actions.number is 'Of the variants it was about, or of the rows of a spreadsheet.';
create index agent_actions_of_shop on agent_actions (shop_id, id);
create index agent_actions_over on agent_actions (done_at);
alter table agent_actions enable row level security;
create policy own_shop on agent_actions to holdfast_shop using (shop_id = (select current_shop()));
grant select, insert on agent_actions to holdfast_shop;
