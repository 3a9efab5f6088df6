-- What a log says of a draw that is to come: the chain and the round of the beacon, and when entries close.
create or replace function named_draw(draw_at timestamptz, draw_round bigint) returns jsonb language sql stable as $$
    select jsonb_build_object('chain', '52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971',
                              'round', draw_round, 'at', log_time(draw_at))
$$;
