//! The waits of a normal client beside floods.

use std::fmt::Write as _;
use std::time::Duration;

use super::{NONE, figure, show};
use crate::experiment::hostile::floods::FloodOutcome;
use crate::goals::FLOOD_WAIT_P99;

/// One row for each kind and number.
pub(crate) fn of_floods(outcomes: &[FloodOutcome], time: Duration) -> String {
    let mut text = format!(
        "\n### What a normal client waits for beside floods, ms\n\n\
         | beside | connections | its messages a second | MB/s | echo: p50 | p99 | p99.9 | longest | GET: p50 | p99 | \
         p99.9 | longest | p99 at most {} |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n",
        FLOOD_WAIT_P99.as_millis()
    );
    for outcome in outcomes {
        let ms = |time: Duration| figure(time.as_secs_f64() * 1e3);
        let mut waits = Vec::new();
        let mut is_met = true;
        for of in [&outcome.echo, &outcome.get] {
            let p99 = of.times.percentile(0.99);
            is_met &= p99.is_some_and(|p99| p99 <= FLOOD_WAIT_P99);
            waits.extend([0.5, 0.99, 0.999].map(|share| show(of.times.percentile(share), ms)));
            waits.push(if of.count == 0 { NONE.to_owned() } else { ms(of.longest) });
        }
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            outcome.flood,
            outcome.connections,
            figure(outcome.messages),
            figure(outcome.bytes / 1e6),
            waits.join(" | "),
            if is_met { "met" } else { "missed" },
        );
    }
    text + &format!(
        "\nOnce, for {} s each, each at a server of its own; an echo of 125 B and a `GET /clock` every 15 ms, timed from \
         when they were planned.\n",
        time.as_secs()
    )
}
