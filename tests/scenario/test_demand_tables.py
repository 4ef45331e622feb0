"""Tables of demand beside a scenario that are damaged."""

from pathlib import Path

import pandas as pd
import pytest

from routesim.errors import InputError
from routesim.scenario.demands import DemandChoice


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_a_damaged_table_of_demand_is_an_error_of_one_line(ending: str, tmp_path: Path) -> None:
    """What pyarrow says of a damaged Parquet file has several lines."""
    file = tmp_path / f"trips{ending}"
    pd.DataFrame({"origin": [1], "destination": [2], "departure_s": [3.0]}).to_parquet(file)
    raw = file.read_bytes()
    file.write_bytes(raw[:4] + b"\xff" * (len(raw) - 12) + raw[-8:])
    demand = DemandChoice(trips=str(file))
    with pytest.raises(InputError, match="cannot read the table") as caught:
        demand.make(None, None, None)  # type: ignore[arg-type]  # no roads are needed to read trips
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1100
