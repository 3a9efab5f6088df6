-- When API keys were used, noted at most once an hour.

alter table api_keys add used_at timestamptz;
comment on column api_keys.used_at is 'Noted when the key is looked up, at most once an hour.';
