-- From where an organizer was registered matters only until its address is proved, or it is erased. Its photos take nothing
-- of the share of strangers from then on.
create or replace function forget_networks() returns trigger language plpgsql as $$
begin
    new.registered_from = null;
    update photos set networks = null where organizer_id = new.id and networks is not null;
    return new;
end $$;

create or replace trigger forget_networks before update of proved_at, erased_at on users
    for each row when (old.slug is not null and coalesce(old.proved_at, old.erased_at) is null
                       and coalesce(new.proved_at, new.erased_at) is not null)
    execute function forget_networks();
