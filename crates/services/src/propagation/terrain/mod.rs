//! Terrain: a grid of heights above the sea.

mod ascii;
mod grid;
mod read;
mod valley;

pub(super) use self::grid::HeightGrid;
pub(super) use self::read::TerrainSource;
