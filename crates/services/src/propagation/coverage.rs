//! A coverage, as its request was checked.

use std::ops::RangeInclusive;

use serde::Serialize;
use serde_json::Value;

use super::antenna::Transmitter;
use super::area::Area;
use super::buildings::Buildings;
use super::loss::{Diffraction, Model, Path, Sight};
use super::measure::Measure;
use super::model::{
    City, Cost231Hata, Environment, FreeSpace, Hata, Polarization, Quantity, Reflection, TwoRay,
    WalfischIkegami,
};
use super::output_options::OutputOptions;
use super::street::{LineOfSight, Streets};
use super::terrain::TerrainSource;
use super::warning::Warning;
use crate::reader::{Checked, Members, Node};

const MEMBERS: [&str; 13] = [
    "area",
    "step_m",
    "transmitters",
    "receiver",
    "model",
    "environment",
    "ground",
    "diffraction",
    "terrain",
    "street",
    "buildings",
    "quantities",
    "output",
];

/// The height of a receiver's antenna: at least what a hand holds above water.
const RECEIVER_M: RangeInclusive<f64> = 0.1..=1_000.0;

/// The receiver at each point.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Receiver {
    pub(super) height_m: f64,
    pub(super) gain_dbi: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Coverage {
    pub(super) area: Area,
    pub(super) transmitters: Vec<Transmitter>,
    pub(super) paths: Vec<Path>,
    pub(super) receiver: Receiver,
    pub(super) measures: Vec<Measure>,
    pub(super) terrain: Option<TerrainSource>,
    /// Those whose roofs hide points.
    pub(super) buildings: Option<Buildings>,
    pub(super) streets: Option<Streets>,
    pub(super) output: Option<OutputOptions>,
    pub(super) warnings: Vec<Warning>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ModelName {
    FreeSpace,
    TwoRay,
    Hata,
    Cost231Hata,
    WalfischIkegami,
}

const MODELS: [(&str, ModelName); 5] = [
    ("free-space", ModelName::FreeSpace),
    ("two-ray", ModelName::TwoRay),
    ("hata", ModelName::Hata),
    ("cost231-hata", ModelName::Cost231Hata),
    ("walfisch-ikegami", ModelName::WalfischIkegami),
];

/// The properties that all transmitters share.
struct Choice {
    model: ModelName,
    environment: Environment,
    reflection: Reflection,
    diffraction: Diffraction,
    mobile_m: f64,
}

impl Coverage {
    /// Reads a request. Nothing is allocated by a number of it before that is checked.
    ///
    /// # Errors
    /// A value that does not fit, with its place and the allowed range.
    pub(super) fn read(request: &Value) -> Checked<Self> {
        let request = Node::root(request).object(&MEMBERS)?;
        let area = Area::read(&request)?;
        let transmitters = Transmitter::read_all(&request, &area)?;
        let receiver = read_receiver(&request)?;
        let terrain = request.get("terrain");
        let terrain = terrain.map(|node| TerrainSource::read(&node, &area)).transpose()?;
        let choice = Choice::read(&request, receiver.height_m, terrain.is_some())?;
        let buildings = request.get("buildings");
        let buildings = buildings.map(|node| Buildings::read(&node, &area)).transpose()?;
        let streets = if choice.model == ModelName::WalfischIkegami {
            let streets = Streets::read(&request, buildings.as_ref())?;
            check_roofs(&request, &streets, receiver.height_m)?;
            Some(streets)
        } else {
            Streets::check(&request, buildings.is_some())?;
            None
        };
        let path = |of: &Transmitter| choice.path(of, streets.as_ref());
        let paths: Vec<_> = transmitters.iter().map(path).collect();
        let measures = read_measures(&request)?;
        let output = OutputOptions::read(&request, &area, &measures)?;
        let doubts = buildings.as_ref().filter(|_| streets.is_some()).map(Buildings::doubts);
        let doubts = doubts.unwrap_or_default().to_vec();
        let sees = |streets: &Streets| streets.line_of_sight == LineOfSight::Buildings;
        let buildings = buildings.filter(|_| streets.as_ref().is_some_and(sees));
        let mut warnings = warnings(&paths, terrain.as_ref());
        warnings.extend(choice.between_formulas(&transmitters));
        warnings.extend(doubts.into_iter().map(Warning::of_input));
        Ok(Self {
            area,
            transmitters,
            paths,
            receiver,
            measures,
            terrain,
            buildings,
            streets,
            output,
            warnings,
        })
    }
}

impl Choice {
    fn read(request: &Members<'_>, mobile_m: f64, has_terrain: bool) -> Checked<Self> {
        let model = request.word("model", &MODELS)?;
        let environment =
            request.word_or("environment", Environment::Urban, environments(model))?;
        let all = [
            ("none", Diffraction::None),
            ("bullington", Diffraction::Bullington),
            ("deygout", Diffraction::Deygout),
        ];
        let (usual, known) = if has_terrain {
            (Diffraction::Deygout, &all[..])
        } else {
            (Diffraction::None, &all[..1])
        };
        if let (Some(node), false) = (request.get("diffraction"), has_terrain) {
            node.word(&all)?;
            node.word(known).map_err(|_| node.unfit("needs terrain, which is missing"))?;
        }
        Ok(Self {
            model,
            environment,
            reflection: read_reflection(request)?,
            diffraction: request.word_or("diffraction", usual, known)?,
            mobile_m,
        })
    }

    /// Returns the warnings for transmitters in the gap between Hata's formulas for a large city.
    fn between_formulas(&self, transmitters: &[Transmitter]) -> impl Iterator<Item = Warning> {
        let [low, high] = Hata::LARGE_CITY_GAP_MHZ;
        let has_gap = self.model == ModelName::Hata && self.environment == Environment::UrbanLarge;
        let found = transmitters.iter().map(|of| of.frequency_mhz).enumerate();
        let found = found.filter(move |(_, mhz)| has_gap && low < *mhz && *mhz < high);
        found.map(move |(at, mhz)| {
            let detail = format!(
                "the frequency is {mhz} MHz, and Hata's formulas for a large city are for up to {low} MHz and from {high} MHz on: the nearer one is taken"
            );
            Warning { transmitter: Some(at), range: None, points: None, detail }
        })
    }

    fn path(&self, of: &Transmitter, streets: Option<&Streets>) -> Path {
        let (mhz, base_m, mobile_m) = (of.frequency_mhz, of.height_m, self.mobile_m);
        let is_large = self.environment == Environment::UrbanLarge;
        let city = if is_large { City::Metropolitan } else { City::Medium };
        let free_space = FreeSpace::new(mhz);
        let model = match (self.model, streets) {
            (ModelName::TwoRay, _) => {
                Model::TwoRay(TwoRay::new(mhz, base_m, mobile_m, self.reflection))
            }
            (ModelName::Hata, _) => Model::Hata(Hata::new(mhz, base_m, mobile_m, self.environment)),
            (ModelName::Cost231Hata, _) => {
                Model::Cost231Hata(Cost231Hata::new(mhz, base_m, mobile_m, city))
            }
            (ModelName::WalfischIkegami, Some(streets)) => Model::WalfischIkegami {
                over: WalfischIkegami::new(mhz, base_m, mobile_m, &streets.street(city)),
                seen: super::model::StreetCanyon::new(mhz),
                sight: match streets.line_of_sight {
                    LineOfSight::Never => Sight::Never,
                    LineOfSight::Always => Sight::Always,
                    LineOfSight::Buildings => Sight::Roofs,
                },
            },
            // Each choice of the urban model has streets.
            (ModelName::FreeSpace, _) | (ModelName::WalfischIkegami, None) => Model::FreeSpace,
        };
        Path {
            model,
            diffraction: self.diffraction,
            free_space,
            mhz,
            from: of.spot,
            base_m,
            mobile_m,
        }
    }
}

/// Returns the surroundings that a model knows. COST 231 has no open country.
fn environments(model: ModelName) -> &'static [(&'static str, Environment)] {
    match model {
        ModelName::Cost231Hata | ModelName::WalfischIkegami => &Environment::NAMES[..3],
        _ => &Environment::NAMES,
    }
}

