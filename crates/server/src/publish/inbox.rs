//! A connection whose every message is an event: publishes the messages in the order of their arrival.

use std::cell::RefCell;
use std::rc::Rc;

use anemone_hub::{Data, TopicName};
use anemone_ws::proto::Message;
use anemone_ws::reactor::SendWaker;
use anemone_ws::{Memory, Reservation};
use futures_util::FutureExt;

use super::content::of_message;
use super::permit::PublishRefusal;
use super::writer::Writer;
use crate::Problem;

#[derive(Debug)]
pub(crate) struct Inbox {
    writing: Result<Box<Writer>, PublishRefusal>,
    publisher: Publisher,
    /// Messages that arrived while its topic is being created, which takes time on a disk.
    waiting: Rc<RefCell<Option<WaitingMessages>>>,
    memory: Memory,
}

#[derive(Debug)]
struct WaitingMessages {
    events: Vec<Data>,
    bytes: usize,
    held: Reservation,
}

/// Publishes messages, and keeps the problem of one whose log took time.
#[derive(Clone, Debug)]
struct Publisher {
    failed: Rc<RefCell<Option<Problem>>>,
    waker: Option<SendWaker>,
}

impl Inbox {
    pub(crate) fn new(writing: Result<Box<Writer>, PublishRefusal>, memory: &Memory) -> Self {
        let publisher = Publisher { failed: Rc::default(), waker: None };
        Self { writing, publisher, waiting: Rc::default(), memory: memory.clone() }
    }

    /// Records that the connection is open; it is woken when there is a problem to [take](Self::take_problem).
    pub(crate) fn open(&mut self, waker: SendWaker) {
        self.publisher.waker = Some(waker);
    }

    /// Takes the problem of a message whose log took time.
    pub(crate) fn take_problem(&self) -> Option<Problem> {
        self.publisher.failed.take()
    }

    /// Publishes a message, as far as that is possible at once. The first message may have to create the topic.
    pub(crate) fn publish(&self, message: Message<'_>, topic: &TopicName) -> Result<(), Problem> {
        let writer = self.writing.as_ref().map_err(|refusal| refusal.problem(topic))?;
        let event = of_message(message, writer.event_bytes_max)?;
        if let Some(waiting) = &mut *self.waiting.borrow_mut() {
            return waiting.push(event, writer);
        }
        if !writer.is_created() {
            let mut creation = Box::pin(writer.as_ref().clone().create(event.clone()));
            match creation.as_mut().now_or_never() {
                Some(created) => created?,
                None => return self.publish_once_created(creation, event, writer),
            }
        }
        self.publisher.publish(writer, event)
    }

    fn publish_once_created(
        &self,
        creation: impl Future<Output = Result<(), Problem>> + 'static,
        event: Data,
        writer: &Writer,
    ) -> Result<(), Problem> {
        let mut first =
            WaitingMessages { events: Vec::new(), bytes: 0, held: self.memory.reservation() };
        first.push(event, writer)?;
        *self.waiting.borrow_mut() = Some(first);
        let (waiting, publisher, writer) =
            (Rc::clone(&self.waiting), self.publisher.clone(), writer.clone());
        tokio::task::spawn_local(async move {
            let created = creation.await;
            // Later messages are published after these, since nothing runs in between.
            let events = waiting.take().into_iter().flat_map(|waiting| waiting.events);
            let published = created.and_then(|()| {
                events.into_iter().try_for_each(|event| publisher.publish(&writer, event))
            });
            if let Err(problem) = published {
                publisher.fail(problem);
            }
        });
        Ok(())
    }
}

impl WaitingMessages {
    fn push(&mut self, event: Data, writer: &Writer) -> Result<(), Problem> {
        let bytes = self.bytes + event.bytes().len();
        // A single message is no longer than an event may be.
        if !self.events.is_empty() && bytes > writer.waiting_bytes_max {
            return Err(writer.too_many_wait());
        }
        self.events.push(event);
        self.bytes = bytes;
        self.held.set(bytes);
        Ok(())
    }
}

impl Publisher {
    /// Publishes an event. If its outcome is not known at once, a task waits for it; the log limits the number of
    /// waiting events.
    fn publish(&self, writer: &Writer, event: Data) -> Result<(), Problem> {
        let mut handed = writer.publish(event)?;
        if let Some(outcome) = handed.outcome() {
            return outcome;
        }
        let own = self.clone();
        tokio::task::spawn_local(async move {
            if let Err(problem) = handed.kept().await {
                own.fail(problem);
            }
        });
        Ok(())
    }

    fn fail(&self, problem: Problem) {
        *self.failed.borrow_mut() = Some(problem);
        self.waker.iter().for_each(SendWaker::wake);
    }
}
