//! The tables of the bench. A row is a case, or a contender in a case. A column comes from a report and its goals.

use crate::cpu::Busy;
use crate::goals::{Goal, verdict};
use crate::lab::numbers::{figure, fixed};
use crate::lab::report::{Quantity, Report, Series, cases, ms, ratio};
use crate::lab::write::{NONE, Table, interval, percentile, reach};
use crate::statistics::{Estimate, median};

/// The contender of a column whose figures are those of the row's own contender.
pub(crate) const OWN: &str = "";

/// A column of a table: the figures of a contender.
#[derive(Clone, Debug)]
pub(crate) enum Column {
    /// The median over the rounds.
    Cost(Quantity, &'static str),
    /// The median over the rounds, with its interval.
    Interval(Quantity, &'static str),
    /// The median of the ratios of two contenders in each round, with its interval.
    Ratio(Quantity, &'static str, &'static str),
    /// The limit that the goal sets for a contender, and the verdict.
    Goal(Quantity, &'static str),
    /// A percentile: the duration in milliseconds that this share of all durations does not exceed.
    Percentile(Quantity, &'static str, f64),
    Longest(Quantity, &'static str),
    /// The number of received events or replies, as a share of the expected number.
    Came(Quantity, &'static str),
    /// The delay of the generator's sends behind their plan.
    Lag(Quantity, &'static str),
    /// The shares of the time in which the server, the generator and other processes were busy. They are those of the
    /// first contender in this list that has them.
    Busy(&'static [&'static str]),
    Named(&'static str, Box<Self>),
}

#[derive(Clone, Copy)]
struct Row<'a> {
    report: &'a Report,
    goals: &'a [Goal],
    case: &'a str,
    /// The contender; empty if the row is a case.
    contender: &'a str,
}

impl Column {
    /// Returns the column with another head.
    pub(crate) fn named(self, head: &'static str) -> Self {
        Self::Named(head, Box::new(self))
    }

    fn heads(&self) -> Vec<String> {
        let head = match self {
            Self::Goal(..) => return ["at most", ""].map(str::to_owned).into(),
            Self::Cost(quantity, OWN) | Self::Interval(quantity, OWN) => quantity.title(),
            Self::Cost(_, of) | Self::Interval(_, of) => (*of).to_owned(),
            Self::Ratio(_, OWN, to) => format!("to {to}'s"),
            Self::Ratio(_, of, to) => format!("{of} / {to}"),
            Self::Percentile(_, OWN, share) => format!("p{}", share * 100.0),
            Self::Percentile(_, of, share) => format!("{of}: p{}", share * 100.0),
            Self::Longest(..) => "longest".to_owned(),
            Self::Came(..) => "received / expected".to_owned(),
            Self::Lag(..) => "generator's lag p99, ms".to_owned(),
            Self::Busy(_) => "busy, %: server, generator, others".to_owned(),
            Self::Named(head, _) => (*head).to_owned(),
        };
        vec![head]
    }

    fn cells(&self, row: Row<'_>) -> Vec<String> {
        let cell = match *self {
            Self::Goal(quantity, of) => return row.judged(quantity, of).into(),
            Self::Named(_, ref column) => return column.cells(row),
            Self::Cost(quantity, of) => {
                show(row.series(quantity, of).and_then(|of| median(&of.values())), figure)
            }
            Self::Interval(quantity, of) => {
                let estimate = row.series(quantity, of).and_then(Series::estimate);
                show(estimate, |estimate| interval(&estimate))
            }
            Self::Ratio(quantity, of, to) => row.ratio(quantity, of, to),
            Self::Percentile(quantity, of, share) => {
                show(row.series(quantity, of), |series| percentile(series, share))
            }
            Self::Longest(quantity, of) => {
                let longest = row.series(quantity, of).and_then(|of| of.percentile(1.0));
                show(longest, |time| figure(ms(time)))
            }
            Self::Came(quantity, of) => show(row.series(quantity, of), reach),
            Self::Lag(quantity, of) => {
                show(row.series(quantity, of).and_then(|of| of.strain?.behind_ms_p99), figure)
            }
            Self::Busy(contenders) => row.busy(contenders),
        };
        vec![cell]
    }
}

impl<'a> Row<'a> {
    fn name<'b>(&self, of: &'b str) -> &'b str
    where
        'a: 'b,
    {
        if of == OWN { self.contender } else { of }
    }

    fn series(&self, quantity: Quantity, of: &str) -> Option<&'a Series> {
        self.report.find(self.case, self.name(of), quantity.name)
    }

    /// Returns the ratio of two contenders, as text. There is none between a contender and itself.
    fn ratio(&self, quantity: Quantity, of: &str, to: &str) -> String {
        let both = self.series(quantity, of).zip(self.series(quantity, to));
        let ratio = both.filter(|_| self.name(of) != to).and_then(|(of, to)| ratio(of, to));
        show(ratio, |Estimate { value, low, high }| {
            let [value, low, high] = [value, low, high].map(|figure| fixed(figure, 3));
            format!("{value} [{low}, {high}]")
        })
    }

    fn judged(&self, quantity: Quantity, of: &str) -> [String; 2] {
        let of = self.name(of);
        let is_own = |goal: &&Goal| (goal.quantity, &*goal.case) == (quantity, self.case);
        let goal = self.goals.iter().filter(is_own).find(|goal| goal.of == of);
        let Some(goal) = goal else { return [NONE, NONE].map(str::to_owned) };
        let unit = if goal.to.is_none() { quantity.unit } else { "" };
        let limit = if goal.limit < 100.0 { fixed(goal.limit, 2) } else { figure(goal.limit) };
        let estimate = goal.estimate(self.report);
        let verdict = show(estimate, |estimate| match self.report.flaw() {
            Some(flaw) => flaw.to_owned(),
            None => verdict(&estimate, goal.limit),
        });
        [format!("{limit} {unit}").trim_end().to_owned(), verdict]
    }

    /// Returns the medians of the shares in which the server, the generator and other processes were busy, as text.
    fn busy(&self, contenders: &[&str]) -> String {
        let all = self.report.series.iter().filter(|series| series.case == self.case);
        let watched: Vec<_> = all.filter(|series| !series.busy.is_empty()).collect();
        let of = |of: &&str| watched.iter().find(|series| series.contender == self.name(of));
        let busy = contenders.iter().find_map(of).map_or(&[][..], |series| &series.busy);
        let share = |of: fn(&Busy) -> f64| {
            let shares: Vec<_> = busy.iter().map(|busy| of(busy) * 100.0).collect();
            show(median(&shares), |share| fixed(share, 0))
        };
        [share(|busy| busy.server), share(|busy| busy.generator), share(|b| b.others)].join(", ")
    }
}

fn show<T>(value: Option<T>, format: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), format)
}

/// The layout of a table. The table is filled in once the report is complete.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) title: String,
    /// The quantity whose cases or contenders are the rows.
    quantity: Quantity,
    is_of_contenders: bool,
    columns: Vec<Column>,
}

impl Layout {
    /// Lays out a table with a row for each case of a quantity.
    pub(crate) fn of_cases(quantity: Quantity, columns: Vec<Column>) -> Self {
        Self { title: quantity.title(), quantity, is_of_contenders: false, columns }
    }

    /// Lays out a table with a row for each contender of each case.
    pub(crate) fn of_contenders(title: &str, quantity: Quantity, columns: Vec<Column>) -> Self {
        Self { title: title.to_owned(), quantity, is_of_contenders: true, columns }
    }

    pub(crate) fn table(&self, report: &Report, goals: &[Goal]) -> Table {
        let heads = self.columns.iter().flat_map(Column::heads);
        let own = report.series.iter().filter(|series| series.quantity == self.quantity.name);
        let named: Vec<(&str, &str)> = match self.is_of_contenders {
            true => own.map(|series| (&*series.case, &*series.contender)).collect(),
            false => cases(own).into_iter().map(|case| (case, OWN)).collect(),
        };
        let names = 1 + usize::from(self.is_of_contenders);
        let rows = named.into_iter().map(|(case, contender)| {
            let row = Row { report, goals, case, contender };
            let first = [case, contender].into_iter().take(names).map(str::to_owned);
            first.chain(self.columns.iter().flat_map(|column| column.cells(row))).collect()
        });
        let head = vec![String::new(); names].into_iter().chain(heads).collect();
        Table { title: self.title.clone(), head, rows: rows.collect() }
    }
}

#[cfg(test)]
mod tests;
