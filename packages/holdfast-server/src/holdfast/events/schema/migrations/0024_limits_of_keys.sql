-- The limit of a key goes with it.
alter table agent_limits add foreign key (key_id) references api_keys on delete cascade;
