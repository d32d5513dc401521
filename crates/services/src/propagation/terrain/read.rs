//! The terrain of a request.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::file_grid::FileGrid;
use super::geo_keys::FileCoordinates;
use super::grid::HeightGrid;
use super::valley::{VALLEY_BYTES, valley};
use super::{ascii, geotiff};
use crate::propagation::area::{Area, Frame, Spot};
use crate::reader::{Checked, Node, brief};

/// The forms of terrain in a request.
#[derive(Clone, Copy, Debug)]
enum Form {
    Valley,
    EsriAscii,
    GeoTiff,
}

/// The name of the form whose few bytes can be many cells.
pub(in crate::propagation) const GEOTIFF: &str = "geotiff";

const FORMS: [(&str, Form); 3] =
    [("valley", Form::Valley), ("esri-ascii", Form::EsriAscii), (GEOTIFF, Form::GeoTiff)];

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
        let terrain = node.object(&["type", "depth_m", "text", "data"])?;
        match terrain.word("type", &FORMS)? {
            Form::Valley => {
                node.object(&["type", "depth_m"])?;
                let depth_m = terrain.number_or("depth_m", 400.0, 1.0..=3_000.0, "m")?;
                Ok(Self::Valley { depth_m })
            }
            Form::EsriAscii => {
                node.object(&["type", "text"])?;
                let text = terrain.require("text")?;
                let found = ascii::parse(text.any_text()?).map_err(|detail| text.unfit(detail))?;
                Self::of_file(found, &text, area)
            }
            Form::GeoTiff => {
                node.object(&["type", "data"])?;
                let data = terrain.require("data")?;
                Self::of_file(read_geotiff(&data, area)?, &data, area)
            }
        }
    }

    /// Puts the grid of a file on the map.
    fn of_file(found: FileGrid, node: &Node<'_>, area: &Area) -> Checked<Self> {
        let unknown = found.heights.unknown;
        let grid = placed(found, area);
        check_covers(&grid, area).map_err(|detail| node.unfit(detail))?;
        Ok(Self::Grid { grid, unknown })
    }

    /// Returns the bytes of the heights: those that it has, and those that it will have.
    pub(in crate::propagation) fn bytes(&self) -> [usize; 2] {
        match self {
            Self::Valley { .. } => [0, VALLEY_BYTES],
            Self::Grid { grid, .. } => [grid.bytes(); 2],
        }
    }

    /// Returns the heights, and the number of those that are unknown.
    pub(in crate::propagation) fn grid(self, area: &Area) -> (HeightGrid, usize) {
        match self {
            Self::Valley { depth_m } => (valley(area, depth_m), 0),
            Self::Grid { grid, unknown } => (grid, unknown),
        }
    }
}

/// Reads a GeoTIFF file in Base64, whose coordinates are of the kind that the area has.
fn read_geotiff(data: &Node<'_>, area: &Area) -> Checked<FileGrid> {
    let text = data.any_text()?;
    let bytes = BASE64_STANDARD.decode(text);
    let bytes = bytes.map_err(|error| data.unfit(format!("is no Base64: {error}")))?;
    let (found, coordinates) = geotiff::parse(&bytes).map_err(|detail| data.unfit(detail))?;
    match (coordinates, area.frame) {
        (FileCoordinates::Degrees, Frame::Local { .. }) => {
            Err(data.unfit("has degrees, but the area is in metres: expected one with metres"))
        }
        (FileCoordinates::Metres, Frame::Wgs84 { .. }) => {
            Err(data.unfit("has metres, but the area is in degrees: expected one with degrees of WGS 84, EPSG 4326"))
        }
        _ => Ok(found),
    }
}

/// Puts a grid on the map.
fn placed(found: FileGrid, area: &Area) -> HeightGrid {
    let FileGrid { west, south, cell_width, cell_height, columns, heights } = found;
    let rows = heights.metres.len() / columns;
    let last = |count: usize, side: f64| (count - 1) as f64 * side;
    let south_west = area.frame.spot(west, south);
    let north_east =
        area.frame.spot(west + last(columns, cell_width), south + last(rows, cell_height));
    HeightGrid {
        corner: Spot { x_m: south_west.x_m, y_m: north_east.y_m },
        x_step_m: (north_east.x_m - south_west.x_m) / (columns - 1) as f64,
        y_step_m: (north_east.y_m - south_west.y_m) / (rows - 1) as f64,
        columns,
        heights_m: heights.metres,
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
