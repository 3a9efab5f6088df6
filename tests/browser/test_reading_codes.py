"""Our reader of QR codes in Chromium: it reads each code that a camera can see, or says that there is none."""

import random
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest_asyncio
import segno
from PIL import Image, ImageChops, ImageOps
from playwright.async_api import Browser, Page

from holdfast import events
from holdfast.events.registrations.entrance_code import qr_code
from tests.browser.qr_frames import (
    HEIGHT,
    WIDTH,
    add_noise,
    add_shade,
    blur_frame,
    code_rows,
    cover_part,
    draw_code,
    frames_without_code,
    page_of_text,
    photograph_sheet,
    reduce_contrast,
)

SCRIPTS = [
    Path(events.__file__).parent / "console" / "check_in" / "qr_reader" / name
    for name in ("qr_text.js", "qr_find.js", "qr.js")
]

READ = """async (sizes) => {
  const bytes = new Uint8Array(await document.querySelector("input").files[0].arrayBuffer());
  let at = 0;
  return sizes.map(([width, height]) => {
    const data = new Uint8ClampedArray(4 * width * height);
    for (let i = 0; i < data.length; i += 4) data[i] = data[i + 1] = data[i + 2] = bytes[at++];
    return readQr({ data, width, height });
  });
}"""


class CodeReader:
    """A page with our reader."""

    def __init__(self, page: Page, file: Path) -> None:
        self.page, self._file = page, file

    async def read(self, frames: Sequence[Image.Image]) -> list[str | None]:
        self._file.write_bytes(b"".join(frame.tobytes() for frame in frames))
        await self.page.set_input_files("input", self._file)
        return await self.page.evaluate(READ, [frame.size for frame in frames])


@pytest_asyncio.fixture(loop_scope="session")
async def reader(chromium: Browser, tmp_path: Path) -> AsyncIterator[CodeReader]:
    page = await chromium.new_page()
    await page.set_content("<input type=file>")
    for script in SCRIPTS:
        await page.add_script_tag(path=script)
    yield CodeReader(page, tmp_path / "frames")
    await page.close()


def addresses(count: int) -> list[str]:
    """Texts as the codes of our mails have them."""
    base = "https://events.example.com/registrations"
    return [f"{base}/{7919 * i}-k7abcdef-{i}-{random.Random(i).randbytes(16).hex()}" for i in range(1, count + 1)]


async def test_codes_of_every_version_and_level_are_read(reader: CodeReader) -> None:
    texts: list[str] = []
    frames: list[Image.Image] = []
    for version in range(1, 16):
        for i, level in enumerate("lmqh"):
            texts.append(f"é{version}{level}✓")
            made = segno.make(
                texts[-1], version=version, error=level, mask=(version + i) % 8, boost_error=False, micro=False
            )
            assert made.designator == f"{version}-{level.upper()}"
            turn = 17 * version + 90 * i
            frames.append(
                photograph_sheet(
                    draw_code(code_rows(made)), min(340, 25 * (version + 5)), turn=turn, tilt=25, axis=40 * version
                )
            )

    assert await reader.read(frames) == texts


WAYS: dict[str, Callable[[str, int], Image.Image]] = {
    "turned": lambda text, i: photograph_sheet(sheet(text), 320, turn=30 * i + 7),
    "tilted": lambda text, i: photograph_sheet(sheet(text), 300, turn=37 * i, tilt=45, axis=30 * i),
    "mirrored": lambda text, i: photograph_sheet(ImageOps.mirror(sheet(text)), 300, turn=37 * i, tilt=20, axis=30 * i),
    "small": lambda text, i: photograph_sheet(sheet(text), 110 + i, turn=37 * i, center=(150 + 30 * i, 330 - 15 * i)),
    "close": lambda text, i: photograph_sheet(sheet(text), 510, turn=90 * i + i / 2),
    "blurred": lambda text, i: blur_frame(photograph_sheet(sheet(text), 300, turn=37 * i), 3),
    "noisy": lambda text, i: add_noise(photograph_sheet(sheet(text), 300, turn=37 * i, tilt=15, axis=30 * i), 60),
    "pale": lambda text, i: add_noise(reduce_contrast(photograph_sheet(sheet(text), 300, turn=37 * i), 0.12), 3),
    "shaded": lambda text, i: add_shade(photograph_sheet(sheet(text), 300, turn=37 * i), 30 * i, 0.1),
    "covered": lambda text, i: photograph_sheet(partly_covered(text, i), 300, turn=37 * i, tilt=20, axis=30 * i),
    "light on dark": lambda text, i: ImageOps.invert(
        photograph_sheet(sheet(text), 300, turn=37 * i, tilt=20, axis=30 * i)
    ),
    "without a border": lambda text, i: photograph_sheet(
        draw_code(code_rows(qr_code(text)), border=1), 300, turn=37 * i
    ),
    "among text": lambda text, i: photograph_sheet(among_text(text), 640, turn=37 * i, tilt=20, axis=30 * i),
}


def sheet(text: str) -> Image.Image:
    return draw_code(code_rows(qr_code(text)))


def partly_covered(text: str, case: int) -> Image.Image:
    return cover_part(sheet(text), 0.04, random.Random(case))


def among_text(text: str) -> Image.Image:
    page = page_of_text(random.Random(text), 22, (900, 900))
    page.paste(ImageOps.fit(sheet(text), (420, 420)), (240, 240))
    return page


