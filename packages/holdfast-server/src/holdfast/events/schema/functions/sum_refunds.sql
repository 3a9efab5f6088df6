-- Refunds are summed up by the database itself, so that the CHECK of payments holds whatever the code does.
create or replace function sum_refunds() returns trigger language plpgsql as $$
begin
    update payments set refunded = refunded + new.amount where id = new.payment_id;
    perform pg_notify('holdfast', 'payments ');
    return null;
end $$;

create or replace trigger sum_refunds after insert on refunds for each row execute function sum_refunds();
