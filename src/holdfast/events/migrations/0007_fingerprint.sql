-- The hash of what a request asks for is its fingerprint.
alter table idempotency_answers rename column print to fingerprint;
