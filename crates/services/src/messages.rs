//! The resource `messages` of the demo.

use anemone_hub::{Hub, TopicName};

use crate::{
    Call, Changed, Collection, CollectionOptions, Field, Fields, Found, Methods,
    OpenCollectionError, Query, Record, Resource, ResourceError, Schema,
};

/// Messages with a text and a sender. The message `testing` can be read before it is stored.
#[derive(Clone, Debug)]
pub struct Messages(Collection);

impl Messages {
    /// Opens the messages in the topic of this name.
    ///
    /// # Errors
    /// As [`Collection::open`].
    pub fn open(
        hub: &Hub,
        name: TopicName,
        options: CollectionOptions,
    ) -> Result<Self, OpenCollectionError> {
        let schema = Schema::new("Message")
            .field(Field::text("text", 1..=2_000).required())
            .field(Field::text("from", 0..=80));
        Collection::open(hub, name, schema, options).map(Self)
    }

    /// Returns the collection that has the messages.
    #[must_use]
    pub fn collection(&self) -> &Collection {
        &self.0
    }
}

impl Resource for Messages {
    fn methods(&self) -> Methods {
        Methods::ALL
    }

    fn schema(&self) -> &Schema {
        self.0.schema()
    }

    async fn find(&self, query: &Query, call: &Call) -> Result<Found, ResourceError> {
        self.0.find(query, call).await
    }

    async fn get(&self, id: &str, call: &Call) -> Result<Record, ResourceError> {
        match self.0.get(id, call).await {
            Err(ResourceError::Unknown(_)) if id == "testing" => {
                let fields = Fields::from_iter([("id".to_owned(), id.into())]);
                Ok(Record { fields, tag: None })
            }
            found => found,
        }
    }

    async fn create(&self, record: Fields, call: &Call) -> Result<Changed, ResourceError> {
        self.0.create(record, call).await
    }

    async fn update(
        &self,
        id: &str,
        record: Fields,
        call: &Call,
    ) -> Result<Changed, ResourceError> {
        self.0.update(id, record, call).await
    }

    async fn patch(&self, id: &str, patch: Fields, call: &Call) -> Result<Changed, ResourceError> {
        self.0.patch(id, patch, call).await
    }

    async fn remove(&self, id: &str, call: &Call) -> Result<Changed, ResourceError> {
        self.0.remove(id, call).await
    }
}
