"""What a pipeline sends, and when."""

from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus

from holdfast.kit.compat.psycopg_pipeline import SyncingCursor, add_statement, pipeline_of, wait_for_answer


async def test_a_statement_that_is_added_to_a_pipeline_is_sent_with_the_next_one(database_url: str) -> None:
    async with (
        await AsyncConnection.connect(database_url, autocommit=True, cursor_factory=SyncingCursor) as connection,
        pipeline_of(connection),
    ):
        add_statement(connection, "begin")
        before = connection.pgconn.transaction_status
        cursor = await connection.execute("select pg_current_xact_id()::text = pg_current_xact_id()::text")
        await wait_for_answer(connection)

        assert before == TransactionStatus.IDLE
        assert connection.pgconn.transaction_status == TransactionStatus.INTRANS
        assert await cursor.fetchone() == (True,)


async def test_a_statement_that_is_added_last_is_sent_when_the_pipeline_ends(database_url: str) -> None:
    async with await AsyncConnection.connect(database_url, autocommit=True, cursor_factory=SyncingCursor) as connection:
        async with pipeline_of(connection):
            add_statement(connection, "begin")
            await connection.execute("select 1")
            await wait_for_answer(connection)
            commit = add_statement(connection, "commit")
            before = connection.pgconn.transaction_status

        assert before == TransactionStatus.INTRANS
        assert commit.statusmessage == "COMMIT"
        assert connection.pgconn.transaction_status == TransactionStatus.IDLE
