//! Draws a report as SVG. The axes are one layer, and each contender has a layer, so that it can be hidden.

use anyhow::anyhow;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::lab::bounds::FIGURE_MAX;
use crate::lab::numbers::figure;
use crate::lab::report::{Report, Series, cases as cases_of};
use crate::statistics::Estimate;

const WIDTH: u32 = 900;
const HEIGHT: u32 = 420;
/// Colours that people with any colour vision can distinguish (Okabe and Ito). Yellow is left out, since it is faint on
/// paper.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(128, 128, 128),
];
const INK: RGBColor = RGBColor(110, 110, 110);
/// The widest range of values on a linear axis, as a factor. With a wider range, the axis is logarithmic.
const LINEAR_RANGE_MAX: f64 = 50.0;

/// A plot. It has several layers of the same size.
#[derive(Debug)]
pub(super) struct Plot {
    pub(super) axes: String,
    pub(super) layers: Vec<Layer>,
}

#[derive(Debug)]
pub(super) struct Layer {
    pub(super) contender: String,
    /// The colour of the contender, as `#rrggbb`.
    pub(super) colour: String,
    pub(super) svg: String,
    /// The points of the contender. Each has its pixels and a description.
    pub(super) points: Vec<(i32, i32, String)>,
}

/// A point of a series. It has its position on the axis, its value, and its interval.
struct Point {
    x: f64,
    y: f64,
    low: f64,
    high: f64,
    words: String,
}

/// The data of one contender. It has its points, and the positions and values according to theory.
struct Group {
    points: Vec<Point>,
    theory: Vec<(f64, f64)>,
}

impl Group {
    fn values(&self) -> Vec<f64> {
        let measured = self.points.iter().flat_map(|point| [point.low, point.y, point.high]);
        measured.chain(self.theory.iter().map(|(_, value)| *value)).collect()
    }
}

/// Draws the quantity of a report by case. `estimates` has one entry for each series. Returns `None` if there is
/// nothing to draw.
pub(super) fn plot(
    report: &Report,
    estimates: &[Option<Estimate>],
) -> anyhow::Result<Option<Plot>> {
    let all: Vec<(&Series, Estimate)> = report
        .series
        .iter()
        .zip(estimates)
        .filter(|(series, _)| series.quantity == report.quantity)
        .filter_map(|(series, estimate)| Some((series, (*estimate)?)))
        .collect();
    let cases = cases_of(all.iter().map(|(series, _)| *series));
    let has_places = all.iter().all(|(series, _)| series.x.is_some()) && cases.len() > 1;
    let mut contenders: Vec<&str> = Vec::new();
    for (series, _) in &all {
        if !contenders.contains(&series.contender.as_str()) {
            contenders.push(&series.contender);
        }
    }
    let logarithmic = |values: &[f64]| {
        let (low, high) = range(values);
        low > 0.0 && high / low > LINEAR_RANGE_MAX
    };
    let places: Vec<f64> = all.iter().filter_map(|(series, _)| series.x).collect();
    let (least, greatest) = range(&places);
    let within = least..=greatest;
    let is_log_x = has_places && logarithmic(&places);
    let along = |at: usize, case: &str, place: Option<f64>| -> Option<f64> {
        let shift =
            (at as f64 - (contenders.len() as f64 - 1.0) / 2.0) / (contenders.len() as f64 * 1.6);
        let case = cases.iter().position(|one| *one == case)? as f64;
        Some(match place.filter(|_| has_places) {
            Some(x) if is_log_x => x.log10(),
            Some(x) => x,
            None => case + shift,
        })
    };
    let groups = contenders.iter().enumerate().map(|(at, contender)| {
        let own = all.iter().filter(|(series, _)| series.contender == **contender);
        let points = own.filter_map(|(series, estimate)| {
            Some(point(series, *estimate, along(at, &series.case, series.x)?))
        });
        // Elsewhere, nothing of theory is in view.
        let is_within =
            |place: Option<f64>| !has_places || place.is_some_and(|x| within.contains(&x));
        let models = report.models.iter().filter(|model| model.contender == **contender);
        let theory = models
            .filter(|model| is_within(model.x))
            .filter_map(|model| Some((along(at, &model.case, model.x)?, model.value)));
        Group { points: points.collect(), theory: theory.collect() }
    });
    let groups: Vec<Group> = groups.collect();
    let values: Vec<f64> = groups.iter().flat_map(Group::values).collect();
    // An axis of greater ones has no end, and its marks would be looked for without one.
    let is_bounded = |value: &f64| value.abs() <= FIGURE_MAX;
    if values.is_empty() || !values.iter().chain(&places).all(is_bounded) {
        return Ok(None);
    }
    let is_log_y = logarithmic(&values);
    let frame = Frame::new(&groups, is_log_x, is_log_y, cases, has_places, report);
    let axes = frame.axes()?;
    let layers =
        contenders.iter().zip(&groups).enumerate().map(|(at, (contender, group))| {
            frame.layer(contender, COLOURS[at % COLOURS.len()], group)
        });
    Ok(Some(Plot { axes, layers: layers.collect::<Result<_, _>>()? }))
}

