"""Checks of the PostgreSQL server: its version, the rights of the user, what it would lose, connections, its clock."""

from typing import Any

from psycopg import errors

from holdfast.kit.environment.logs import first_line
from holdfast.kit.process.checks.check_list import CheckList, Fault, duration
from holdfast.kit.process.checks.inspection import Inspection
from holdfast.kit.process.database_health import MAX_CLOCK_DIFFERENCE_SECONDS

CHECKS = CheckList()

CHECKS.query(
    "server",
    """
    select current_setting('server_version_num')::int / 10000 as number, current_setting('server_encoding') as encoding,
           split_part(current_setting('server_version'), ' ', 1) as version, pg_is_in_recovery() as is_standby,
           (select reset_val = 'on' from pg_settings where name = 'default_transaction_read_only') as is_read_only
    """,
    Fault("number < 15", "PostgreSQL {version} is too old.", "Upgrade the server to PostgreSQL 15, 16, 17 or 18."),
    Fault(
        "number > 18",
        "Holdfast was not tried with PostgreSQL {version}.",
        "Use PostgreSQL 15, 16, 17 or 18 for the service.",
        status="warning",
    ),
    Fault(
        "encoding <> 'UTF8'",
        "The database has the encoding {encoding}: texts in many languages cannot be stored.",
        "Make a new database with: createdb --encoding=UTF8 --template=template0 NAME; then restore a dump.",
    ),
    Fault(
        "is_standby",
        "{database_url} names a standby, which takes no changes.",
        "Name all servers in {database_url}, and add target_session_attrs=read-write to it.",
    ),
    Fault(
        "is_read_only and not is_standby",
        "The database takes no changes: default_transaction_read_only is on.",
        "As its owner, run: alter database NAME reset default_transaction_read_only; also for the role.",
    ),
    ok="PostgreSQL {version}, encoding {encoding}.",
)

CHECKS.query(
    "rights",
    """
    select current_user as user, has_schema_privilege('public', 'create') as may_create,
           (select min(relname) from pg_class
             where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v')
               and not pg_has_role(current_user, relowner, 'member')) as foreign_table,
           exists (select from pg_roles where rolname = 'holdfast_shop') as has_role,
           exists (select from pg_roles
                    where rolname = 'holdfast_shop' and pg_has_role(current_user, oid, 'member')) as is_member,
           to_regclass('migrations') is null
               and exists (select from pg_roles
                            where rolname = current_user and (rolcreaterole or rolsuper)) as migration_makes_role
    """,
    Fault(
        "not may_create",
        "The user {user} may not make tables, so migrations fail.",
        "As the owner of the database, run: grant create on schema public to {user};",
    ),
    Fault(
        "foreign_table is not null",
        "The table {foreign_table} does not belong to the user {user}, so migrations fail.",
        "As a superuser, run in the database: reassign owned by OTHER to {user};",
    ),
    Fault(
        "%(has_tenants)s and not has_role and migration_makes_role",
        "The role holdfast_shop is missing: every request of a shop fails.",
        "Run: holdfast {service} migrate, which makes it.",
    ),
    Fault(
        "%(has_tenants)s and not has_role and not migration_makes_role",
        "The role holdfast_shop is missing: every request of a shop fails.",
        "As a user with CREATEROLE, run: create role holdfast_shop nologin; grant holdfast_shop to {user};",
    ),
    Fault(
        "%(has_tenants)s and has_role and not is_member",
        "The user {user} is not a member of the role holdfast_shop: every request of a shop fails.",
        "As a user with CREATEROLE, run: grant holdfast_shop to {user};",
    ),
    ok="The user {user} may do what the service needs.",
)

CHECKS.query(
    "durability",
    """
    select * from (values ('fsync', 'A crash of its machine can destroy all data.'),
                          ('full_page_writes', 'A crash of its machine can destroy tables.'),
                          ('synchronous_commit', 'A crash loses what was confirmed in the last moments.'))
                      as settings (name, loss)
     where current_setting(name) = 'off'
    """,
    Fault(
        "true",
        "PostgreSQL has {name} = off. {loss}",
        "As a superuser, run: alter system set {name} = on; select pg_reload_conf(); and remove {name} from settings "
        "of the database and the role.",
    ),
    ok="PostgreSQL keeps what it has confirmed.",
)


