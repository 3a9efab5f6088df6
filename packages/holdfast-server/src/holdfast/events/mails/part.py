"""What mails register: the sender, the announcements, and the forgetting of sent mails."""

from holdfast.events.context import Context
from holdfast.events.mails import sending
from holdfast.kit.background.tasks import Schedule, TimedTask, in_batches
from holdfast.kit.mail import mail_gauges, outbox
from holdfast.kit.process.part import Part

PART: Part[Context] = Part(
    loops=(sending.ANNOUNCEMENTS, mail_gauges.MEASURE),
    senders={"sending.run": sending.run},
    timed_tasks=(TimedTask("forget_mails", Schedule.daily("04:07"), in_batches(outbox.forget_mails)),),
)
