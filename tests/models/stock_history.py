"""How agents change stock while everything fails, and whether the ledger explains the answers."""

import itertools
import json
from bisect import bisect_left
from copy import deepcopy

import psycopg
from psycopg.rows import dict_row

from holdfast.inventory.service import INVENTORY
from holdfast.inventory.settings import Settings
from holdfast.inventory.shops import operations as shops
from holdfast.kit.security.http_client import HttpClient
from tests.helpers.inventory_service import SINGLE, SIX_PACK, TWELVE_PACK
from tests.helpers.serving import PLAIN
from tests.models.crowd_client import AnyClient
from tests.models.history import History, SentRequest, agree, never_inverted
from tests.models.ledger import Answer, Ledger, Pool
from tests.models.ledger_answers import change_answer, entry, refusal

DRAWS = [{SINGLE: 1, TWELVE_PACK: 2}, {SIX_PACK: 3, TWELVE_PACK: 1}, {SINGLE: 2}, {}]
"""What draws on each pool."""

ON_HAND = 60


async def create_shop(settings: Settings) -> str:
    """The key of a new shop."""
    database = INVENTORY.database(settings)
    await database.open()
    _, key = await database.transact(lambda tx: shops.add(tx, "busy.myshopify.com"))
    await database.close()
    return key


