"""The books, by double entry: every movement of money is entries that sum to zero.

The accounts are `cardholders`, who pay and get refunds, `processor`, which earns its fees, `platform`, and each
connected account by its id. Amounts are in minor units of a currency. Entries are never changed.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from holdfast_demo.stripe.store import Store

CARDHOLDERS = "cardholders"
PROCESSOR = "processor"
PLATFORM = "platform"

_TABLES = """
create table if not exists entries (
    position integer primary key autoincrement,
    movement integer not null,
    kind text not null,
    source text not null,
    at integer not null,
    account text not null,
    currency text not null,
    amount integer not null
);
create index if not exists entries_of_a_movement on entries (movement);
create index if not exists entries_of_an_account on entries (account, currency);
"""


class UnbalancedBooks(Exception):
    """The books contradict themselves."""


class Entry(NamedTuple):
    """The entry of a movement in an account.

    movement    the number of the movement
    kind        `charge`, `processing_fee`, `transfer`, `application_fee`, `refund`, `transfer_reversal`,
                `application_fee_refund`, `refund_failure`, `dispute`, `dispute_fee` or `dispute_reversal`
    source      the id of the object that caused it
    """

    movement: int
    kind: str
    source: str
    at: int
    account: str
    currency: str
    amount: int


class Books:
    """Movements of money between accounts."""

    def __init__(self, store: Store) -> None:
        self._db = store.db
        self._db.executescript(_TABLES)

    def move(
        self, kind: str, source: str, at: int, currency: str, amount: int, *, from_account: str, to_account: str
    ) -> None:
        """Move an amount from one account to another. Nothing is entered for an amount of 0."""
        if amount:
            self.enter(kind, source, at, currency, {from_account: -amount, to_account: amount})

    def enter(self, kind: str, source: str, at: int, currency: str, amounts: Mapping[str, int]) -> None:
        """Enter a movement. Raises `UnbalancedBooks` if it does not sum to zero."""
        if sum(amounts.values()):
            raise UnbalancedBooks(f"The movement {kind} of {source} does not sum to zero: {amounts}")
        (number,) = self._db.execute("select coalesce(max(movement), 0) + 1 from entries").fetchone()
        self._db.executemany(
            "insert into entries (movement, kind, source, at, account, currency, amount) values (?, ?, ?, ?, ?, ?, ?)",
            [(number, kind, source, at, account, currency, amount) for account, amount in amounts.items()],
        )

    def balance(self, account: str) -> dict[str, int]:
        """The balance of an account, by currency."""
        rows = self._db.execute(
            "select currency, sum(amount) from entries where account = ? group by currency order by currency",
            (account,),
        )
        return dict(rows.fetchall())

    def entries(self, account: str = "") -> list[Entry]:
        """The entries of an account, or all, oldest first."""
        columns = "movement, kind, source, at, account, currency, amount"
        rows = self._db.execute(
            f"select {columns} from entries where account = ? or ? = '' order by position", (account, account)
        )
        return [Entry(*row) for row in rows]

    def moved(self, kind: str) -> dict[str, int]:
        """The moved amounts of a kind of movement, by source."""
        rows = self._db.execute(
            "select source, sum(amount) from entries where kind = ? and amount > 0 group by source", (kind,)
        )
        return dict(rows.fetchall())

    def check(self) -> None:
        """Raises `UnbalancedBooks` if a movement or a currency does not sum to zero."""
        sums: defaultdict[tuple[int, str], int] = defaultdict(int)
        for entry in self.entries():
            sums[entry.movement, entry.currency] += entry.amount
        wrong = {movement: total for movement, total in sums.items() if total}
        if wrong:
            raise UnbalancedBooks(f"These movements do not sum to zero: {wrong}")