@CHECKS.point("disk")
async def check_disk(inspection: Inspection[Any]) -> None:
    """Whether PostgreSQL can write files. A query that has too little memory writes 8 MB, and removes them again."""
    database = inspection.database
    try:
        await database.value("select set_config('work_mem', '64kB', false), set_config('temp_tablespaces', '', false)")
        await database.value("select count(*) from generate_series(1, 600000) as number")
    except errors.DiskFull as error:
        inspection.wrong(
            f"The disk of PostgreSQL is full, so changes are refused with 503: {first_line(error)}.",
            "Make the disk larger, or delete what does not belong to PostgreSQL on it; never delete files in its "
            "own directory. If write-ahead log fills it (pg_wal), see which standby or archive it waits for: "
            "select * from pg_replication_slots; select * from pg_stat_archiver;",
        )
    except errors.ConfigurationLimitExceeded:
        inspection.skipped("temp_file_limit of PostgreSQL allows no files")
    inspection.ok("PostgreSQL can write files.")


# A process has 5 connections beside those for requests: notices, jobs, mails, leaders (docs/deploy/many-processes.md).
CHECKS.query(
    "connections",
    """
    select least(current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
                 - coalesce(current_setting('reserved_connections', true), '0')::int,
                 nullif((select datconnlimit from pg_database where datname = current_database()), -1),
                 nullif((select rolconnlimit from pg_roles where rolname = current_user), -1)) as max,
           count(*) as used, %(pool_size)s as pool_size, %(pool_size)s + 5 as need,
           count(*) filter (where datname <> current_database() or application_name not like 'holdfast %%') as others,
           greatest(%(process_count)s, 1) as processes,
           (%(pool_size)s + 5) * greatest(%(process_count)s, 1) as need_of_all
      from pg_stat_activity where backend_type = 'client backend'
    """,
    Fault(
        "max < need",
        "PostgreSQL allows {max} connections here, and one process of the service needs up to {need}.",
        "Raise max_connections of PostgreSQL (or the limit of the database or the role), or lower DATABASE_POOL_SIZE.",
    ),
    Fault(
        "max >= need and max - others < need_of_all",
        "PostgreSQL allows {max} connections; others use {others}, and the service's "
        "{processes:1 process needs|processes need} up to {need_of_all}.",
        "Raise max_connections of PostgreSQL, or lower DATABASE_POOL_SIZE (now {pool_size}).",
        status="warning",
    ),
    ok="{used} of {max} connections are used; a process uses up to {need}.",
)


@CHECKS.point("clock")
async def check_clock(inspection: Inspection[Any]) -> None:
    await inspection.database.value("select 1")  # connects, which takes a while
    before = inspection.clock()
    now: float = await inspection.database.value("select extract(epoch from clock_timestamp())::float8")
    difference = (before + inspection.clock()) / 2 - now
    if abs(difference) > MAX_CLOCK_DIFFERENCE_SECONDS:
        direction = "ahead of" if difference > 0 else "behind"
        inspection.wrong(
            f"The clock of this machine is {duration(abs(difference))} {direction} the clock of the database.",
            "Set both clocks by NTP, on each machine: timedatectl set-ntp true",
        )
    inspection.ok(f"This machine and the database differ by {abs(difference):.1f} seconds.")


CHECKS.query(
    "standby",
    """
    select count(*) as count, max(replay_lag) as lag, current_setting('synchronous_standby_names') as names,
           case when current_setting('synchronous_commit') in ('off', 'local') then ''
                else ' Every change waits until one is.' end as effect,
           case count(*) when 0 then 'There is no standby, and commits wait for none.'
                         when 1 then '1 standby connected.' else count(*) || ' standbys connected.' end as summary
      from pg_stat_replication
    """,
    Fault(
        "names <> '' and count = 0",
        "PostgreSQL waits for a standby ({names}), and none is connected.{effect}",
        "Start the standby. To go on without it, as a superuser run: alter system set synchronous_standby_names = ''; "
        "select pg_reload_conf();",
    ),
    Fault(
        "lag > interval '1 minute'",
        "A standby is {lag} behind.",
        "Look at the network to the standby, and at its disk and log.",
        status="warning",
    ),
    ok="{summary}",
)

CHECKS.query(
    "transactions",
    """
    select (select age(datfrozenxid) from pg_database where datname = current_database()) as age,
           (select min(gid) from pg_prepared_xacts
             where database = current_database() and prepared < now() - interval '10 minutes') as prepared
    """,
    Fault(
        "age > 1000000000",
        "The oldest transaction id is {age:,} transactions old. PostgreSQL stops at 2,100,000,000.",
        "Let autovacuum run (autovacuum = on), and run now: vacuumdb --freeze --dbname=URL",
    ),
    Fault(
        "prepared is not null",
        "The prepared transaction {prepared} keeps its locks until it is ended.",
        "Run: rollback prepared '{prepared}';",
    ),
    ok="Vacuum keeps up, and no prepared transaction is left.",
)
