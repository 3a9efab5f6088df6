import sys

import typer

app, inner = typer.Typer(), typer.Typer()


@inner.command()
def first() -> None: ...


app.add_typer(inner, name="inner")

try:
    app(["inner", "--help"])
except SystemExit:
    print("pydantic was imported:", "pydantic" in sys.modules)
