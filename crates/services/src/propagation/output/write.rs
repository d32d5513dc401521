//! All outputs of a coverage.

use anemone_hub::run::RunFailure;
use anemone_hub::run::Stopped;
use serde_json::{Map, Value};

use super::csv::csv;
use super::field::Field;
use super::geojson::geojson;
use super::png::{Light, png};
use crate::propagation::coverage::Coverage;
use crate::propagation::encode::base64;
use crate::propagation::measure::Measure;
use crate::propagation::output_options::{Format, OutputOptions};

/// Writes the outputs by their names: GeoJSON as an object, `null` if its contours are too long; CSV as a text; PNG in
/// Base64.
///
/// # Errors
/// The end that `check` returned, or an image that could not be made.
pub(in crate::propagation) fn write(
    coverage: &Coverage,
    field: &Field,
    options: &OutputOptions,
    check: impl Fn() -> Result<(), Stopped>,
) -> Result<Value, RunFailure> {
    let mut outputs = Map::new();
    for format in &options.formats {
        check()?;
        let (name, value) = match format {
            Format::GeoJson => {
                ("geojson", geojson(coverage, field, options, &check)?.unwrap_or_default())
            }
            Format::Csv => ("csv", csv(coverage, field).into()),
            Format::Png => {
                let light = match coverage.measures[options.measure] {
                    Measure::LossDb => Light::Smallest,
                    Measure::ReceivedDbm | Measure::FieldDbuvM => Light::Largest,
                };
                let image = png(&field.measures[options.measure], field.columns, light);
                let image = image.map_err(|error| RunFailure::new(format!("no image: {error}")))?;
                ("png", base64(&image).into())
            }
        };
        outputs.insert(name.to_owned(), value);
    }
    Ok(outputs.into())
}
