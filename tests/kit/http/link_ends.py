# ruff: noqa: RUF001
"""What programs put at the end of a link that a person pastes."""

ENDS = (
    *".,;:!?)]}>\"'*`|\\<=_-\n%’“»…。、）",
    *("\u200b", "\u200d", "\u200f", "\ufeff", "\u2060", "\u00ad", "\u202c"),
    *("**", ").", "),", ">.", "/)", "//", "...", " (tickets)", "%20", "%29", "</a>"),
    *("?utm_source=x", "#photos", "&fbclid=x", "。次", "に参加"),
)

END_MARKS = (
    *".,;:!?)]}>\"'*`|…。、！？）」』】»«“”’‘ \n",
    *("\u200b", "\u200e", "\u200f", "\u202c", "\u2069", "\ufeff", "\u2060", "\u00ad"),
    *("&quot;", "/)", "?x", "#x"),
)
