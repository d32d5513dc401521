//! A document that is made once for each state of what it describes.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

/// The newest document, and the state `S` that it describes.
#[derive(Debug)]
pub(super) struct KeptDocument<S>(Mutex<Option<(S, Bytes)>>);

impl<S> Default for KeptDocument<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<S: PartialEq> KeptDocument<S> {
    /// Returns the document of this state, and makes it if the kept one describes another. Requests on other threads wait
    /// meanwhile, instead of making it too.
    pub(super) fn get(&self, state: S, make: impl FnOnce() -> Bytes) -> Bytes {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, document)) = kept.as_ref().filter(|(of, _)| *of == state) {
            return document.clone();
        }
        let document = make();
        *kept = Some((state, document.clone()));
        document
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use anemone_hub::{Data, Epoch, Hub, Retention, UnixTime};

    use super::*;

    #[test]
    fn a_document_is_made_once_until_the_index_moves() {
        let (hub, now) = (Hub::new(Epoch::from_bits(1)), UnixTime::now());
        let (kept, made) = (KeptDocument::default(), Cell::new(0));
        let ask = || {
            let names: Vec<_> = hub.topics().iter().map(|topic| topic.name().to_string()).collect();
            let document = kept.get(hub.index().info(now).head, || {
                made.set(made.get() + 1);
                names.join(" ").into()
            });
            assert_eq!(document, names.join(" "), "it describes what there is");
            made.get()
        };
        let topic = hub.create("a".parse().unwrap(), Retention::default()).unwrap();
        assert_eq!((0..100).map(|_| ask()).max(), Some(1));
        topic.publish(now, Data::json(&1).unwrap()).unwrap();
        hub.ensure("a".parse().unwrap(), Retention::default()).unwrap();
        assert_eq!(ask(), 1, "an event creates no topic");
        hub.create("b".parse().unwrap(), Retention::default()).unwrap();
        assert_eq!((0..100).map(|_| ask()).max(), Some(2));
        hub.delete(&"b".parse().unwrap()).unwrap();
        assert_eq!((0..100).map(|_| ask()).max(), Some(3));
    }
}
