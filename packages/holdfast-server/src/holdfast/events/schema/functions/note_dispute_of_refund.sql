-- Whether a new refund waits for the end of a dispute.
create or replace function note_dispute_of_refund() returns trigger language plpgsql as $$
begin
    new.awaits_dispute = coalesce(
        (select blocked_by_dispute(intent_id) = 'open' from payments where id = new.payment_id), false);
    return new;
end $$;

create or replace trigger note_dispute_of_refund before insert on refunds
    for each row execute function note_dispute_of_refund();
