-- The ledger stays append-only for as long as its shop is there. When the platform asks to delete a shop, it goes too.
create or replace function refuse_change() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and tg_level = 'ROW' then
        if exists (select from installs where shop_id = old.shop_id and redacted_at is not null) then
            return old;
        end if;
    end if;
    raise exception 'the ledger is append-only' using errcode = 'integrity_constraint_violation';
end $$;

create or replace trigger append_only before update or truncate on ledger
    for each statement execute function refuse_change();
create or replace trigger kept_with_its_shop before delete on ledger
    for each row execute function refuse_change();
