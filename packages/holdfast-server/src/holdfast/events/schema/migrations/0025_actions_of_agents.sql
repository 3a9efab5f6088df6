-- What agents did for an organizer, so that it can read what they did and undo it.
create table agent_actions (
    id bigint generated always as identity primary key,
    organizer_id bigint not null,
    by_key_id bigint,
    by_grant_id bigint,
    agent_name text check (length(agent_name) between 1 and 300),
    operation text not null,
    event_id bigint,
    queue_id bigint,
    user_id bigint,
    key_id bigint,
    done_at timestamptz not null default now(),
    constraint one_credential_did_it check (num_nonnulls(by_key_id, by_grant_id) = 1)
);
comment on table agent_actions is
    'Changes that agents made. The ids are no foreign keys: an action must not wait for a locked event, and is read
    after a key or an app is gone. Kept for 90 days.';
comment on column agent_actions.agent_name is 'The name of the key or the app then; null: it has none.';
create index agent_actions_of_organizer on agent_actions (organizer_id, id);
create index agent_actions_over on agent_actions (done_at);
