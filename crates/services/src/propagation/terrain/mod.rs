//! Terrain: a grid of heights above the sea.

mod ascii;
mod cells;
mod file_grid;
mod gdal_metadata;
mod geo_coordinates;
mod geo_heights;
mod geo_keys;
mod geotiff;
mod grid;
mod metered;
mod read;
mod tiff_directory;
mod valley;

pub(super) use self::grid::HeightGrid;
pub(super) use self::read::{GEOTIFF, TerrainSource};
