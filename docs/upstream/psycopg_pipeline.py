import asyncio
import os

from psycopg import AsyncConnection, OperationalError


async def main():
    connection = await AsyncConnection.connect(os.environ["DATABASE_URL"], autocommit=True)
    await connection.execute("set idle_in_transaction_session_timeout = '500ms'")
    try:
        async with connection.pipeline():
            await connection.execute("begin")
            cursor = await connection.execute("select 1")
            await cursor.fetchone()
            await asyncio.sleep(2)
            await connection.execute("select 1")
        print("The server did not end the transaction.")
    except OperationalError:
        print("The server ended the transaction.")


asyncio.run(main())
