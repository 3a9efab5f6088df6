-- Writes the commitments themselves into what is to be logged of visitors who arrived with an account, instead of accounts
-- and nonces. They name the public ids of that time. So this comes before an account gets another public id, loses its
-- registrations to another account, or is erased.
create or replace function hide_pending_arrivals(account bigint) returns void language sql as $$
    update log_pending
       set user_ids = null, nonces = array_fill(null::uuid, array[cardinality(user_ids)]),
           visitor_ids = array(
               select person_commitment('event ' || logs.event_id, coalesce(registrations.logged_as, users.public_id),
                                        arrived.nonce)
                 from unnest(user_ids, nonces) with ordinality as arrived (user_id, nonce, place)
                 left join users on users.id = arrived.user_id
                 left join registrations on (registrations.event_id, registrations.user_id)
                                          = (logs.event_id, arrived.user_id)
                order by place)
      from logs
     where logs.id = log_id and user_ids @> array[account]
$$;
