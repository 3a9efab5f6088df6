"""Links by which an organizer tells people of an event in the messengers they use."""

from urllib.parse import quote, urlencode

from msgspec import Struct


class Messenger(Struct, frozen=True):
    """A service by which people send links, and its address that begins a message."""

    name: str
    address: str


def messengers(title: str, url: str) -> list[Messenger]:
    """The addresses that begin a message about an event: plain links, which load nothing before they are followed."""
    text = f"{title} {url}"
    return [
        Messenger("WhatsApp", f"https://wa.me/?{urlencode({'text': text}, quote_via=quote)}"),
        Messenger("Telegram", f"https://t.me/share/url?{urlencode({'url': url, 'text': title}, quote_via=quote)}"),
        Messenger("Facebook", f"https://www.facebook.com/sharer/sharer.php?{urlencode({'u': url})}"),
        Messenger("LinkedIn", f"https://www.linkedin.com/sharing/share-offsite/?{urlencode({'url': url})}"),
        Messenger("X", f"https://x.com/intent/post?{urlencode({'url': url, 'text': title}, quote_via=quote)}"),
    ]


def mail_address(title: str, url: str) -> str:
    """The address that begins a mail about an event."""
    return f"mailto:?{urlencode({'subject': title, 'body': url}, quote_via=quote)}"
