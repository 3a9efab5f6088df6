"""Metrics say how many mails wait, while a process measures them."""

import re

from holdfast.kit.mail import mail_gauges
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import Service, eventually
from tests.helpers.smtp import MailServer
from tests.kit.mail.posting import post_mails


async def test_mails_that_wait_are_in_the_metrics(service: Service, server: MailServer) -> None:
    server.stop()
    await post_mails(service, "ann@example.com")

    await service.database.read(mail_gauges.update_gauges)

    figures = (await service.anonymous.get("/metrics")).text
    assert "\nholdfast_mails_waiting 1.0\n" in figures
    assert "\nholdfast_mails_oldest_seconds " in figures


async def test_a_process_that_stops_measuring_shows_no_metrics_of_waiting_mails(service: Service) -> None:
    async def waiting() -> list[str]:
        figures = (await service.anonymous.get("/metrics")).text
        return re.findall(r"^holdfast_mails_(?:waiting|oldest_seconds) (\S+)$", figures, re.MULTILINE)

    async def waits() -> bool:
        return (await waiting())[0] == "1.0"

    mail_gauges.WAITING_MAILS.set(0)  # another test may have measured in this process
    await post_mails(service, "ann@example.com")
    async with run_in_background(mail_gauges.MEASURE.run(service.database)):
        await eventually(waits)

    assert await waiting() == ["0.0", "0.0"]