fn read_receiver(request: &Members<'_>) -> Checked<Receiver> {
    let usual = Receiver { height_m: 1.5, gain_dbi: 0.0 };
    let Some(node) = request.get("receiver") else { return Ok(usual) };
    let receiver = node.object(&["height_m", "gain_dbi"])?;
    Ok(Receiver {
        height_m: receiver.number_or("height_m", usual.height_m, RECEIVER_M, "m")?,
        gain_dbi: receiver.number_or("gain_dbi", usual.gain_dbi, -50.0..=60.0, "dBi")?,
    })
}

fn read_reflection(request: &Members<'_>) -> Checked<Reflection> {
    let Some(node) = request.get("ground") else { return Ok(Reflection::Total) };
    let ground = node.object(&["permittivity", "conductivity_s_m", "polarization"])?;
    let polarizations =
        [("vertical", Polarization::Vertical), ("horizontal", Polarization::Horizontal)];
    Ok(Reflection::Ground {
        permittivity: ground.number_or("permittivity", 15.0, 1.0..=100.0, "")?,
        conductivity_s_m: ground.number_or("conductivity_s_m", 0.005, 0.0..=10.0, "S/m")?,
        polarization: ground.word_or("polarization", Polarization::Vertical, &polarizations)?,
    })
}

fn read_measures(request: &Members<'_>) -> Checked<Vec<Measure>> {
    let Some(node) = request.get("quantities") else { return Ok(vec![Measure::ReceivedDbm]) };
    node.words(&Measure::NAMES)
}

