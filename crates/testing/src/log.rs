//! The log of a test: the events of `tracing` that our crates emit.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, LazyLock, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, NoSubscriber, set_default};
use tracing::{Dispatch, Event, Metadata, Subscriber};

/// Hands each event of our crates to a function.
pub(crate) struct Events<F>(pub(crate) F);

impl<F: Fn(&Event<'_>) + 'static> Subscriber for Events<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("anemone")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        (self.0)(event);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The log of this thread, from [`Log::keep`] until this is dropped.
pub struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    _guard: DefaultGuard,
}

impl Log {
    pub fn keep() -> Self {
        // While a process has a single subscriber, tracing turns an event off for all threads if the thread that reaches it
        // first has none.
        static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));
        LazyLock::force(&SECOND);
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&lines);
        let keep = move |event: &Event<'_>| {
            let mut line = Line(String::new());
            event.record(&mut line);
            kept.lock().unwrap().push(format!("{} {}", event.metadata().level(), line.0));
        };
        Self { lines, _guard: set_default(Events(keep)) }
    }

    /// Each event's level and fields, the message first.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}{}", self.0);
        } else {
            write!(self.0, " {}={value:?}", field.name()).unwrap();
        }
    }
}
