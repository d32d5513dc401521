//! The terrain of a request.

use super::ascii::{AsciiGrid, parse};
use super::grid::HeightGrid;
use super::valley::valley;
use crate::propagation::area::{Area, Spot};
use crate::reader::{Checked, Node, brief};

/// The source of the heights, after its check.
#[derive(Clone, Debug)]
pub(in crate::propagation) enum TerrainSource {
    /// A valley that is still to be made.
    Valley { depth_m: f64 },
    /// A grid of the client, and the number of its cells without a height.
    Grid { grid: HeightGrid, unknown: usize },
}

impl TerrainSource {
    /// Reads the terrain.
    pub(in crate::propagation) fn read(node: &Node<'_>, area: &Area) -> Checked<Self> {
        let members = ["type", "depth_m", "text"];
        let terrain = node.object(&members)?;
        if terrain.word("type", &[("valley", true), ("esri-ascii", false)])? {
            node.object(&members[..2])?;
            return Ok(Self::Valley {
                depth_m: terrain.number_or("depth_m", 400.0, 1.0..=3_000.0, "m")?,
            });
        }
        node.object(&["type", "text"])?;
        let text = terrain.require("text")?;
        let found = parse(text.any_text()?).map_err(|detail| text.unfit(detail))?;
        let grid = placed(&found, area);
        check_covers(&grid, area).map_err(|detail| text.unfit(detail))?;
        Ok(Self::Grid { grid, unknown: found.unknown })
    }

    /// Returns the heights, and the number of those that are unknown.
    pub(in crate::propagation) fn grid(self, area: &Area) -> (HeightGrid, usize) {
        match self {
            Self::Valley { depth_m } => (valley(area, depth_m), 0),
            Self::Grid { grid, unknown } => (grid, unknown),
        }
    }
}

/// Puts a grid on the map.
fn placed(found: &AsciiGrid, area: &Area) -> HeightGrid {
    let rows = found.heights_m.len() / found.columns;
    let last = |count: usize| (count - 1) as f64 * found.cell;
    let south_west = area.frame.spot(found.west, found.south);
    let north_east = area.frame.spot(found.west + last(found.columns), found.south + last(rows));
    HeightGrid {
        corner: Spot { x_m: south_west.x_m, y_m: north_east.y_m },
        x_step_m: (north_east.x_m - south_west.x_m) / (found.columns - 1) as f64,
        y_step_m: (north_east.y_m - south_west.y_m) / (rows - 1) as f64,
        columns: found.columns,
        heights_m: found.heights_m.clone(),
    }
}

/// Checks that a grid covers the area. Half a cell at the edges may be missing, since heights are those of the middles of cells.
fn check_covers(grid: &HeightGrid, area: &Area) -> Result<(), String> {
    let (half_x, half_y) = (grid.x_step_m / 2.0 + 1e-3, grid.y_step_m / 2.0 + 1e-3);
    let east_m = grid.corner.x_m + (grid.columns - 1) as f64 * grid.x_step_m;
    let south_m = grid.corner.y_m - (grid.rows() - 1) as f64 * grid.y_step_m;
    let covers = grid.corner.x_m <= half_x
        && east_m >= area.width_m - half_x
        && south_m <= half_y
        && grid.corner.y_m >= area.height_m - half_y;
    if covers {
        return Ok(());
    }
    let low = area.frame.coordinates(Spot { x_m: grid.corner.x_m - half_x, y_m: south_m - half_y });
    let high = area.frame.coordinates(Spot { x_m: east_m + half_x, y_m: grid.corner.y_m + half_y });
    let [east, north] = area.frame.names();
    Err(format!(
        "does not cover the area: {east} from {} to {}, {north} from {} to {}",
        brief(low.0),
        brief(high.0),
        brief(low.1),
        brief(high.1)
    ))
}
