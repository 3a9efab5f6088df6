-- Why a payment cannot be refunded: 'lost' (the bank has taken the money back for good), 'open' (a dispute is not
-- decided), or null: it can be refunded.
create or replace function blocked_by_dispute(intent text) returns text language sql stable as $$
    select max(case when state = 'lost' then 'lost' else 'open' end) from disputes
     where intent_id = intent and (state = 'lost' or (state in ('unknown', 'inquiry', 'open') and not refundable))
$$;
