"""A network between two programs of this machine: what passes arrives so much later, in order.

python bench/far_link.py LISTEN_PORT PORT MILLISECONDS_EACH_WAY
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from fogline.common.process.free_ports import free_port


@contextmanager
def far_link(port: int, round_trip_ms: float) -> Iterator[int]:
    """The port at which that one answers, from so far away; a process of its own."""
    listening = free_port()
    command = [sys.executable, __file__, str(listening), str(port), str(round_trip_ms / 2)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout
        if process.stdout.readline() != b"ready\n":
            raise RuntimeError("the link does not start")
        yield listening
    finally:
        process.terminate()
        process.wait(10)


async def _serve(listening: int, port: int, seconds: float) -> None:
    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(
            _carry(reader, far_writer, seconds), _carry(far_reader, writer, seconds)
        )

    server = await asyncio.start_server(connect, "127.0.0.1", listening)
    print("ready", flush=True)
    await server.serve_forever()


async def _carry(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float
) -> None:
    """Until the one side or the other ends."""
    clock = asyncio.get_running_loop().time
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def take() -> None:
        data = b" "
        while data:
            data = await reader.read(1 << 16)
            under_way.put_nowait((clock() + seconds, data))

    async def give() -> None:
        while (item := await under_way.get())[1]:
            await asyncio.sleep(item[0] - clock())
            writer.write(item[1])
            await writer.drain()

    with suppress(ConnectionError):
        await asyncio.gather(take(), give())
    writer.close()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) / 1000))
