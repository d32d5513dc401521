//! Runs every committed seed. A crash that fuzzing finds is added to `seeds/` and stays fixed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anemone_fuzz::TARGETS;

#[test]
fn every_seed_runs_through_its_target() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let folders = fs::read_dir(&seeds).unwrap().map(|entry| entry.unwrap().file_name());
    let folders: BTreeSet<String> = folders.map(|name| name.into_string().unwrap()).collect();
    assert_eq!(folders, TARGETS.map(|(name, _)| name.to_owned()).into());
    let mut failed = Vec::new();
    for (name, run) in TARGETS {
        let mut files: Vec<_> =
            fs::read_dir(seeds.join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty(), "no seeds for {name}");
        for file in files {
            let data = fs::read(&file).unwrap();
            if std::panic::catch_unwind(|| run(&data)).is_err() {
                failed.push(file);
            }
        }
    }
    assert!(failed.is_empty(), "these fail, each as told above: {failed:#?}");
}

#[test]
fn a_cut_or_empty_input_is_an_input() {
    for (_, run) in TARGETS {
        run(&[]);
        run(&[0xff]);
        run(&[0xff; 40]);
    }
}
