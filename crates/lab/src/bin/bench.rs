//! `bench`: what a server costs, beside a bare TCP echo. See `bench --help`.

use anemone_lab::bench::{Options, run};
use clap::Parser as _;

fn main() -> anyhow::Result<()> {
    run(&Options::parse())
}
