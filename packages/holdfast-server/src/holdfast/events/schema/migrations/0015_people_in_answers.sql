-- Who is erased is erased from the stored answers of requests with an idempotency key too (docs/decisions/0041).

alter table idempotency_answers add person text;
comment on column idempotency_answers.person is
    'The public id of the person that the answer is about; null: it is about nobody, or the person was erased.';
create index idempotency_answers_of_person on idempotency_answers (person) where person is not null;
