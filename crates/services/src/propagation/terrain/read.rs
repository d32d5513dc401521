//! The terrain of a request.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::file_grid::FileGrid;
use super::geo_coordinates::{FileCoordinates, GeoCoordinates};
use super::geotiff::GeoTiff;
use super::grid::HeightGrid;
use super::valley::{VALLEY_BYTES, valley};
use super::{ascii, geotiff};
use crate::propagation::area::{Area, Frame, Spot};
use crate::reader::{Checked, Node, brief};

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

/// The smallest cell in metres of a grid that does not say its unit and whose coordinates can be degrees.
const CELL_M_MIN: f64 = 0.1;

/// The latitude of a pole, and half a cell of a coarse grid.
const LATITUDE_MAX: f64 = 91.0;

/// The largest longitude of files that count them from 0° to 360°, and half a cell.
const LONGITUDE_MAX: f64 = 361.0;

/// The source of the heights, after its check.
#[derive(Clone, Debug)]
pub(in crate::propagation) enum TerrainSource {
    /// A valley that is still to be made.
    Valley { depth_m: f64 },
    /// A grid of the client, the number of its cells without a height, and what is doubtful about it.
    Grid { grid: HeightGrid, unknown: usize, doubts: Vec<String> },
}

impl TerrainSource {
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
                Self::of_file(found, FileCoordinates::Unknown, &text, area)
            }
            Form::GeoTiff => {
                node.object(&["type", "data"])?;
                let data = terrain.require("data")?;
                let (found, kind) = read_geotiff(&data, area)?;
                Self::of_file(found, kind, &data, area)
            }
        }
    }

    /// Puts the grid of a file on the map.
    fn of_file(
        mut found: FileGrid,
        kind: FileCoordinates,
        node: &Node<'_>,
        area: &Area,
    ) -> Checked<Self> {
        check_unit(&found, kind, area).map_err(|detail| node.unfit(detail))?;
        let unknown = found.heights.unknown;
        let mut doubts = std::mem::take(&mut found.doubts);
        let grid = placed(found, area);
        check_covers(&grid, area).map_err(|detail| node.unfit(detail))?;
        doubts.extend(coarse(&grid, area));
        Ok(Self::Grid { grid, unknown, doubts })
    }

    /// Returns what there is to say about the terrain, in sentences.
    pub(in crate::propagation) fn doubts(&self) -> Vec<String> {
        let Self::Grid { unknown, doubts, .. } = self else { return Vec::new() };
        let unknown = (*unknown > 0)
            .then(|| format!("{unknown} cells of the terrain have no height, and count as 0 m"));
        let doubts = doubts.iter().map(|doubt| format!("the terrain {doubt}"));
        unknown.into_iter().chain(doubts).collect()
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
            Self::Grid { grid, unknown, .. } => (grid, unknown),
        }
    }
}

/// Reads a GeoTIFF file in Base64, whose coordinates are those of the area. Returns also their kind.
fn read_geotiff(data: &Node<'_>, area: &Area) -> Checked<(FileGrid, FileCoordinates)> {
    let text = data.any_text()?;
    let bytes = BASE64_STANDARD.decode(text);
    let bytes = bytes.map_err(|error| data.unfit(format!("is no Base64: {error}")))?;
    let GeoTiff { mut grid, coordinates } =
        geotiff::parse(&bytes).map_err(|detail| data.unfit(detail))?;
    let doubt = check_coordinates(&coordinates, area).map_err(|detail| data.unfit(detail))?;
    grid.doubts.extend(doubt);
    Ok((grid, coordinates.kind))
}

/// Checks that coordinates are of the kind and the system that the area has. Returns what is doubtful about them.
fn check_coordinates(
    GeoCoordinates { kind, crs, .. }: &GeoCoordinates,
    area: &Area,
) -> Result<Option<String>, String> {
    match (kind, area.frame) {
        (FileCoordinates::Degrees, Frame::Local { .. }) => {
            Err("has degrees, but the area is in metres: expected one with metres".to_owned())
        }
        (FileCoordinates::Metres, Frame::Wgs84 { .. }) => {
            Err("has metres, but the area is in degrees: expected one with degrees of WGS 84, EPSG 4326".to_owned())
        }
        _ => crs.as_ref().map_or(Ok(None), |crs| crs.check(area)),
    }
}

/// Checks that the coordinates of a file, which may not say their unit, can be those of the area.
fn check_unit(found: &FileGrid, kind: FileCoordinates, area: &Area) -> Result<(), String> {
    let rows = found.heights.metres.len() / found.columns;
    let east = found.west + (found.columns - 1) as f64 * found.cell_width;
    let north = found.south + (rows - 1) as f64 * found.cell_height;
    let can_be_latitudes = found.south >= -LATITUDE_MAX && north <= LATITUDE_MAX;
    let can_be_degrees = can_be_latitudes && found.west >= -LONGITUDE_MAX && east <= LONGITUDE_MAX;
    match area.frame {
        Frame::Local { .. }
            if kind == FileCoordinates::Unknown
                && can_be_degrees
                && found.cell_width < CELL_M_MIN =>
        {
            Err(format!(
                "has cells of {} m, which seem to be degrees, but the area is in metres",
                brief(found.cell_width)
            ))
        }
        Frame::Wgs84 { .. } if !can_be_latitudes => Err(format!(
            "has latitudes from {} to {}, which are no degrees, but the area is in degrees",
            brief(found.south),
            brief(north)
        )),
        _ => Ok(()),
    }
}

/// Returns the doubt about a grid whose cells are larger than the area: the area may be in another unit than the grid.
fn coarse(grid: &HeightGrid, area: &Area) -> Option<String> {
    let is_coarse = grid.x_step_m > area.width_m && grid.y_step_m > area.height_m;
    is_coarse.then(|| {
        let [width, height] = [grid.x_step_m, grid.y_step_m].map(|side_m| brief(side_m.round()));
        format!("has cells of {width} m x {height} m, each larger than the area: is its unit that of the area?")
    })
}

/// Puts a grid on the map. Longitudes may count from 0° to 360°.
fn placed(found: FileGrid, area: &Area) -> HeightGrid {
    let FileGrid { mut west, south, cell_width, cell_height, columns, heights, .. } = found;
    let rows = heights.metres.len() / columns;
    let last = |count: usize, side: f64| (count - 1) as f64 * side;
    if let Frame::Wgs84 { .. } = area.frame {
        let middle = west + last(columns, cell_width) / 2.0;
        west += 360.0 * ((area.middle().0 - middle) / 360.0).round();
    }
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
