import asyncio


async def main():
    loop = asyncio.get_running_loop()
    result = loop.create_future()

    async def worker():
        await asyncio.wait_for(result, timeout=60)
        return "the cancellation was lost"

    task = asyncio.create_task(worker())
    await asyncio.sleep(0)
    result.set_result(None)
    task.cancel()
    print(await asyncio.gather(task, return_exceptions=True))


asyncio.run(main())
