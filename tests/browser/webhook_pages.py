"""The pages of webhooks, which both consoles have."""

from playwright.async_api import Page

from tests.browser.looking import open_boxes, too_wide, violations

WEBHOOKS = "/console/webhooks"


def addresses_of(endpoint_id: int, message_id: str) -> list[str]:
    """The addresses of all pages, for an endpoint and a message that was sent to it."""
    endpoint = f"{WEBHOOKS}/{endpoint_id}"
    resend = "/resend?since=2026-01-01T00:00&which=all"
    subpages = ("", "?delivery=failed", "/edit", "/secret", resend, "/pause", "/delete", f"/messages/{message_id}")
    return [WEBHOOKS, f"{WEBHOOKS}/new", f"{WEBHOOKS}/receive", *(endpoint + path for path in subpages)]


async def faults_of_pages(page: Page, base_url: str, endpoint_id: int, message_id: str) -> dict[str, list[object]]:
    """What axe-core finds on each page, and what is too wide, by address."""
    return {
        address: faults
        for address in addresses_of(endpoint_id, message_id)
        if (faults := await _faults(page, base_url + address))
    }


async def _faults(page: Page, address: str) -> list[object]:
    await page.goto(address)
    await open_boxes(page)
    return [*await violations(page), *await too_wide(page)]
