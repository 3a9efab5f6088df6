-- It has its owner's rights: work inside a tenant may enqueue, and sees no jobs. Such a function finds nothing that its
-- caller has put into a temporary schema.
create or replace function enqueue_task(name text, arguments jsonb, delay float8) returns bigint
    language sql security definer set search_path = pg_catalog, public, pg_temp as $$
        select (procrastinate_defer_jobs_v1(array[row(
                    'default', name, 0, null, null, arguments,
                    case when delay > 0 then now() + delay * interval '1 second' end
                )::procrastinate_job_to_defer_v1]))[1]
    $$;
