"""The units of pools as words after a number: "1 jar", "5 jars". Merchants type them in one form alone."""

_PLURALS = {
    "bag": "bags",
    "bar": "bars",
    "bottle": "bottles",
    "box": "boxes",
    "bunch": "bunches",
    "bundle": "bundles",
    "can": "cans",
    "candle": "candles",
    "card": "cards",
    "carton": "cartons",
    "case": "cases",
    "crate": "crates",
    "cup": "cups",
    "egg": "eggs",
    "item": "items",
    "jar": "jars",
    "kit": "kits",
    "loaf": "loaves",
    "pack": "packs",
    "pair": "pairs",
    "piece": "pieces",
    "plant": "plants",
    "pot": "pots",
    "roll": "rolls",
    "set": "sets",
    "sheet": "sheets",
    "stick": "sticks",
    "tin": "tins",
    "tube": "tubes",
    "unit": "units",
    "Buch": "Bücher",
    "Dose": "Dosen",
    "Ei": "Eier",
    "Einheit": "Einheiten",
    "Flasche": "Flaschen",
    "Glas": "Gläser",
    "Karte": "Karten",
    "Karton": "Kartons",
    "Kerze": "Kerzen",
    "Kiste": "Kisten",
    "Packung": "Packungen",
    "Paar": "Paare",
    "Paket": "Pakete",
    "Pflanze": "Pflanzen",
    "Rolle": "Rollen",
    "Schachtel": "Schachteln",
    "Tafel": "Tafeln",
    "Topf": "Töpfe",
    "Tube": "Tuben",
    "Tüte": "Tüten",
}
"""The plurals of common units. Any other word stays as it was typed: a wrong guess would be worse."""

_SINGULARS = {plural: singular for singular, plural in _PLURALS.items()}


def counted_unit(unit: str, number: float) -> str:
    """A unit as it is written after a number, for any form of it that was typed."""
    return _SINGULARS.get(unit, unit) if abs(number) == 1 else _PLURALS.get(unit, unit)
