-- A hold can be sold. A sale that an agent or a person records is a decision: like any other, it takes nothing that is not
-- there and nothing that is held for somebody else. It may take what its own hold kept, as far as that is there.

alter table holds add column sold boolean not null default false,
    add constraint sold_holds_have_ended check (released_at is not null or not sold);
comment on column holds.sold is 'Whether it ended by a sale.';
grant update (sold) on holds to holdfast_shop;

alter table ledger drop constraint nothing_is_promised_twice;
alter table ledger add constraint nothing_is_promised_twice check (
    balance_after >= held_after or (delta >= 0 and held_delta <= 0) or below_zero
    or kind in ('cancel', 'external_edit', 'reconcile')
    or (kind = 'sale' and (actor in ('platform', 'system') or (delta >= held_delta and balance_after >= 0))));
