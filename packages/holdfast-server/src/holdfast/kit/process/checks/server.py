"""Checks of the PostgreSQL server: its version, the rights of the user, what it would lose, connections, its clock."""

from typing import Any, LiteralString

from psycopg import errors

from holdfast.kit.environment.logs import first_line
from holdfast.kit.postgres.database import Reader
from holdfast.kit.process.checks.inspection import Finding, Findings, Inspection, duration, ok, skipped, warning, wrong

SUPPORTED_VERSIONS = range(15, 19)

EXTRA_CONNECTIONS = 5
"""Connections of a process beside those for requests: notices, jobs, mails, leaders (docs/deploy/many-processes.md)."""

DURABLE: dict[str, tuple[str, str]] = {
    "fsync": ("on", "A crash of its machine can destroy all data."),
    "full_page_writes": ("on", "A crash of its machine can destroy tables."),
    "synchronous_commit": ("off", "A crash loses what was confirmed in the last moments."),
}
"""Settings of PostgreSQL with what they must be (for synchronous_commit: must not be), and what is lost otherwise."""

MAX_TRANSACTION_AGE = 1_000_000_000
"""Transactions since the oldest one that is not frozen. PostgreSQL stops at 2,100 million."""

MAX_LAG_SECONDS = 60


async def check_server(inspection: Inspection[Any], reader: Reader[None]) -> Findings:
    """The version and the encoding, and whether the server takes changes."""
    [(number, version, encoding, is_standby, read_only)] = await reader.tuples(
        """
        select current_setting('server_version_num')::int, split_part(current_setting('server_version'), ' ', 1),
               current_setting('server_encoding'), pg_is_in_recovery(),
               (select reset_val = 'on' from pg_settings where name = 'default_transaction_read_only')
        """
    )
    variable = inspection.variable("database_url")
    findings = list[Finding]()
    if number // 10_000 < SUPPORTED_VERSIONS.start:
        findings.append(
            wrong(f"PostgreSQL {version} is too old.", "Upgrade the server to PostgreSQL 15, 16, 17 or 18.")
        )
    if number // 10_000 >= SUPPORTED_VERSIONS.stop:
        findings.append(
            warning(
                f"Holdfast was not tried with PostgreSQL {version}.", "Use PostgreSQL 15, 16, 17 or 18 for the service."
            )
        )
    if encoding != "UTF8":
        findings.append(
            wrong(
                f"The database has the encoding {encoding}: texts in many languages cannot be stored.",
                "Make a new database with: createdb --encoding=UTF8 --template=template0 NAME; then restore a dump.",
            )
        )
    if is_standby:
        findings.append(
            wrong(
                f"{variable} names a standby, which takes no changes.",
                f"Name all servers in {variable}, and add target_session_attrs=read-write to it.",
            )
        )
    elif read_only:
        findings.append(
            wrong(
                "The database takes no changes: default_transaction_read_only is on.",
                "As its owner, run: alter database NAME reset default_transaction_read_only; also for the role.",
            )
        )
    return findings or [ok(f"PostgreSQL {version}, encoding {encoding}.")]


