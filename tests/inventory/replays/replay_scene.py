"""A shop that has the app and has sold before, whose past orders are replayed."""

from holdfast.inventory.replays import operations
from holdfast.inventory.replays.model import BeginReplay, GetReplay, Replay, ReplayResult, ReplayTask
from holdfast.inventory.sync import levels
from holdfast.kit.contract.caller import person
from holdfast_demo.shopify.model import Order
from holdfast_demo.shopify.orders import SaleLine
from tests.helpers.platform_shop import DOMAIN
from tests.inventory.sync.sync_scene import SyncScene

DAY = 86_400


def sell(scene: SyncScene, days_ago: float, *sold: tuple[str, int]) -> Order:
    """An order of the past: the titles of variants, and how many of each."""
    clock = scene.platform.clock
    clock.advance(-days_ago * DAY)
    try:
        lines = [SaleLine(scene.variants[title].id, quantity) for title, quantity in sold]
        return scene.platform.sell(DOMAIN, *lines, even_if_sold_out=True)
    finally:
        clock.advance(days_ago * DAY)


async def know_levels(scene: SyncScene) -> None:
    """Know what the platform has now."""
    await scene.transact(lambda tx: levels.observe(tx, scene.shop.id, scene.reported_levels(), is_just_read=True))


async def begin_replay(scene: SyncScene) -> ReplayTask:
    """Begin a replay. Returns its task."""
    caller = person(1, scene.shop.id)
    await scene.transact(lambda tx: operations.begin(tx, caller, BeginReplay()))
    [(replay_id,)] = await scene.inventory.sql("select replay_id from replays")
    return ReplayTask(scene.shop.id, replay_id)


async def get_replay(scene: SyncScene) -> Replay:
    caller = person(1, scene.shop.id)
    return await scene.inventory.database.read(
        lambda reader: operations.get(reader, caller, GetReplay()), scene.shop.id
    )


async def finish_replay(scene: SyncScene, task: ReplayTask) -> ReplayResult:
    """Do all steps of a replay. Returns its result."""
    while (replay := await get_replay(scene)).status == "running":
        await operations.advance(scene.steps, task)
    assert replay.result, replay.error
    return replay.result
