"""The command `holdfast events draw`."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from holdfast.events.resources import Steps


def draw(
    queue_id: Annotated[int, typer.Argument(metavar="QUEUE_ID", min=1, help="Id of the waiting room.")],
    round: Annotated[int, typer.Option(metavar="ROUND", help="The round that the waiting room names.")],
    signature: Annotated[str, typer.Option(metavar="HEX", help="The signature of the round, 96 hexadecimal digits.")],
) -> None:
    """Draw a waiting room with a round that was carried in by hand.

    For a service without internet. The list is frozen before. Anybody can look the round up at
    https://api.drand.sh/52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971/public/ROUND. The signature is
    verified here, so it does not matter who carried it in.
    """
    from holdfast.events.draws.beacon import InvalidRound
    from holdfast.events.product import EVENTS
    from holdfast.events.queues import drawing
    from holdfast.kit.contract.problems import CannotStart

    async def work(steps: "Steps") -> str:
        try:
            decoded = bytes.fromhex(signature)
        except ValueError as error:
            raise CannotStart("The signature is not made of hexadecimal digits.") from error
        try:
            return await steps.transact(lambda tx: drawing.draw(tx, queue_id, round, decoded))
        except (drawing.DrawRefusal, InvalidRound) as error:
            raise CannotStart(str(error)) from error

    result, place = EVENTS.do(work)
    typer.echo(
        {
            "drawn": f"Queue {queue_id} is drawn. People are let in now.",
            "void": f"The draw of queue {queue_id} is void: its list was not in the sealed log before the round.",
            "busy": f"Queue {queue_id} is being drawn by another process.",
        }[result]
    )
    typer.echo(f"Looked in {place}.", err=True)
