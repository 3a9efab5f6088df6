"""The checks that both services have, in the order in which they are shown."""

from holdfast.kit.process.checks import files, partners, schema, server, work

FOUNDATION = (*server.CHECKS, *schema.CHECKS, *files.CHECKS, *partners.CHECKS, *work.CHECKS)
