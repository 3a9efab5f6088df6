-- The requests of a key go with it.
alter table agent_requests add foreign key (key_id) references api_keys on delete cascade;