fn range(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    (least, values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

fn point(series: &Series, estimate: Estimate, x: f64) -> Point {
    let words = format!(
        "{}, {}: {} {} [{}, {}]",
        series.contender,
        series.case,
        figure(estimate.value),
        series.unit,
        figure(estimate.low),
        figure(estimate.high)
    );
    Point { x, y: estimate.value, low: estimate.low, high: estimate.high, words }
}

/// The axes and the size that all layers have in common.
struct Frame<'a> {
    x: (f64, f64),
    y: (f64, f64),
    is_log_x: bool,
    is_log_y: bool,
    cases: Vec<&'a str>,
    has_places: bool,
    title: String,
}

type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

impl<'a> Frame<'a> {
    fn new(
        groups: &[Group],
        is_log_x: bool,
        is_log_y: bool,
        cases: Vec<&'a str>,
        has_places: bool,
        report: &Report,
    ) -> Self {
        let points = || groups.iter().flat_map(|group| &group.points);
        let of = |value: f64| if is_log_y { value.log10() } else { value };
        let values = || groups.iter().flat_map(Group::values).map(of);
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(f64::NEG_INFINITY, f64::max);
        let room = ((high - low) * 0.08).max(high.abs() * 0.02).max(1e-9);
        // A figure that is not logarithmic is seen from zero on.
        let y = (if is_log_y { low - room } else { low.min(0.0) }, high + room);
        let x = if has_places {
            let left = points().map(|point| point.x).fold(f64::INFINITY, f64::min);
            let right = points().map(|point| point.x).fold(f64::NEG_INFINITY, f64::max);
            let room = ((right - left) * 0.04).max(right.abs() * 1e-6).max(1e-9);
            (left - room, right + room)
        } else {
            (-0.5, cases.len() as f64 - 0.5)
        };
        let unit = report.series.iter().find(|series| series.quantity == report.quantity);
        let unit = unit.map(|series| series.unit.as_str()).filter(|unit| !unit.is_empty());
        let unit = unit.map(|unit| format!(", {unit}")).unwrap_or_default();
        let title = format!("{}{unit}", report.quantity);
        Self { x, y, is_log_x, is_log_y, cases, has_places, title }
    }

    /// Draws on a chart with the common size and axes.
    fn draw<T>(
        &self,
        draw: impl FnOnce(&mut Chart<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<(String, T)> {
        let mut svg = String::new();
        let value = {
            let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
            let mut chart = ChartBuilder::on(&area)
                .margin(12)
                .margin_right(24)
                .x_label_area_size(32)
                .y_label_area_size(74)
                .build_cartesian_2d(self.x.0..self.x.1, self.y.0..self.y.1)
                .map_err(failed)?;
            let value = draw(&mut chart)?;
            area.present().map_err(failed)?;
            value
        };
        Ok((svg, value))
    }

    fn axes(&self) -> anyhow::Result<String> {
        let shown =
            |value: f64, is_log: bool| figure(if is_log { 10_f64.powf(value) } else { value });
        let case = |x: &f64| {
            let is_middle = (x - x.round()).abs() < 0.01 && *x >= 0.0;
            let case = is_middle.then(|| self.cases.get(x.round() as usize)).flatten();
            case.map_or_else(String::new, |case| (*case).to_owned())
        };
        let along = |x: &f64| if self.has_places { place(*x, self.is_log_x) } else { case(x) };
        let (svg, ()) = self.draw(|chart| {
            let labels = if self.has_places { 8 } else { 2 * self.cases.len() + 1 };
            chart
                .configure_mesh()
                .x_labels(labels)
                .y_labels(7)
                .light_line_style(TRANSPARENT)
                .bold_line_style(INK.mix(0.25))
                .axis_style(INK)
                .label_style(("sans-serif", 13).into_font().color(&INK))
                .x_label_formatter(&along)
                .y_label_formatter(&|y| shown(*y, self.is_log_y))
                .y_desc(self.title.clone())
                .draw()
                .map_err(failed)
        })?;
        Ok(svg)
    }

    fn layer(&self, contender: &str, colour: RGBColor, group: &Group) -> anyhow::Result<Layer> {
        let y = |value: f64| if self.is_log_y { value.log10() } else { value };
        let points = &group.points;
        let (svg, places) = self.draw(|chart| {
            for line in self.theory(group) {
                let line = line.into_iter().map(|(x, value)| (x, y(value)));
                let style = colour.mix(0.6).stroke_width(2);
                chart.draw_series(DashedLineSeries::new(line, 6, 5, style)).map_err(failed)?;
            }
            if self.has_places && group.theory.is_empty() {
                let line = points.iter().map(|point| (point.x, y(point.y)));
                chart.draw_series(LineSeries::new(line, colour.stroke_width(2))).map_err(failed)?;
            }
            let bars = points.iter().map(|point| {
                ErrorBar::new_vertical(
                    point.x,
                    y(point.low),
                    y(point.y),
                    y(point.high),
                    colour.filled(),
                    8,
                )
            });
            chart.draw_series(bars).map_err(failed)?;
            let dots =
                points.iter().map(|point| Circle::new((point.x, y(point.y)), 4, colour.filled()));
            chart.draw_series(dots).map_err(failed)?;
            Ok(points
                .iter()
                .map(|point| chart.backend_coord(&(point.x, y(point.y))))
                .collect::<Vec<_>>())
        })?;
        let points = points.iter().zip(places);
        Ok(Layer {
            contender: contender.to_owned(),
            colour: format!("#{:02x}{:02x}{:02x}", colour.0, colour.1, colour.2),
            svg,
            points: points.map(|(point, (x, y))| (x, y, point.words.clone())).collect(),
        })
    }
}

impl Frame<'_> {
    /// Returns the lines of theory: one line through all positions, or a dash at each case.
    fn theory(&self, group: &Group) -> Vec<Vec<(f64, f64)>> {
        const DASH: f64 = 0.05;
        if self.has_places {
            return vec![group.theory.clone()];
        }
        group.theory.iter().map(|(x, value)| vec![(x - DASH, *value), (x + DASH, *value)]).collect()
    }
}

/// Formats a position on the axis. Large ones are in thousands or millions.
fn place(x: f64, is_log: bool) -> String {
    let value = if is_log { 10_f64.powf(x) } else { x };
    let short = |value: f64| format!("{}", (value * 10.0).round() / 10.0);
    match value {
        _ if value >= 1e6 => format!("{} M", short(value / 1e6)),
        _ if value >= 1e3 => format!("{} k", short(value / 1e3)),
        _ => short(value),
    }
}

fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("drawing a plot: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::report::tests::{report, series};
    use crate::lab::report::{Model, estimates};

    fn plot(report: &Report) -> anyhow::Result<Option<Plot>> {
        super::plot(report, &estimates(&report.series, || {}))
    }

    #[test]
    fn a_plot_of_great_figures_comes_to_an_end() {
        for values in [[1e100, -1e100], [5e-324, 1e100], [-1e100, -1e100], [0.0, -0.0]] {
            for places in [[1e100, -1e100], [1e100, 1e100], [1.0, 1.0 + f64::EPSILON]] {
                let mut report = report();
                report.series = vec![series("TCP", &values), series("TCP", &values)];
                report.series[1].case = "40 B".to_owned();
                for (series, x) in report.series.iter_mut().zip(places) {
                    series.x = Some(x);
                }
                assert!(plot(&report).unwrap().is_some(), "{values:?} at {places:?}");
            }
        }
        // Theory of places where nothing was measured.
        for places in [[1.0, 2.0], [1.0, 1e6]] {
            for x in [Some(1e9), Some(1e100), Some(-1.0), None] {
                let mut report = report();
                report.series = vec![series("TCP", &[1.0, 2.0]), series("TCP", &[1.0, 2.0])];
                report.series[1].case = "40 B".to_owned();
                for (series, x) in report.series.iter_mut().zip(places) {
                    series.x = Some(x);
                }
                report.models = vec![
                    Model::new("20 B", Some(1.0), "TCP", 3.0),
                    Model::new("40 B", x, "TCP", 5.0),
                ];
                let svg = &plot(&report).unwrap().unwrap().layers[0].svg;
                report.models.pop();
                let without = &plot(&report).unwrap().unwrap().layers[0].svg;
                assert_eq!(svg, without, "{x:?} beside {places:?}");
            }
        }
        for beyond in [1e308, f64::INFINITY] {
            let report = Report { series: vec![series("TCP", &[beyond, -1e308])], ..report() };
            assert!(plot(&report).unwrap().is_none());
        }
    }

    #[test]
    fn each_contender_has_a_layer_with_a_point_for_each_case() {
        let mut report = report();
        report.series =
            vec![series("TCP", &[1.0, 2.0, 3.0]), series("WebSocket", &[2.0, 2.5, 3.0])];
        let plot = plot(&report).unwrap().unwrap();
        assert!(plot.axes.contains("round trip, ms"), "{}", plot.axes);
        assert_eq!(plot.layers.len(), 2);
        for layer in &plot.layers {
            assert_eq!(layer.points.len(), 1);
            assert!(layer.svg.contains("<circle"), "{}", layer.svg);
        }
        report.models = vec![Model::new("20 B", Some(20.0), "TCP", 9.0)];
        let with_theory = self::plot(&report).unwrap().unwrap();
        assert_ne!(
            with_theory.layers[0].points[0].1, plot.layers[0].points[0].1,
            "9 ms is in view"
        );
        report.series.clear();
        assert!(self::plot(&report).unwrap().is_none());
    }
}
