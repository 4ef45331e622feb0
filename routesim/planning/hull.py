"""The concave hull of points over a grid: the least concave function that is nowhere below them.

The greatest convex function below some points is the hull of their negatives.
"""

import numpy as np

from routesim.arrays import Floats, Ints
from routesim.kernels import kernel, lean_kernel


@lean_kernel
def hull_corners(grid: Floats, row: Floats, corners: Ints) -> int:
    """Write down the places of the corners of the hull of `row` over `grid`, ascending; return how many there are."""
    size = 0
    for point in range(row.size):
        # A point on or below the line from the corner before it to this point is no corner.
        while size >= 2:
            left, middle = corners[size - 2], corners[size - 1]
            rise = (row[middle] - row[left]) * (grid[point] - grid[left])
            if rise > (row[point] - row[left]) * (grid[middle] - grid[left]):
                break
            size -= 1
        corners[size] = point
        size += 1
    return size


@kernel
def raise_to_hull(grid: Floats, rows: Floats) -> None:
    """Replace each row of heights over `grid` by its concave hull."""
    corners = np.empty(grid.size, np.int64)
    for row in rows:
        size = hull_corners(grid, row, corners)
        for piece in range(size - 1):
            left, right = corners[piece], corners[piece + 1]
            slope = (row[right] - row[left]) / (grid[right] - grid[left])
            for point in range(left + 1, right):
                row[point] = row[left] + slope * (grid[point] - grid[left])
