//! The values of the points of a tile.

use anemone_hub::run::Stopped;

use super::coverage::Coverage;
use super::loss::{Land, Scratch};
use super::measure::Measure;
use super::model::field_dbuv_m;
use super::tiles::Tile;
use super::warning::Outside;

/// The values of a tile, in the order of its points.
#[derive(Clone, Debug)]
pub(super) struct Values {
    /// The values of each quantity of the coverage.
    pub(super) measures: Vec<Vec<f32>>,
    /// The transmitter that each point receives best.
    pub(super) servers: Vec<u8>,
    /// The points outside the distances of the model, by transmitter.
    pub(super) outside: Vec<Outside>,
}

#[derive(Clone, Copy, Debug)]
struct Best {
    server: u8,
    loss_db: f64,
    received_dbm: f64,
}

impl Values {
    /// Computes a tile. Asks with `check` whether to go on: before each row, and before each point if points are slow.
    ///
    /// # Errors
    /// The end that `check` returned.
    pub(super) fn compute(
        coverage: &Coverage,
        land: &Land,
        tile: Tile,
        scratch: &mut Scratch,
        check: impl Fn() -> Result<(), Stopped>,
    ) -> Result<Self, Stopped> {
        let mut values = Self {
            measures: vec![Vec::new(); coverage.measures.len()],
            servers: Vec::new(),
            outside: vec![Outside::default(); coverage.paths.len()],
        };
        let is_slow = land.is_slow();
        for (row, columns) in tile.rows() {
            check()?;
            for column in columns {
                if is_slow {
                    check()?;
                }
                values.point(coverage, land, (column, row), scratch);
            }
        }
        Ok(values)
    }

    pub(super) fn len(&self) -> usize {
        self.servers.len()
    }

    fn point(
        &mut self,
        coverage: &Coverage,
        land: &Land,
        at: (usize, usize),
        scratch: &mut Scratch,
    ) {
        let spot = coverage.area.spot(at.0, at.1);
        let mut best: Option<Best> = None;
        for (server, path) in coverage.paths.iter().enumerate() {
            let transmitter = &coverage.transmitters[server];
            let loss = path.loss(spot, land, scratch);
            if path.model.distances().is_some_and(|range| !range.contains(loss.km)) {
                self.outside[server].count(loss.km);
            }
            let less_db =
                transmitter.pattern.less_db(spot.x_m - path.from.x_m, spot.y_m - path.from.y_m);
            let sent_dbm = transmitter.power_dbm + transmitter.gain_dbi - less_db;
            let received_dbm = sent_dbm - loss.db + coverage.receiver.gain_dbi;
            if best.is_none_or(|best| received_dbm > best.received_dbm) {
                // There are at most 16 transmitters.
                best = Some(Best { server: server as u8, loss_db: loss.db, received_dbm });
            }
        }
        let Some(best) = best else { return };
        self.servers.push(best.server);
        for (measure, values) in coverage.measures.iter().zip(&mut self.measures) {
            values.push(match measure {
                Measure::LossDb => best.loss_db,
                Measure::ReceivedDbm => best.received_dbm,
                Measure::FieldDbuvM => {
                    let mhz = coverage.paths[usize::from(best.server)].mhz;
                    field_dbuv_m(best.received_dbm - coverage.receiver.gain_dbi, mhz)
                }
            } as f32);
        }
    }
}
