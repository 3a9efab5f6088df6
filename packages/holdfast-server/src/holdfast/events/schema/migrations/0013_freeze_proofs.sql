-- When witnesses cosigned that the list of a draw was frozen (docs/events/fairness.md).

create table freeze_proofs (
    log_id       bigint primary key references logs on delete cascade,
    size         bigint not null check (size > 0),
    proof        text not null,
    witnesses    text[] not null,
    cosigned_at  timestamptz[] not null,
    constraint each_witness_has_a_time check (
        cardinality(witnesses) > 0 and cardinality(witnesses) = cardinality(cosigned_at))
);
comment on table freeze_proofs is
    'For each log with a freeze: the proof that a head with it is in the head log, as witnesses cosigned that before the round.';
comment on column freeze_proofs.size is 'The number of entries of the log in that head.';
