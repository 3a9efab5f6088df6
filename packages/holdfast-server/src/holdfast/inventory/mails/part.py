"""What mails register: the sender, and the forgetting of sent mails."""

from typing import Any

from holdfast.inventory.mails import sending
from holdfast.kit.background.tasks import PeriodicJob, in_batches
from holdfast.kit.mail import outbox
from holdfast.kit.process.part import Part

PART: Part[Any] = Part(
    loops=(sending.run,),
    timed=(PeriodicJob("7 4 * * *", in_batches(outbox.forget_mails)),),
)
