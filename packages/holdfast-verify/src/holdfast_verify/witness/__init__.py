"""A witness: a small service of a partner that cosigns the heads of logs (C2SP, tlog-witness). It has no database."""
