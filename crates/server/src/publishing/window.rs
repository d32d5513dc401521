//! What was sent under which idempotency key of a topic: the newest keys, bounded by count and age. A
//! pure rule.
//!
//! The hub's own window has the places of what was published. This one has what the hub never sees, a
//! digest of the whole request.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use anemone_hub::{IdempotencyKey, KeyWindow};

/// The keys in the window.
#[derive(Debug)]
pub(super) struct Window {
    bounds: KeyWindow,
    /// Oldest first.
    order: VecDeque<(Instant, IdempotencyKey)>,
    digests: HashMap<IdempotencyKey, u64>,
}

impl Window {
    pub(super) fn new(bounds: KeyWindow) -> Self {
        Self { bounds, order: VecDeque::new(), digests: HashMap::new() }
    }

    /// Whether a key comes with what it came with before. One that is not in the window is taken in.
    pub(super) fn is_as_before(&mut self, now: Instant, key: &IdempotencyKey, digest: u64) -> bool {
        self.expire(now);
        if let Some(known) = self.digests.get(key) {
            return *known == digest;
        }
        self.order.push_back((now, key.clone()));
        self.digests.insert(key.clone(), digest);
        self.expire(now);
        true
    }

    /// Whether a key is in the window.
    pub(super) fn knows(&mut self, now: Instant, key: &IdempotencyKey) -> bool {
        self.expire(now);
        self.digests.contains_key(key)
    }

    fn expire(&mut self, now: Instant) {
        while let Some((begun, key)) = self.order.front() {
            let is_old = now.saturating_duration_since(*begun) > self.bounds.age_max;
            if self.order.len() <= self.bounds.keys_max && !is_old {
                return;
            }
            self.digests.remove(key);
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(name: impl ToString) -> IdempotencyKey {
        name.to_string().parse().unwrap()
    }

    fn window(keys_max: usize) -> Window {
        Window::new(KeyWindow { keys_max, age_max: Duration::from_secs(600) })
    }

    #[test]
    fn the_oldest_key_goes_when_there_is_one_too_many() {
        let (mut window, now) = (Window::new(KeyWindow::default()), Instant::now());
        for number in 1..=10_000 {
            assert!(window.is_as_before(now, &key(number), number));
        }
        assert!(!window.is_as_before(now, &key(1), 0), "10,000 are remembered");
        assert!(window.is_as_before(now, &key("more"), 0));
        assert!(!window.is_as_before(now, &key(2), 0));
        assert_eq!((window.order.len(), window.digests.len()), (10_000, 10_000));
        assert!(window.is_as_before(now, &key(1), 0), "it was forgotten");
    }

    #[test]
    fn a_key_is_known_up_to_its_age_and_no_longer() {
        let (mut window, begun) = (Window::new(KeyWindow::default()), Instant::now());
        window.is_as_before(begun, &key("a"), 1);
        let second = Duration::from_secs(1);
        window.is_as_before(begun + second, &key("b"), 1);
        let end = begun + 600 * second;
        assert!(!window.is_as_before(end, &key("a"), 2), "asking does not make it younger");
        assert!(window.is_as_before(end + Duration::from_nanos(1), &key("a"), 2));
        assert!(!window.is_as_before(end + second, &key("b"), 2));
        assert!(window.is_as_before(end + 2 * second, &key("b"), 2));
        assert_eq!((window.order.len(), window.digests.len()), (2, 2));
    }

    #[test]
    fn a_window_of_none_remembers_none() {
        let (mut window, now) = (window(0), Instant::now());
        assert!(window.is_as_before(now, &key("a"), 1));
        assert!(window.is_as_before(now, &key("a"), 2));
        assert!(window.order.is_empty() && window.digests.is_empty());
    }

    #[test]
    fn a_key_that_was_forgotten_can_come_again() {
        let (mut window, now) = (window(1), Instant::now());
        for digest in [1, 2] {
            assert!(window.is_as_before(now, &key("a"), digest));
            assert!(window.is_as_before(now, &key("b"), digest));
            assert!(!window.is_as_before(now, &key("b"), 0));
        }
    }
}
