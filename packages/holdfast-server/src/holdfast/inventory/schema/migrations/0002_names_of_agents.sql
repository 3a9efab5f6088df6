-- The name that the program of an agent gives itself. All agents of a shop share its key, so only this tells them apart.
alter table ledger add column agent_name text check (length(agent_name) <= 64);
comment on column ledger.agent_name is 'What the program of an agent calls itself; null: not stated.';