async def check_rights(inspection: Inspection[Any], reader: Reader[None]) -> Findings:
    """The rights that migrations and the service need."""
    user, may_create, role_exists, is_member, is_made_by_migration = (
        await reader.tuples(
            """
            select current_user, has_schema_privilege('public', 'create'),
                   exists (select from pg_roles where rolname = 'holdfast_shop'),
                   exists (select from pg_roles
                            where rolname = 'holdfast_shop' and pg_has_role(current_user, oid, 'member')),
                   to_regclass('migrations') is null
                       and exists (select from pg_roles where rolname = current_user and (rolcreaterole or rolsuper))
            """
        )
    )[0]
    others = await reader.tuples(
        """
        select relname from pg_class
         where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v')
           and not pg_has_role(current_user, relowner, 'member')
         order by relname limit 1
        """
    )
    findings = list[Finding]()
    if not may_create:
        findings.append(
            wrong(
                f"The user {user} may not make tables, so migrations fail.",
                f"As the owner of the database, run: grant create on schema public to {user};",
            )
        )
    if others:
        findings.append(
            wrong(
                f"The table {others[0][0]} does not belong to the user {user}, so migrations fail.",
                f"As a superuser, run in the database: reassign owned by OTHER to {user};",
            )
        )
    if inspection.product.tenancy is not None and not role_exists:
        findings.append(
            wrong(
                "The role holdfast_shop is missing: every request of a shop fails.",
                f"Run: holdfast {inspection.name} migrate, which makes it."
                if is_made_by_migration
                else "As a user with CREATEROLE, run: create role holdfast_shop nologin; "
                f"grant holdfast_shop to {user};",
            )
        )
    elif inspection.product.tenancy is not None and not is_member:
        findings.append(
            wrong(
                f"The user {user} is not a member of the role holdfast_shop: every request of a shop fails.",
                f"As a user with CREATEROLE, run: grant holdfast_shop to {user};",
            )
        )
    return findings or [ok(f"The user {user} may do what the service needs.")]


async def check_durability(_: Inspection[Any], reader: Reader[None]) -> Findings:
    """The settings by which PostgreSQL would lose what it confirmed."""
    values: dict[str, str] = dict(
        await reader.tuples(
            "select name, setting from pg_settings where name = any(%(names)s)", {"names": list(DURABLE)}
        )
    )
    findings = list[Finding]()
    for name, (value, loss) in DURABLE.items():
        is_wrong = values[name] == value if name == "synchronous_commit" else values[name] != value
        if is_wrong:
            findings.append(
                wrong(
                    f"PostgreSQL has {name} = {values[name]}. {loss}",
                    f"As a superuser, run: alter system set {name} = on; select pg_reload_conf(); "
                    f"and remove {name} from settings of the database and the role.",
                )
            )
    return findings or [ok("PostgreSQL keeps what it has confirmed.")]


async def check_disk(_: Inspection[Any], reader: Reader[None]) -> Findings:
    """Whether PostgreSQL can write files. A query that has too little memory writes some, and changes nothing."""
    try:
        await reader.value(SET_SPILL)
        await reader.value(SPILL)
    except errors.DiskFull as error:
        return [
            wrong(
                f"The disk of PostgreSQL is full, so changes are refused with 503: {first_line(error)}.",
                "Make the disk larger, or delete what does not belong to PostgreSQL on it; never delete files in its "
                "own directory. If write-ahead log fills it (pg_wal), see which standby or archive it waits for: "
                "select * from pg_replication_slots; select * from pg_stat_archiver;",
            )
        ]
    except errors.ConfigurationLimitExceeded:
        return [skipped("temp_file_limit of PostgreSQL allows no files")]
    return [ok("PostgreSQL can write files.")]


SET_SPILL: LiteralString = "select set_config('work_mem', '64kB', false), set_config('temp_tablespaces', '', false)"

SPILL: LiteralString = "select count(*) from generate_series(1, 600000) as number"
"""A query that writes 8 MB to the disk of the database, and removes it again. Its result is kept in a file."""


async def check_connections(inspection: Inspection[Any], reader: Reader[None]) -> Findings:
    """Whether PostgreSQL has connections left for the processes of the service."""
    limit, used, of_service = (await reader.tuples(CONNECTIONS))[0]
    need = inspection.settings.pool_size + EXTRA_CONNECTIONS
    processes = inspection.process_count or 1
    wants = need * processes
    pool = inspection.variable("pool_size")
    if limit < need:
        return [
            wrong(
                f"PostgreSQL allows {limit} connections here, and one process of the service needs up to {need}.",
                f"Raise max_connections of PostgreSQL (or the limit of the database or the role), or lower {pool}.",
            )
        ]
    others = used - of_service
    if wants > limit - others:
        text = "1 process needs" if processes == 1 else f"{processes} processes need"
        return [
            warning(
                f"PostgreSQL allows {limit} connections; others use {others}, and the service's {text} up to {wants}.",
                f"Raise max_connections of PostgreSQL, or lower {pool} (now {inspection.settings.pool_size}).",
            )
        ]
    return [ok(f"{used} of {limit} connections are used; a process uses up to {need}.")]