/// Checks that the receiver is below the roofs: the urban model takes the logarithm of the difference.
fn check_roofs(request: &Members<'_>, streets: &Streets, receiver_m: f64) -> Checked<()> {
    let roof_m = streets.building_height_m;
    if receiver_m < roof_m {
        return Ok(());
    }
    let detail = format!("the receiver at {receiver_m} m must be below the roofs at {roof_m} m");
    Err(match request.get("receiver") {
        Some(receiver) => receiver.open_object()?.unfit("height_m", detail),
        None => request.unfit("street", detail),
    })
}

/// Returns the warnings that need no point.
fn warnings(paths: &[Path], terrain: Option<&TerrainSource>) -> Vec<Warning> {
    let of_path = |(at, path): (usize, &Path)| {
        Warning::of_values(at, path.model.ranges(), |quantity| match quantity {
            Quantity::FrequencyMhz => Some(path.mhz),
            Quantity::BaseHeightM => Some(path.base_m),
            Quantity::MobileHeightM => Some(path.mobile_m),
            Quantity::DistanceKm => None,
        })
    };
    let mut warnings: Vec<_> = paths.iter().enumerate().flat_map(of_path).collect();
    let doubts = terrain.map(TerrainSource::doubts).unwrap_or_default();
    warnings.extend(doubts.into_iter().map(Warning::of_input));
    warnings
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use anemone_hub::run::RunRefusal;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    type Ranges = BTreeMap<String, [f64; 2]>;

    /// The ranges that the service and its page share.
    #[derive(Deserialize)]
    struct SharedRanges {
        /// Those for which each model is made, by its name and the name of the quantity.
        validity: BTreeMap<String, Ranges>,
        fields: Vec<FieldRanges>,
    }

    /// A document, and the allowed values of its members, by their pointers.
    #[derive(Deserialize)]
    struct FieldRanges {
        document: Value,
        bounds: Ranges,
    }

    /// The page has these ranges in code of its own: `tests/web/propagation.test.js` reads the same file.
    fn shared() -> SharedRanges {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let cases = fs::read(root.join("tests/cases/propagation.json")).unwrap();
        serde_json::from_slice(&cases).unwrap()
    }

    #[test]
    fn each_model_is_made_for_the_ranges_that_the_page_shows() {
        let SharedRanges { validity, fields } = shared();
        assert_eq!(validity.len(), MODELS.len());
        for (name, expected) in validity {
            let mut request = fields[0].document.clone();
            request["model"] = json!(name);
            let coverage = Coverage::read(&request).unwrap();
            let ranges = coverage.paths[0].model.ranges().iter();
            let found: Ranges = ranges
                .map(|range| {
                    let quantity = serde_json::to_value(range.quantity).unwrap();
                    (quantity.as_str().unwrap().to_owned(), [range.min, range.max])
                })
                .collect();
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn each_number_has_the_range_that_the_page_allows() {
        for FieldRanges { document, bounds } in shared().fields {
            Coverage::read(&document).unwrap();
            for (pointer, [min, max]) in bounds {
                let is_out_of_range = |value: f64| {
                    let mut request = document.clone();
                    *request.pointer_mut(&pointer).unwrap() = json!(value);
                    // A value that is within its range may still not fit to another one.
                    matches!(
                        Coverage::read(&request),
                        Err(RunRefusal::Unprocessable { pointer: Some(at), detail })
                            if at == pointer && detail.starts_with("expected a number from ")
                    )
                };
                let values = [min - 1e-6, min, max, max + 1e-6];
                assert_eq!(values.map(is_out_of_range), [true, false, false, true], "{pointer}");
            }
        }
    }

    #[test]
    fn between_the_formulas_for_a_large_city_there_is_a_warning() {
        let document = shared().fields.remove(0).document;
        for (model, environment, mhz, count) in [
            ("hata", "urban-large", 200.0, 0),
            ("hata", "urban-large", 200.1, 1),
            ("hata", "urban-large", 399.9, 1),
            ("hata", "urban-large", 400.0, 0),
            ("hata", "urban", 300.0, 0),
            ("cost231-hata", "urban-large", 300.0, 0),
        ] {
            let mut request = document.clone();
            request["model"] = json!(model);
            request["environment"] = json!(environment);
            request["transmitters"][0]["frequency_mhz"] = json!(mhz);
            let found = Coverage::read(&request).unwrap().warnings;
            let found = found.iter().filter(|one| one.detail.contains("for a large city"));
            assert_eq!(found.count(), count, "{model} {environment} {mhz}");
        }
    }
}
