//! The events that come from the lines of a program's standard output: progress, partial results and the result.

use anemone_hub::run::{RunContext, Stopped};
use anemone_hub::{Data, ProgressLine};
use anemone_wire::result_of_line;

use super::escapes::{Escapes, without_colours};
use super::program::Program;
use crate::lines::{self, Line, Lines};

/// The most lines that are published together. The lines of one read are published at its end, so none waits long.
const TOGETHER_MAX: usize = 256;

pub(super) struct Results<'a> {
    program: &'a Program,
    context: &'a RunContext,
    /// Partial results that are not published yet.
    partials: Vec<Data>,
    /// The last line, if it has a result. It counts only if no line follows.
    last: Option<ResultLine>,
    /// True once the log has listed the lines that count as progress.
    is_told: bool,
    /// True once the log has reported a line that is almost JSON, or that is UTF-16.
    is_fault_told: bool,
    /// True once a line of standard output has reported progress.
    has_own_progress: bool,
}

/// The progress bars that a program writes to standard error.
pub(super) struct Bars {
    escapes: Escapes,
    lines: Lines,
}

/// The longest line that may be a progress bar, in bytes. A bar is as wide as a terminal.
const BAR_BYTES_MAX: usize = 4000;

impl Bars {
    pub(super) fn new() -> Self {
        Self { escapes: Escapes::default(), lines: Lines::with_cr(BAR_BYTES_MAX) }
    }

    /// Returns the last progress bar in a piece. The bars before it are out of date.
    fn last_of(&mut self, bytes: &[u8]) -> Option<ProgressLine> {
        let mut bytes = self.escapes.remove(bytes);
        let mut last = None;
        while let Some(line) = self.lines.next(&mut bytes) {
            if let Line::Whole(line) = line {
                last = ProgressLine::of_bar(&without_colours(&lines::text(line))).or(last);
            }
        }
        last
    }
}

struct ResultLine {
    /// The line as it was written. It becomes a partial result if another line follows.
    line: Data,
    result: Data,
}

/// The reason why a line cannot be published.
pub(super) enum Refused {
    LineTooLong,
    Stopped(Stopped),
}

impl From<Stopped> for Refused {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

impl<'a> Results<'a> {
    pub(super) fn new(program: &'a Program, context: &'a RunContext) -> Self {
        Self {
            program,
            context,
            partials: Vec::new(),
            last: None,
            is_told: false,
            is_fault_told: false,
            has_own_progress: false,
        }
    }

    /// Publishes a line as progress, or adds it to the partial results. Keeps a line with a result until it is certain
    /// that no line follows.
    pub(super) fn pass_on(&mut self, line: Line<'_>) -> Result<(), Refused> {
        let Line::Whole(line) = line else { return Err(Refused::LineTooLong) };
        let text = lines::text(line);
        let plain = without_colours(&text);
        // A program that shows its progress erases a line by writing blanks over it.
        if plain.trim_ascii().is_empty() {
            return Ok(());
        }
        self.partials.extend(self.last.take().map(|last| last.line));
        let result = result_of_line(&plain).and_then(|result| Data::parse(result).ok());
        if let Some(progress) = ProgressLine::parse(&plain) {
            self.has_own_progress = true;
            self.show(&progress)?;
        } else if let Some(bar) = ProgressLine::of_bar(&plain) {
            self.show(&bar)?;
        } else if let Some(result) = result {
            self.last = Some(ResultLine { line: lines::data(&text), result });
        } else {
            self.tell_forms(&plain);
            let data = lines::data(&text);
            self.tell_fault(line, &data);
            self.partials.push(data);
        }
        if self.partials.len() >= TOGETHER_MAX { Ok(self.publish()?) } else { Ok(()) }
    }

    /// Publishes progress. Publishes the partial results before it first.
    fn show(&mut self, progress: &ProgressLine) -> Result<(), Stopped> {
        self.publish()?;
        self.context.progress(progress.fraction, progress.text.as_deref())
    }

    /// Publishes the progress of bars on standard error, unless the program reports progress on standard output.
    pub(super) fn show_bars(&mut self, bars: &mut Bars, bytes: &[u8]) -> Result<(), Stopped> {
        match bars.last_of(bytes).filter(|_| !self.has_own_progress) {
            Some(bar) => self.context.progress(bar.fraction, bar.text.as_deref()),
            None => Ok(()),
        }
    }

    /// Logs a line that is almost progress. Does so once for each run.
    fn tell_forms(&mut self, line: &str) {
        if !self.is_told && ProgressLine::is_almost(line) {
            self.program.tell_forms(line);
            self.is_told = true;
        }
    }

    /// Logs a line that is text because it is almost JSON, or that is UTF-16. Does so once for each run.
    fn tell_fault(&mut self, line: &[u8], data: &Data) {
        if self.is_fault_told {
            return;
        }
        if let Some(fault) = lines::fault(line, data) {
            self.program.tell_fault(&fault, &lines::text(line));
            self.is_fault_told = true;
        }
    }

    pub(super) fn publish(&mut self) -> Result<(), Stopped> {
        let published = self.context.partials(&self.partials);
        self.partials.clear();
        published
    }

    /// Takes the result. Call it after the last line.
    pub(super) fn take_result(&mut self) -> Option<Data> {
        self.last.take().map(|last| last.result)
    }

    /// Publishes the line with the result as a partial result, since the program has failed.
    pub(super) fn give_up_result(&mut self) -> Result<(), Stopped> {
        self.partials.extend(self.last.take().map(|last| last.line));
        self.publish()
    }
}
