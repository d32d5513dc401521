//! Passes messages from one thread's members of `/broadcast` to those of all threads.

use std::collections::VecDeque;
use std::mem;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anemone_ws::proto::{Message, Prepared};
use anemone_ws::reactor::Broadcast;
use tokio::sync::Notify;

/// A message for the threads.
#[derive(Clone, Debug)]
pub(crate) enum Posted {
    Text(Arc<str>),
    Binary(Arc<[u8]>),
}

impl From<Message<'_>> for Posted {
    fn from(message: Message<'_>) -> Self {
        match message {
            Message::Text(text) => Self::Text(text.into()),
            Message::Binary(bytes) => Self::Binary(bytes.into()),
        }
    }
}

impl Posted {
    /// Returns its size in bytes, with its place in an inbox.
    fn bytes(&self) -> usize {
        let payload_bytes = match self {
            Self::Text(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
        };
        mem::size_of::<Self>() + payload_bytes
    }

    fn prepare(&self) -> Prepared {
        Prepared::new(match self {
            Self::Text(text) => Message::Text(text),
            Self::Binary(bytes) => Message::Binary(bytes),
        })
    }
}

/// The inboxes of all threads.
#[derive(Debug)]
pub(crate) struct Everyone {
    bytes_max: usize,
    /// One inbox for each thread, under one lock, so that all have the same order.
    inboxes: Mutex<Vec<ThreadInbox>>,
}

#[derive(Debug, Default)]
struct ThreadInbox {
    messages: VecDeque<Posted>,
    bytes: usize,
    /// The number of messages that were dropped before these.
    missed: u64,
    is_filled: Arc<Notify>,
}

impl Everyone {
    /// Creates inboxes that keep up to `bytes_max` bytes for a busy thread; beyond that, the oldest messages are
    /// dropped. The limit is not a number of messages, since one read can bring very many small ones.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, inboxes: Mutex::default() }
    }

    pub(crate) fn post(&self, message: &Posted) {
        for inbox in self.inboxes().iter_mut() {
            inbox.push(message.clone(), self.bytes_max);
        }
    }

    /// Returns the work that passes messages from now on to a thread's members, for as long as it is polled.
    pub(crate) fn relay(self: &Arc<Self>, members: Broadcast) -> impl Future<Output = ()> + use<> {
        let is_filled = Arc::<Notify>::default();
        let index = {
            let mut inboxes = self.inboxes();
            inboxes
                .push(ThreadInbox { is_filled: Arc::clone(&is_filled), ..ThreadInbox::default() });
            inboxes.len() - 1
        };
        let (everyone, mut messages) = (Arc::clone(self), VecDeque::new());
        async move {
            loop {
                is_filled.notified().await;
                let missed = everyone.inboxes()[index].take(&mut messages);
                if missed > 0 {
                    members.skip(missed);
                }
                for message in messages.drain(..) {
                    members.send(Rc::new(message.prepare()));
                }
            }
        }
    }

    fn inboxes(&self) -> MutexGuard<'_, Vec<ThreadInbox>> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ThreadInbox {
    fn push(&mut self, message: Posted, bytes_max: usize) {
        if self.messages.is_empty() {
            self.is_filled.notify_one();
        }
        self.bytes += message.bytes();
        self.messages.push_back(message);
        while self.bytes > bytes_max && self.messages.len() > 1 {
            if let Some(oldest) = self.messages.pop_front() {
                self.bytes -= oldest.bytes();
                self.missed += 1;
            }
        }
    }

    /// Exchanges the messages for `empty`, and returns the number of missed messages before them.
    fn take(&mut self, empty: &mut VecDeque<Posted>) -> u64 {
        mem::swap(&mut self.messages, empty);
        self.bytes = 0;
        mem::take(&mut self.missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    fn posted(number: u8) -> Posted {
        Message::Binary(&[number; 10]).into()
    }

    /// The first bytes of what a thread takes, and how many it missed before.
    fn take(inbox: &mut ThreadInbox) -> (u64, Vec<u8>) {
        let mut messages = VecDeque::new();
        let missed = inbox.take(&mut messages);
        let bytes = messages.iter().map(|message| message.prepare().payload()[0]);
        (missed, bytes.collect())
    }

    #[test]
    fn an_inbox_drops_the_oldest_beyond_its_limit_and_counts_them() {
        let (mut inbox, three) = (ThreadInbox::default(), 3 * posted(0).bytes());
        for (bytes_max, expected) in
            [(three, (2, vec![2, 3, 4])), (three - 1, (3, vec![3, 4])), (1, (4, vec![4]))]
        {
            (0..5).for_each(|number| inbox.push(posted(number), bytes_max));
            assert_eq!(take(&mut inbox), expected, "{bytes_max} bytes");
        }
        assert_eq!(take(&mut inbox), (0, vec![]));
    }

    #[test]
    fn the_smallest_messages_of_one_read_find_room() {
        // A read brings 256 KiB, in which an empty message from a client takes six bytes.
        let (mut inbox, bytes_max) =
            (ThreadInbox::default(), Limits::default().broadcast_bytes_max);
        let messages = (256 << 10) / 6;
        (0..messages).for_each(|_| inbox.push(Message::Text("").into(), bytes_max));
        assert_eq!(inbox.take(&mut VecDeque::new()), 0);
    }
}
