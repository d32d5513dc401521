//! Submissions that take time, for example on a disk.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;

use anemone_wire::multiplexed::Id;
use futures_util::FutureExt;
use tokio::task::coop::unconstrained;

#[derive(Debug)]
pub(super) struct Submissions<T> {
    done: Rc<RefCell<Vec<(Id, T)>>>,
}

impl<T> Default for Submissions<T> {
    fn default() -> Self {
        Self { done: Rc::default() }
    }
}

impl<T: 'static> Submissions<T> {
    /// Begins a submission at once, so that submissions keep their order, and returns its result if it is ready.
    /// Otherwise a task waits for it, even if the connection ends; `wake` is called when [`take`](Self::take) has the
    /// result.
    pub(super) fn begin(
        &self,
        id: Id,
        submission: impl Future<Output = T> + 'static,
        wake: impl FnOnce() + 'static,
    ) -> Option<T> {
        let mut submission = Box::pin(submission);
        // tokio would otherwise make a task that has used up its turn wait.
        let begun = pin!(unconstrained(&mut submission));
        if let Some(result) = begun.now_or_never() {
            return Some(result);
        }
        let done = Rc::downgrade(&self.done);
        tokio::task::spawn_local(async move {
            let result = submission.await;
            if let Some(done) = done.upgrade() {
                done.borrow_mut().push((id, result));
                wake();
            }
        });
        None
    }

    /// Takes the results in the order of their completion.
    pub(super) fn take(&self) -> Vec<(Id, T)> {
        self.done.take()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::sync::oneshot;
    use tokio::task::{LocalSet, yield_now};

    use super::*;

    fn id(text: &str) -> Id {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn what_is_done_at_once_needs_no_task_and_nobody_is_woken() {
        let submissions = Submissions::default();
        let result = submissions.begin(id("a"), async { 7 }, || panic!("woken"));
        assert_eq!((result, submissions.take()), (Some(7), vec![]));
    }

    #[tokio::test]
    async fn what_takes_its_time_is_told_when_it_is_done() {
        let turns = async {
            let submissions = Submissions::default();
            let (woken, count) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
            let mut senders = Vec::new();
            for name in ["a", "b"] {
                let (sender, receiver) = oneshot::channel();
                senders.push(sender);
                let (woken, count) = (Rc::clone(&woken), Rc::clone(&count));
                let submission = async move {
                    count.set(count.get() + 1);
                    receiver.await.unwrap_or(0)
                };
                let wake = move || woken.set(woken.get() + 1);
                assert_eq!(submissions.begin(id(name), submission, wake), None);
            }
            assert_eq!(count.get(), 2, "both have begun");
            let b = senders.pop().unwrap();
            b.send(2).unwrap();
            while woken.get() < 1 {
                yield_now().await;
            }
            assert_eq!(submissions.take(), [(id("b"), 2)]);
            drop(submissions);
            senders.pop().unwrap().send(1).unwrap();
            yield_now().await;
            assert_eq!(woken.get(), 1, "nobody is there any more");
        };
        LocalSet::new().run_until(turns).await;
    }
}
