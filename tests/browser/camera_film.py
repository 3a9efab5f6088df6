"""A film for the camera of Chromium."""

from pathlib import Path

from PIL import Image

WIDTH, HEIGHT, FRAMES = 640, 480, 5


def write_film(picture: Image.Image, path: Path) -> None:
    """A film of a phone that shows the picture, a little askew, in the format that Chromium takes for a camera."""
    scene = Image.new("L", (WIDTH, HEIGHT), 90)
    picture_turned = picture.rotate(7, expand=True, fillcolor=255)
    scene.paste(picture_turned, ((WIDTH - picture_turned.width) // 2, (HEIGHT - picture_turned.height) // 2))
    colours = bytes([128]) * (WIDTH * HEIGHT // 2)
    frame = b"FRAME\n" + scene.tobytes() + colours
    path.write_bytes(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F10:1 Ip A1:1 C420jpeg\n".encode() + frame * FRAMES)
