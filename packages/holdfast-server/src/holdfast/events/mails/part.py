"""What mails register: the sender, the announcements, and the forgetting of sent mails."""

from holdfast.events.mails import sending
from holdfast.events.resources import Context
from holdfast.kit.background.tasks import PeriodicJob, in_batches
from holdfast.kit.mail import outbox
from holdfast.kit.process.part import Part

PART: Part[Context] = Part(
    loops=(sending.run,),
    led=(sending.run_announcements,),
    timed=(PeriodicJob("7 4 * * *", in_batches(outbox.forget_mails)),),
)