CONNECTIONS: LiteralString = """
    select least(current_setting('max_connections')::int
                 - current_setting('superuser_reserved_connections')::int
                 - coalesce(current_setting('reserved_connections', true), '0')::int,
                 nullif((select datconnlimit from pg_database where datname = current_database()), -1),
                 nullif((select rolconnlimit from pg_roles where rolname = current_user), -1)),
           (select count(*)::int from pg_stat_activity where backend_type = 'client backend'),
           (select count(*)::int from pg_stat_activity
             where datname = current_database() and application_name like 'holdfast %')
"""


async def check_clock(inspection: Inspection[Any], reader: Reader[None]) -> Findings:
    """Whether the clock of this machine agrees with that of the database."""
    before = inspection.clock()
    now: float = await reader.value("select extract(epoch from clock_timestamp())::float8")
    difference = (before + inspection.clock()) / 2 - now
    if abs(difference) <= inspection.limits.max_clock_difference:
        return [ok(f"This machine and the database differ by {abs(difference):.1f} seconds.")]
    direction = "ahead of" if difference > 0 else "behind"
    return [
        wrong(
            f"The clock of this machine is {duration(abs(difference))} {direction} the clock of the database.",
            "Set both clocks by NTP, on each machine: timedatectl set-ntp true",
        )
    ]


async def check_standby(_: Inspection[Any], reader: Reader[None]) -> Findings:
    """Whether the standbys that commits wait for are connected, and how far they are behind."""
    standby_names, commit, count, lag = (
        await reader.tuples(
            """
            select current_setting('synchronous_standby_names'), current_setting('synchronous_commit'),
                   (select count(*) from pg_stat_replication),
                   (select extract(epoch from max(replay_lag))::float8 from pg_stat_replication)
            """
        )
    )[0]
    if standby_names and not count:
        waits = commit not in {"off", "local"}
        return [
            wrong(
                f"PostgreSQL waits for a standby ({standby_names}), and none is connected."
                + (" Every change waits until one is." if waits else ""),
                "Start the standby. To go on without it, as a superuser run: alter system set "
                "synchronous_standby_names = ''; select pg_reload_conf();",
            )
        ]
    if lag and lag > MAX_LAG_SECONDS:
        return [
            warning(
                f"A standby is {duration(lag)} behind.",
                "Look at the network to the standby, and at its disk and log.",
            )
        ]
    if count:
        return [ok(f"{count} standby connected." if count == 1 else f"{count} standbys connected.")]
    return [ok("There is no standby, and commits wait for none.")]


async def check_transactions(_: Inspection[Any], reader: Reader[None]) -> Findings:
    """Whether vacuum keeps up, and whether a transaction is left open."""
    age, prepared = (
        await reader.tuples(
            """
            select (select age(datfrozenxid) from pg_database where datname = current_database()),
                   (select min(gid) from pg_prepared_xacts
                     where database = current_database() and prepared < now() - interval '10 minutes')
            """
        )
    )[0]
    findings = list[Finding]()
    if age > MAX_TRANSACTION_AGE:
        findings.append(
            wrong(
                f"The oldest transaction id is {age:,} transactions old. PostgreSQL stops at 2,100,000,000.",
                "Let autovacuum run (autovacuum = on), and run now: vacuumdb --freeze --dbname=URL",
            )
        )
    if prepared:
        findings.append(
            wrong(
                f"The prepared transaction {prepared} keeps its locks until it is ended.",
                f"Run: rollback prepared '{prepared}';",
            )
        )
    return findings or [ok("Vacuum keeps up, and no prepared transaction is left.")]
