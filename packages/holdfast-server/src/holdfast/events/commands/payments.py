"""The commands `holdfast events payments`. Each command does its own imports, so that `--help` stays fast."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from holdfast.events.payments.reconciliation import ReconciliationReport
    from holdfast.events.resources import Steps

payments = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Payments of the events service.")


@payments.callback()
def main() -> None:
    """Payments of the events service."""


@payments.command()
def reconcile(
    days: Annotated[int, typer.Option(min=1, max=365, help="How many days back to compare.")] = 2,
) -> None:
    """Compare our payments with the processor's.

    Those are in the books of the payment processor.

    A line for each that differs, with tabs between: what differs, id at the processor, id here (or -), amount here,
    amount there, currency, what it means. Amounts are in minor units. Ends with 1 if something differs.
    """
    from holdfast.events.payments import reconciliation
    from holdfast.events.processor.processor import ProcessorRefusal, ProcessorUnreachable
    from holdfast.events.service import EVENTS
    from holdfast.kit.contract.problems import CannotStart

    async def compare(steps: "Steps") -> "ReconciliationReport":
        if steps.resources.processor is None:
            raise CannotStart("There is no payment processor to compare with. Set STRIPE_SECRET_KEY.")
        try:
            return await reconciliation.reconcile(steps, days)
        except (ProcessorRefusal, ProcessorUnreachable) as error:
            raise CannotStart(f"The payment processor did not answer: {error}") from error

    report, location = EVENTS.run_steps(compare)
    for row in report.differences:
        fields = (row.kind, row.intent_id, row.payment_id, row.ours, row.theirs, row.currency, row.meaning)
        typer.echo("\t".join("-" if field is None else str(field) for field in fields))
    typer.echo(
        f"Compared {report.compared} payments of the processor since {report.since:%Y-%m-%dT%H:%M:%SZ} with those in "
        f"{location}: {len(report.differences)} differ.",
        err=True,
    )
    if report.differences:
        raise typer.Exit(1)
