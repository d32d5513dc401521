//! All outputs of a coverage.

use anemone_hub::run::{RunFailure, Stopped};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use serde_json::value::RawValue;

use super::field::Field;
use super::png::{Light, png};
use super::{csv, geojson, png};
use crate::propagation::coverage::Coverage;
use crate::propagation::measure::Measure;
use crate::propagation::output_options::{Format, OutputOptions};

/// The outputs by their names, as texts of JSON: a tree of values would take much more memory.
#[derive(Debug, Default, Serialize)]
pub(in crate::propagation) struct Outputs {
    /// An object, `null` if its contours are too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    geojson: Option<Box<RawValue>>,
    /// A text.
    #[serde(skip_serializing_if = "Option::is_none")]
    csv: Option<Box<RawValue>>,
    /// An image in Base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    png: Option<String>,
}

/// Returns about as many bytes as the outputs take besides the values. All are kept, and then written into one text, which
/// grows.
pub(in crate::propagation) fn bytes(coverage: &Coverage, options: &OutputOptions) -> usize {
    let of_format = |format: &Format| match format {
        Format::GeoJson => geojson::bytes(coverage, options),
        Format::Csv => csv::bytes(coverage),
        Format::Png => png::bytes(coverage.area.points()),
    };
    options.formats.iter().map(of_format).sum::<usize>() * 10 / 3
}

/// Writes the outputs.
///
/// # Errors
/// The end that `check` returned, or an output that could not be made.
pub(in crate::propagation) fn write(
    coverage: &Coverage,
    field: Field,
    options: &OutputOptions,
    check: impl Fn() -> Result<(), Stopped>,
) -> Result<Outputs, RunFailure> {
    let mut outputs = Outputs::default();
    for format in &options.formats {
        check()?;
        match format {
            Format::GeoJson => {
                let text = geojson::geojson(coverage, &field, options, &check)?;
                outputs.geojson = Some(raw(text.unwrap_or_else(|| "null".to_owned()))?);
            }
            Format::Csv => outputs.csv = Some(raw(csv::csv(coverage, &field, &check)?)?),
            Format::Png => {
                let light = match coverage.measures[options.measure] {
                    Measure::LossDb => Light::Smallest,
                    Measure::ReceivedDbm | Measure::FieldDbuvM => Light::Largest,
                };
                let values = &field.measures[options.measure];
                let image = png(values, field.columns, light, &check)?;
                outputs.png = Some(BASE64_STANDARD.encode(image));
            }
        }
    }
    Ok(outputs)
}

fn raw(text: String) -> Result<Box<RawValue>, RunFailure> {
    RawValue::from_string(text).map_err(|error| RunFailure::new(error.to_string()))
}
