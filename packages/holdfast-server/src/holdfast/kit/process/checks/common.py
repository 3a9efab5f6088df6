"""The checks that both services have, in the order in which they are shown."""

from holdfast.kit.process.checks import files, partners, schema, server, work
from holdfast.kit.process.checks.inspection import AnyCheck, Check, DatabaseCheck

FOUNDATION: tuple[AnyCheck, ...] = (
    DatabaseCheck("server", server.check_server),
    DatabaseCheck("rights", server.check_rights),
    DatabaseCheck("durability", server.check_durability),
    DatabaseCheck("disk", server.check_disk),
    DatabaseCheck("connections", server.check_connections),
    DatabaseCheck("clock", server.check_clock),
    DatabaseCheck("standby", server.check_standby),
    DatabaseCheck("transactions", server.check_transactions),
    DatabaseCheck("migrations", schema.check_migrations),
    DatabaseCheck("schema", schema.check_schema),
    Check("secret", files.check_secret_file),
    DatabaseCheck("secret", files.check_sealed),
    Check("data directory", files.check_data_directory),
    DatabaseCheck("backups", files.check_backups),
    Check("base address", partners.check_base_address),
    Check("mail server", partners.check_mail_server),
    DatabaseCheck("mails", work.check_outbox),
    Check("rate limits", partners.check_rate_limits),
    Check("machines", work.check_machines),
    DatabaseCheck("leaders", work.check_leaders),
    DatabaseCheck("jobs", work.check_jobs),
)
