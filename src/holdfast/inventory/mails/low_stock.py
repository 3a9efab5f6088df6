"""The mail that says that a pool has become low. It is written in a process that starts often: it imports little."""

from holdfast.kit.mail import Message, plain
from holdfast.kit.pages.frame import Frame
from holdfast.kit.pages.language import named
from holdfast.kit.pages.link_mail import LinkMail, written


class LowStockMail(LinkMail, tag="low_stock"):
    """A mail about a pool that has fallen to its limit. Strangers wrote the name and the unit."""

    pool: str
    unit: str
    available: int
    low_stock_at: int


def message(mail: LowStockMail, frame: Frame) -> Message:
    """The mail, written."""
    language = named(mail.language)
    _ = frame.texts(language).gettext
    # Marks keep a name in another direction of writing from changing the order of the words around it.
    pool, unit = f"\u2068{plain(mail.pool)}\u2069", f"\u2068{plain(mail.unit)}\u2069"
    return written(
        mail,
        frame,
        subject=_("Low stock: %(pool)s") % {"pool": plain(mail.pool)},
        first=_("%(pool)s has %(available)s %(unit)s left that can be sold. You wanted to know at %(limit)s.")
        % {
            "pool": pool,
            "available": language.number(mail.available),
            "unit": unit,
            "limit": language.number(mail.low_stock_at),
        },
        button=_("Open the pools"),
        rest=_("You get the next mail about it when there was more in between. In the settings you can turn them off."),
    )