class Agents:
    """Agents of one shop, who change the same pools. A change is named by its key, and gives it as the reason."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.pools: list[int] = []
        self.names = (f"change {number}" for number in itertools.count(1))
        self.entries: list[int] = []
        self.holds: list[int] = []

    async def begin(self) -> Ledger:
        """Make the pools; the model of the shop with them."""
        pools: dict[int, Pool] = {}
        async with HttpClient(verify=PLAIN, headers=dict(self.history.headers), timeout=30) as http:
            for members in DRAWS:
                linked = [{"variant_gid": gid, "units_per_sale": units} for gid, units in members.items()]
                fields = {"name": f"Pool {len(pools)}", "quantity": ON_HAND, "buffer": 5, "members": linked}
                made = (await self.call(http, "create_pool", fields)).answer["pool"]
                pools[made["id"]] = Pool(ON_HAND, 5, False, made["version"], members)
        self.pools = [*pools]
        self.history.exchanges.clear()
        return Ledger(max(pool.version for pool in pools.values()), pools)

    async def work(self, http: AnyClient, _: int) -> None:
        """Change something, and look at something."""
        tool, arguments = self._choose()
        name = next(self.names)
        exchange = await self.call(http, tool, arguments, reason=name, idempotency_key=name)
        if exchange.answer and not isinstance(exchange.answer, str):
            answer: Answer = exchange.answer
            self.entries += [entry["id"] for entry in answer["entries"]]
            self.holds += [answer["hold"]] if answer["hold"] else []
        await self.call(http, "get_availability", {"variant_gids": [SINGLE, SIX_PACK, TWELVE_PACK]})

    def _choose(self) -> tuple[str, Answer]:
        chance = self.history.chance
        pool, other = chance.sample(self.pools, 2)
        amount = chance.randint(1, 9)
        match chance.randrange(9):
            case 0:
                return "set_pool_quantity", {"pool_id": pool, "quantity": amount * 5}
            case 1:
                return "transfer_quantity", {"from_pool_id": pool, "to_pool_id": other, "quantity": amount}
            case 2:
                return "hold_quantity", {"variant_gid": TWELVE_PACK, "quantity": 1, "ttl_s": chance.choice([1, 600])}
            case 3 if self.holds:
                return "release_hold", {"hold_id": chance.choice(self.holds[-5:])}
            case 4:
                return "bulk_adjust", {"items": [{"pool_id": pool_id, "delta": amount} for pool_id in (pool, other)]}
            case 5 if self.entries:
                return "revert_entry", {"entry_id": chance.choice(self.entries[-5:])}
            case 6:
                return "record_sale", {"variant_gid": SINGLE, "quantity": 1}
            case _:
                return "adjust_pool_quantity", {"pool_id": pool, "delta": chance.choice([-2, 1]) * amount}

    async def call(self, http: AnyClient, tool: str, arguments: Answer, **repeat: str) -> SentRequest:
        """Call a tool. What is kept of the answer is what is compared."""
        params = {"name": tool, "arguments": {**arguments, **repeat}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        request = (repeat.get("reason"), tool, arguments)
        exchange = await self.history.ask(http, request, "POST", "/mcp", json=body)
        if exchange.given_up:
            return exchange
        result = exchange.answer.json()["result"]
        content = result.get("structuredContent")
        if result.get("isError"):
            exchange.answer = refusal(json.loads(result["content"][0]["text"]))
        else:
            exchange.answer = change_answer(content) if "entries" in content else content
        return exchange


def read_versions(database_url: str) -> list[tuple[int, list[Answer]]]:
    """Every version of the shop, with its entries."""
    versions: dict[int, list[Answer]] = {}
    with psycopg.connect(database_url) as connection:
        for row in connection.cursor(row_factory=dict_row).execute("select *, kind::text from ledger order by id"):
            versions.setdefault(row["version"], []).append(row)
    return [*versions.items()]


def explain_answers(exchanges: list[SentRequest], model: Ledger, versions: list[tuple[int, list[Answer]]]) -> None:
    """Fail unless the ledger, replayed in its order, explains every answer."""
    began = model.version
    model.entries += [entry(row) for version, entries in versions if version <= began for row in entries]
    changes = {exchange.request[0]: exchange for exchange in exchanges if exchange.request[0]}
    made = {entries[0]["reason"]: version for version, entries in versions}
    wrong = [name for name in made if name in changes and changes[name].given_up]
    agree(not wrong, f"{wrong[:5]} were refused, and are there")
    refused_calls = [exchange for exchange in changes.values() if isinstance(exchange.answer, str)]
    for exchange in refused_calls:
        if exchange.lost and exchange.request[0] in made:
            # A refusal is not kept: what was lost may be done after what was sent in its place was refused.
            changes[exchange.request[0]] = SentRequest(exchange.request, exchange.sent)
    refusals = Refusals(refused_calls, changes, made)
    reads = [exchange for exchange in exchanges if exchange.request[1] == "get_availability" and exchange.answer]
    states = {began: model.get_availability([SINGLE, SIX_PACK, TWELVE_PACK])}
    refusals.try_on(model)
    for version, entries in versions:
        if version <= began:
            continue
        name = entries[0]["reason"]
        if entries[0]["source"] == "hold expiry":
            answer = model.call("release_hold", hold_id=entries[0]["hold_id"])
        else:
            agree(name in changes, f"nobody asked for {entries}")
            refusals.end_before(changes[name])
            _, tool, arguments = changes[name].request
            answer = model.call(tool, **arguments, idempotency_key=name)
            agree(changes[name].answer in (None, answer), f"{name} was told {changes[name].answer}, and did {answer}")
        agree(isinstance(answer, dict), f"{name} made {entries}, and must be refused: {answer}")
        actual = [entry(row) for row in entries]
        agree(actual == answer["entries"], f"{name} made {actual}, not {answer['entries']}")
        states[version] = model.get_availability([SINGLE, SIX_PACK, TWELVE_PACK])
        refusals.try_on(model)
    refusals.end_before(None)
    done = {name for name, exchange in changes.items() if isinstance(exchange.answer, dict)}
    agree(done <= made.keys(), f"{sorted(done - made.keys())[:5]} were done, and are not in the ledger")
    for read in reads:
        limits = read.answer["limiting_pool"]
        sellable = {gid: (quantity, limits[gid]) for gid, quantity in read.answer["variants"].items()}
        state = states.get(read.answer["version"])
        agree(sellable == state, f"at version {read.answer['version']} could be sold {state}, not {sellable}")
    in_order = [(made[name], 0, changes[name].sent, changes[name]) for name in made if name in changes]
    in_order += [(read.answer["version"], 1, read.sent, read) for read in reads]
    never_inverted(exchange for *_, exchange in sorted(in_order, key=lambda placed: placed[:3]))


class Refusals:
    """Calls that were refused. Each must be what the model says at some moment between its question and its answer."""

    def __init__(self, refused_calls: list[SentRequest], changes: dict[str, SentRequest], made: dict[str, int]) -> None:
        done = sorted((changes[name].answered, version) for name, version in made.items() if name in changes)
        answered = [answered_at for answered_at, _ in done]
        latest = [0, *itertools.accumulate((version for _, version in done), max)]
        self._open = [(latest[bisect_left(answered, call.sent)], call) for call in refused_calls]

    def try_on(self, model: Ledger) -> None:
        """Let the stock as it is now explain those that may have been asked now."""
        self._open = [(since, call) for since, call in self._open if since > model.version or not _refuses(model, call)]

    def end_before(self, change: SentRequest | None) -> None:
        """Fail if something was answered before this change was sent, and nothing before the change explains it."""
        for _, call in self._open:
            agree(
                change and change.sent <= call.answered,
                f"nothing explains that {call.request} got {call.answer}",
            )


def _refuses(model: Ledger, exchange: SentRequest) -> bool:
    """Whether the stock, as it is, refuses a call like that."""
    _, tool, arguments = exchange.request
    copy = Ledger(model.version, deepcopy(model.pools), [*model.entries], {**model.holds}, {*model.ended})
    return copy.call(tool, **arguments) == exchange.answer
