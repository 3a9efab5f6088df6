"""The command `holdfast events draw`. Each command does its own imports, so that `--help` stays fast."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from holdfast.events.resources import Steps


def draw(
    id: Annotated[int, typer.Argument(metavar="ID", min=1, help="Id of the waiting room, or of the event.")],
    round: Annotated[int, typer.Option(metavar="ROUND", help="The round that its page names.")],
    signature: Annotated[str, typer.Option(metavar="HEX", help="The signature of the round, 96 hexadecimal digits.")],
    event: Annotated[bool, typer.Option("--event", help="The id is that of an event.")] = False,
) -> None:
    """Draw a waiting room or an event with a round entered by hand.

    For a service without internet. The list is frozen before. The public can look the round up at
    https://api.drand.sh/52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971/public/ROUND. The signature is
    verified here, so it does not matter who carried it in.
    """
    from holdfast.events.draws import drawing
    from holdfast.events.queues.model import QUEUE_DRAWS
    from holdfast.events.seats.drawn import EVENT_DRAWS
    from holdfast.events.service import EVENTS
    from holdfast.kit.contract.problems import CannotStart
    from holdfast_verify.formats.beacon import InvalidRound

    subject = EVENT_DRAWS if event else QUEUE_DRAWS

    async def work(steps: "Steps") -> str:
        try:
            decoded = bytes.fromhex(signature)
        except ValueError as error:
            raise CannotStart("The signature is not made of hexadecimal digits.") from error
        try:
            return await steps.transact(lambda tx: drawing.draw(tx, subject, id, round, decoded))
        except (drawing.DrawRefusal, InvalidRound) as error:
            raise CannotStart(str(error)) from error

    result, location = EVENTS.run_steps(work)
    name = f"{subject.noun} {id}"
    typer.echo(
        {
            "drawn": f"{name.capitalize()} is drawn. People get their turns now.",
            "void": f"The draw of {name} is void: its list was not in the sealed log before the round.",
            "busy": f"{name.capitalize()} is being drawn by another process.",
        }[result]
    )
    typer.echo(f"Looked in {location}.", err=True)
