-- The króna has no minor unit: amounts in ISK are whole krónur from now on, as they are for JPY. They were hundredths of
-- it. Nobody could pay a part of a króna, so nothing that was paid is rounded.
update events
   set price = ceil(price / 100.0),
       min_price = ceil(min_price / 100.0),
       max_price = greatest(ceil(max_price / 100.0), ceil(min_price / 100.0) + 1),
       current_price = ceil(current_price / 100.0)
 where currency = 'ISK';

update price_changes
   set original_price = ceil(original_price / 100.0), new_price = ceil(new_price / 100.0)
  from events where events.id = event_id and currency = 'ISK';

update registrations
   set amount_paid = ceil(amount_paid / 100.0), amount_due = ceil(amount_due / 100.0)
  from events where events.id = event_id and currency = 'ISK';

-- What the processor was told before is not told to it again.
update payments
   set amount = ceil(amount / 100.0), fee = div(fee, 100), refunded = div(refunded, 100), kept = div(kept, 100),
       checkout = null
 where currency = 'ISK';

update refunds set amount = greatest(div(refunds.amount, 100), 1)
  from payments where payments.id = payment_id and currency = 'ISK';

update mails set arguments = arguments || jsonb_build_object('amount', div((arguments ->> 'amount')::bigint, 100))
  from events
 where arguments ? 'amount' and events.id = (arguments ->> 'event_id')::bigint and currency = 'ISK';
