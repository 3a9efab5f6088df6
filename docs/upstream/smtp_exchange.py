import asyncio

from aiosmtplib import SMTP


async def serve(reader, writer):
    writer.write(b"220 hello\r\n")
    while line := await reader.readline():
        print(line.decode().rstrip())
        writer.write(b"354 go on\r\n" if line == b"DATA\r\n" else b"250 ok\r\n")
        if line == b".\r\n":
            break
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    client = SMTP(hostname="127.0.0.1", port=server.sockets[0].getsockname()[1], start_tls=False)
    await client.connect()
    await client.mail("a@example.com")
    await client.rcpt("b@example.com")
    await client.execute_command(b"DATA")
    # The sender checks here whether it still may send.
    await client.data(b"content\r\n")
    client.close()


asyncio.run(main())