async def test_the_code_of_a_mail_is_read_from_any_distance_angle_and_light(reader: CodeReader) -> None:
    texts = addresses(12)
    read = await reader.read([way(text, i) for way in WAYS.values() for i, text in enumerate(texts)])

    assert dict(zip(WAYS, batches_of(read, len(texts)), strict=True)) == dict.fromkeys(WAYS, texts)


def batches_of(all: list[str | None], size: int) -> list[list[str | None]]:
    return [all[start : start + size] for start in range(0, len(all), size)]


async def test_one_of_several_codes_in_a_picture_is_read(reader: CodeReader) -> None:
    texts = addresses(4)
    centers = [(170, 125), (470, 125), (170, 355), (470, 355)]
    frame = Image.new("L", (WIDTH, HEIGHT), 255)
    for i, center in enumerate(centers):
        frame = ImageChops.darker(frame, photograph_sheet(sheet(texts[i]), 190, turn=9 * i, center=center))

    [text] = await reader.read([frame])
    assert text in texts


async def test_a_text_is_read_in_every_encoding_of_a_code(reader: CodeReader) -> None:
    ways: list[tuple[str, dict[str, Any]]] = [
        ("0123456789012345", {"mode": "numeric"}),
        ("0071", {"mode": "numeric", "version": 10}),
        ("HOLD FAST/$%*+-.:7", {"mode": "alphanumeric"}),
        ("A1", {"mode": "alphanumeric", "version": 12}),
        ("Zürich", {"encoding": "iso-8859-1"}),
        ("Zürich ✓ 東京 🎟", {"encoding": "utf-8"}),
        ("Zürich ✓", {"encoding": "utf-8", "eci": True}),
        ("x" * 412, {"version": 15, "error": "m"}),
    ]
    frames = [photograph_sheet(draw_code(code_rows(segno.make(text, micro=False, **how))), 400) for text, how in ways]

    assert await reader.read(frames) == [text for text, _ in ways]


async def test_a_text_in_another_encoding_is_not_guessed(reader: CodeReader) -> None:
    made = segno.make("Łódź", encoding="iso-8859-2", eci=True, micro=False)

    assert await reader.read([photograph_sheet(draw_code(code_rows(made)), 400)]) == [None]


async def test_a_picture_without_a_code_has_no_text(reader: CodeReader) -> None:
    frames = frames_without_code(random.Random(14))

    assert len(frames) == 200
    assert [text for text in await reader.read(frames) if text is not None] == []


async def test_a_picture_of_any_size_is_looked_at_without_an_error(reader: CodeReader) -> None:
    frames: list[Image.Image] = []
    for size in [(0, 0), (1, 1), (1, 700), (700, 1), (7, 9), (33, 21), (WIDTH, HEIGHT)]:
        frames += [Image.new("L", size, shade) for shade in (0, 128, 255)]
        frames.append(Image.frombytes("L", size, bytes(255 * (i // 2 % 2) for i in range(size[0] * size[1]))))

    assert await reader.read(frames) == [None] * len(frames)


async def test_a_code_with_flipped_modules_is_corrected_or_refused_and_never_misread(reader: CodeReader) -> None:
    chance = random.Random(18004)
    inputs: list[tuple[int, str]] = []
    for case in range(900):
        version, level = 1 + case % 15, "lmqh"[case // 15 % 4]
        made = code_rows(segno.make(f"{case}", version=version, error=level, mask=case % 8, micro=False))
        flips = chance.randrange(len(made) ** 2 // 8)
        for _ in range(flips):
            y, x = chance.randrange(len(made)), chance.randrange(len(made))
            made[y][x] ^= 1
        inputs.append((version, "".join(str(module) for row in made for module in row)))

    read = await reader.page.evaluate(
        "(inputs) => inputs.map(([version, modules]) => qrText.textOfQr(version, Uint8Array.from(modules, Number)))",
        inputs,
    )
    corrected = [text is not None for text in read]
    assert {text for case, text in enumerate(read) if text not in {str(case), None}} == set()
    assert 200 < sum(corrected) < 700


async def test_as_many_wrong_words_as_the_level_corrects_are_corrected(reader: CodeReader) -> None:
    chance = random.Random(2)
    text = "of level M, in one block"
    made = code_rows(segno.make(text, version=2, error="m", boost_error=False, micro=False))
    frames: list[Image.Image] = []
    for _ in range(50):
        wrong = [list(row) for row in made]
        # Eight words can be wrong. Eight modules are in eight words at most.
        for x, y in chance.sample([(x, y) for x in range(9, 16) for y in range(9, 16)], 8):
            wrong[y][x] ^= 1
        frames.append(photograph_sheet(draw_code(wrong), 250, turn=chance.uniform(0, 360)))

    assert await reader.read(frames) == [text] * 50


async def test_a_code_is_read_by_the_second_copy_of_its_format_if_the_first_is_damaged(reader: CodeReader) -> None:
    made = code_rows(qr_code("https://events.example.com"))
    for i in range(9):
        made[8][i] = made[i][8] = 1
    for x in (-1, -4, -7):
        made[8][x] ^= 1  # three wrong modules in the second

    assert await reader.read([photograph_sheet(draw_code(made))]) == ["https://events.example.com"]
