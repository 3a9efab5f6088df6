"""Faults of databases, secrets, clocks and disks."""

from pathlib import Path

from holdfast.kit.process.checks.inspection import CheckLimits
from tests.cli.planted_faults import EVENT, SECRET, Fault

FAULTS = {
    "a wrong secret": Fault(
        "events secret",
        "The secret does not open what is stored in trusted_auth_keys.",
        "Set EVENTS_SECRET_KEY to the secret with which it was stored.",
        "insert into trusted_auth_keys (kid, sealed) values ('key', %(sealed)s)",
        {"secret_key": "another secret than that of what is stored"},
    ),
    "a secret that is not rotated to the end": Fault(
        "events secret",
        "Some of what is stored is still encrypted with EVENTS_OLD_SECRET_KEY.",
        "Run: holdfast events reseal",
        "insert into trusted_auth_keys (kid, sealed) values ('key', %(sealed)s)",
        {"secret_key": "another secret than that of what is stored", "old_secret_key": SECRET},
        status="warning",
    ),
    "a lost secret": Fault(
        "events secret",
        "events.secret is missing, and only the secret in it opens what is stored.",
        "Restore the file from the backup of the data directory, or set EVENTS_SECRET_KEY to that secret.",
        "insert into trusted_auth_keys (kid, sealed) values ('key', %(sealed)s)",
        {"secret_key": ""},
        is_bundled=True,
    ),
    "no secret for a named database": Fault(
        "inventory secret",
        "INVENTORY_DATABASE_URL is set and INVENTORY_SECRET_KEY is not.",
        "Set INVENTORY_SECRET_KEY to the secret of the service, the same on every machine.",
        settings={"secret_key": ""},
    ),
    "a secret that everybody reads": Fault(
        "events secret",
        "Every user of this machine can read ",
        "Run: chmod o= ",
        settings={"secret_key": ""},
        is_bundled=True,
        files={"events.secret": (SECRET, 0o644)},
    ),
    "a clock an hour ahead": Fault(
        "events clock",
        "The clock of this machine is 1 hour ahead of the clock of the database.",
        "timedatectl set-ntp true",
        clock=3600,
    ),
    "a missing index": Fault(
        "events schema",
        "The index events_by_date is missing.",
        "Run in the database: CREATE INDEX CONCURRENTLY events_by_date ON events USING btree (organizer_id, datetime,",
        "drop index events_by_date",
    ),
    "an index that is not valid": Fault(
        "events schema",
        "The index half_made is not valid, so it is not used.",
        "reindex index concurrently half_made;",
        "create unique index concurrently half_made on migrations ((1))",
    ),
    "a missing trigger": Fault(
        "events schema",
        "The trigger count_inserted of registrations is missing.",
        "Run in the database: CREATE TRIGGER count_inserted AFTER INSERT ON registrations",
        "drop trigger count_inserted on registrations",
    ),
    "a disabled trigger": Fault(
        "events schema",
        "The trigger count_deleted of registrations is disabled.",
        "alter table registrations enable trigger count_deleted;",
        "alter table registrations disable trigger count_deleted",
    ),
    "a missing constraint": Fault(
        "events schema",
        "The constraint no_more_seats_than_capacity of events is missing.",
        "ALTER TABLE events ADD CONSTRAINT no_more_seats_than_capacity CHECK ((registered_count <= capacity));",
        "alter table events drop constraint no_more_seats_than_capacity",
    ),
    "a missing function": Fault(
        "events schema",
        "The function registrations_containing is missing.",
        "the statement that begins with CREATE FUNCTION registrations_containing in ",
        "drop function registrations_containing",
    ),
    "row security that is off": Fault(
        "inventory schema",
        "Row-level security of the table pools is off.",
        "ALTER TABLE pools ENABLE ROW LEVEL SECURITY;",
        "alter table pools disable row level security",
    ),
    "a pending migration": Fault(
        "events migrations",
        "The database lacks 0005_look_of_organizers.sql.",
        "Run: holdfast events migrate",
        "delete from migrations where name = '0005_look_of_organizers.sql'",
    ),
    "an edited migration": Fault(
        "events migrations",
        "0003_drafts.sql: the file differs from the one that was applied under this name.",
        "Install the released version again",
        "update migrations set checksum = 'edited' where name = '0003_drafts.sql'",
    ),
    "a database of an unknown version": Fault(
        "events migrations",
        "has migrations that this version does not know (0004_lost.sql), and lacks 0004_events_by_date.sql.",
        "Start the version that made it",
        "update migrations set name = '0004_lost.sql' where name = '0004_events_by_date.sql'",
    ),
    "a migration of a newer version": Fault(
        "events migrations",
        "The database has 0999_future.sql, which this version does not know.",
        "Install the version that migrated the database",
        "insert into migrations (name, checksum) values ('0999_future.sql', '')",
        status="warning",
    ),
    "a full disk": Fault(
        "events data directory",
        " are free on the disk of ",
        "Make the disk larger",
        limits=CheckLimits(min_free_bytes=10**18),
    ),
    "a data directory that is a file": Fault(
        "inventory data directory",
        "This user may not write to ",
        "set HOLDFAST_DATA_DIR to another directory",
        settings={"data_dir": Path("/dev/null/data")},
    ),
    "changes that a crash loses": Fault(
        "events durability",
        "PostgreSQL has synchronous_commit = off. A crash loses what was confirmed in the last moments.",
        "alter system set synchronous_commit = on;",
        "alter database DATABASE set synchronous_commit = off",
    ),
    "a database that takes no changes": Fault(
        "events server",
        "The database takes no changes: default_transaction_read_only is on.",
        "alter database NAME reset default_transaction_read_only;",
        "alter database DATABASE set default_transaction_read_only = on",
    ),
    "too few connections": Fault(
        "events connections",
        "one process of the service needs up to 205.",
        "Raise max_connections of PostgreSQL",
        settings={"pool_size": 200},
    ),
    "a user that may not make tables": Fault(
        "events rights",
        "may not make tables, so migrations fail.",
        "grant create on schema public to holdfast;",
        "revoke create on schema public from pg_database_owner, public",
        undo="grant create on schema public to pg_database_owner",
    ),
    "rights that a restore left out": Fault(
        "inventory schema",
        "The role holdfast_shop lacks the right select on drawn.",
        "Run in the database: GRANT SELECT ON TABLE drawn TO holdfast_shop;",
        "revoke select on drawn from holdfast_shop",
        undo="grant select on drawn to holdfast_shop",
    ),
    "no backup": Fault(
        "events backups",
        "No backup is known: ",
        "Make one every day, to another machine: holdfast backup DIRECTORY.",
        EVENT,
        status="warning",
    ),
    "an old backup": Fault(
        "events backups",
        "old. It is in /backups.",
        "holdfast backup DIRECTORY",
        EVENT,
        files={"backups.json": ('{"events": {"finished_at": "2026-01-02T03:04:05Z", "place": "/backups"}}', 0o600)},
        status="warning",
    ),
}
