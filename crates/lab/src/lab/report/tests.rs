//! Helpers that make reports and series for tests, and the tests of reports.

use super::*;

pub(crate) fn series(contender: &str, rounds: &[f64]) -> Series {
    Series {
        case: "20 B".to_owned(),
        x: Some(20.0),
        contender: contender.to_owned(),
        quantity: "round trip".to_owned(),
        unit: "ms".to_owned(),
        is_more_better: false,
        rounds: rounds.iter().copied().map(Some).collect(),
        histogram: None,
        expected: 10,
        received: 9,
        faults: BTreeMap::from([(FaultKind::Stalled, 1)]),
        traffic: None,
        strain: Some(Strain { lag_ms_p99: Some(0.1), cpu: 0.5, ..Strain::default() }),
        busy: Vec::new(),
    }
}

/// Returns a report without series.
pub(crate) fn report() -> Report {
    Report {
        file: PathBuf::new(),
        version: VERSION,
        experiment: "echo".to_owned(),
        question: "How long?".to_owned(),
        answer: "Not long.".to_owned(),
        invalid: None,
        newest_invalid: None,
        is_interrupted: false,
        environment: Environment {
            program: "anemone".to_owned(),
            time: 0,
            duration_ms: 0,
            runs: None,
            processor: "a processor".to_owned(),
            cores: 2,
            system: "Linux".to_owned(),
            target: "a server".to_owned(),
            link: Link::default(),
            has_netem: false,
            rounds: 3,
            seed: 1,
            is_quick: false,
        },
        quantity: "round trip".to_owned(),
        series: Vec::new(),
        comparisons: Vec::new(),
        published: Vec::new(),
        models: Vec::new(),
        method: Vec::new(),
    }
}

pub(crate) fn published(verdict: Verdict) -> Published {
    Published {
        figure: "bytes".to_owned(),
        published: "1".to_owned(),
        measured: "2".to_owned(),
        verdict,
        because: "of Java".to_owned(),
    }
}

#[test]
fn a_difference_needs_rounds_enough() {
    let compared = |rounds: usize| {
        let [of, to] = [2.0, 1.0].map(|value| vec![value; rounds]);
        compare(&series("a", &of), &series("b", &to)).unwrap()
    };
    assert_eq!(compared(6).judgement(), Judgement::Distinguishable);
    // Equals would be all on one side in one of sixteen cases.
    assert_eq!(compared(5).judgement(), Judgement::TooFewRounds);
    assert!(!compared(5).is_distinguishable());
    let equals = compare(&series("a", &[1.0; 6]), &series("b", &[1.0; 6])).unwrap();
    assert_eq!(equals.judgement(), Judgement::NotDistinguishable);
}

#[test]
fn a_report_with_too_few_rounds_says_so_and_has_no_verdict() {
    let of = |rounds: usize, unit: &str| {
        let mut report = report();
        report.series = vec![series("a", &vec![2.0; rounds]), series("TCP", &vec![1.0; rounds])];
        report.series.iter_mut().for_each(|series| series.unit = unit.to_owned());
        report.compare_with("TCP");
        report.published = vec![published(Verdict::Differs)];
        report.complete();
        [report.full_answer(), report.published[0].words()]
    };
    let words = "Not long. With 4 rounds, no difference is sure: measure at least 6 (--rounds 6).";
    assert_eq!(of(4, "ms"), [words, "too few rounds"]);
    assert!(of(1, "ms")[0].contains("With 1 round, no"));
    let sure = ["Not long.", "differs, because of Java"];
    assert_eq!(of(6, "ms"), sure);
    assert_eq!(of(4, "B"), sure, "bytes are the same in each round");
}

#[test]
fn one_contender_has_nothing_to_be_compared_with() {
    let answer = |contenders: &[&str]| {
        let series = contenders.iter().map(|of| series(of, &[1.0])).collect();
        let mut report = Report { answer: String::new(), series, ..report() };
        report.complete();
        report.answer
    };
    let words = "Only SSE was measured, so there is nothing to compare it with. Medians of the round trip: 20 B, SSE: 1.000 ms.";
    assert_eq!(answer(&["SSE"]), words);
    assert!(answer(&["SSE", "poll"]).starts_with("Medians of the round trip: "));
}

#[test]
fn what_was_cut_has_no_verdict() {
    let verdicts = |mut report: Report| {
        report.published =
            [Verdict::Replicates, Verdict::Differs, Verdict::NotTestableHere].map(published).into();
        report.complete();
        report.published.iter().map(Published::words).collect::<Vec<_>>()
    };
    let untestable = "not testable here, because of Java";
    assert_eq!(verdicts(report()), ["replicates", "differs, because of Java", untestable]);
    let cut = Report { is_interrupted: true, ..report() };
    assert!(!cut.has_values());
    assert_eq!(verdicts(cut.clone()), ["interrupted", "interrupted", untestable]);
    let invalid = Report { invalid: Some("late".to_owned()), ..cut };
    assert_eq!(verdicts(invalid.clone())[0], "invalid");
    assert!(Report { series: vec![series("a", &[1.0])], ..invalid }.has_values());
}

#[test]
fn the_page_has_the_same_bounds_and_words() {
    let page = include_str!("../../../../../web/page/lab/report.js");
    for line in [
        format!("const VERSION = {VERSION};"),
        format!("const REACH_MIN = {REACH_MIN};"),
        format!("const PAIRS_MIN = {PAIRS_MIN};"),
        format!("const TOO_FEW = \"{TOO_FEW_ROUNDS} to be sure\";"),
    ] {
        assert!(page.contains(&line), "{line}");
    }
}

#[test]
fn rounds_are_paired_where_both_have_a_value() {
    let (mut of, to) = (series("a", &[2.0, 9.0, 4.0]), series("b", &[1.0, 1.0, 2.0]));
    of.rounds[1] = None;
    let comparison = compare(&of, &to).unwrap();
    assert_eq!(comparison.ratio.unwrap().value, 2.0);
    assert_eq!(comparison.shift.value, 1.5);
    assert_eq!(comparison.pairs, 2);
    of.rounds = vec![None; 3];
    assert!(compare(&of, &to).is_none(), "nothing to compare");
    assert_eq!(of.reach(), 0.9);
}
