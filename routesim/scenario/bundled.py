"""Where the bundled scenarios are; nothing heavy, so that a shell can complete their names."""

from pathlib import Path


def scenario_folder() -> Path:
    """Return the folder of bundled scenarios: inside the package when installed, beside it in a checkout."""
    package = Path(__file__).parents[1]
    return package / "scenarios" if (package / "scenarios").is_dir() else package.parent / "scenarios"


def scenario_names() -> list[str]:
    """Return the names of the bundled scenarios."""
    return sorted(path.stem for path in scenario_folder().glob("*.toml"))
