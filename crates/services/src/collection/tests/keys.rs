//! Changes with keys: repeated, also after a restart, and by whom the key was used for something else.

use super::*;

#[tokio::test]
async fn records_survive_a_restart_with_their_tags_and_keys() {
    let dir = tempfile::tempdir().unwrap();
    let mut seed = 1;
    let (mut before, mut first) = (Vec::new(), None);
    for round in 0..6 {
        let hub = stored(dir.path());
        let collection = open(&hub, OPTIONS);
        assert_eq!(as_stored(&collection), before, "round {round}");
        let created = collection.create(note("kept"), &with_key("a-key")).await.unwrap();
        let is_first = first.is_none();
        assert_eq!(created.is_replayed, !is_first);
        assert_eq!(*first.get_or_insert(created.record.clone()), created.record, "round {round}");
        let other = collection.create(note("other"), &with_key("a-key")).await;
        assert_eq!(other, Err(ResourceError::KeyReused));
        churn(&collection, &mut seed, 100).await;
        before = as_stored(&collection);
        // Every other round ends as `kill -9` does: nothing is closed.
        if round % 2 == 0 {
            hub.close().unwrap();
        }
    }
}

#[tokio::test]
async fn a_remove_with_a_key_may_be_repeated_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let gone = with_key("gone");
    let id = |record: &Record| record.fields["id"].as_str().unwrap().to_owned();
    let (removed, kept) = {
        let hub = stored(dir.path());
        let collection = open(&hub, OPTIONS);
        let first = collection.create(note("a"), &Call::default()).await.unwrap().record;
        let kept = collection.create(note("b"), &Call::default()).await.unwrap().record;
        let removed = collection.remove(&id(&first), &gone).await.unwrap();
        assert!(!removed.is_replayed);
        assert_eq!((&removed.record.fields, &removed.record.tag), (&first.fields, &None));
        (removed.record, kept)
    };
    let hub = stored(dir.path());
    let collection = open(&hub, OPTIONS);
    for _ in 0..2 {
        let again = Changed { record: removed.clone(), is_replayed: true };
        assert_eq!(collection.remove(&id(&removed), &gone).await, Ok(again));
    }
    let unknown = collection.remove(&id(&removed), &Call::default()).await;
    assert_eq!(unknown, Err(ResourceError::Unknown(id(&removed))));
    // The same key for something else.
    assert_eq!(collection.remove(&id(&kept), &gone).await, Err(ResourceError::KeyReused));
    let create = collection.create(note("c"), &gone).await.map(drop);
    assert_eq!(create, Err(ResourceError::KeyReused));
    assert_eq!(collection.len(), 1);
}

#[tokio::test]
async fn an_update_or_a_patch_with_a_key_may_be_repeated_whatever_others_did_since() {
    let dir = tempfile::tempdir().unwrap();
    let patch = fields(json!({"n": 7}));
    let (updated, patched, before) = {
        let hub = stored(dir.path());
        let collection = open(&hub, OPTIONS);
        collection.create(note("a"), &Call::default()).await.unwrap();
        let updated = collection.update("1", note("b"), &with_key("put")).await.unwrap();
        let patched = collection.patch("1", patch.clone(), &with_key("patch")).await.unwrap();
        assert!(!updated.is_replayed && !patched.is_replayed);
        collection.patch("1", note("others"), &Call::default()).await.unwrap();
        (updated.record, patched.record, as_stored(&collection))
    };
    let hub = stored(dir.path());
    let collection = open(&hub, OPTIONS);
    for _ in 0..2 {
        let again = collection.update("1", note("b"), &with_key("put")).await;
        assert_eq!(again, Ok(Changed { record: updated.clone(), is_replayed: true }));
        let again = collection.patch("1", patch.clone(), &with_key("patch")).await;
        assert_eq!(again, Ok(Changed { record: patched.clone(), is_replayed: true }));
        // The record itself is as others have left it.
        assert_eq!(as_stored(&collection), before);
    }
    // The same keys for something else.
    let reused = Err(ResourceError::KeyReused);
    assert_eq!(collection.update("1", note("c"), &with_key("put")).await, reused);
    assert_eq!(collection.update("1", note("b"), &with_key("patch")).await, reused);
    assert_eq!(collection.patch("2", patch, &with_key("patch")).await, reused);
    // Also for a patch that would have changed nothing then.
    for other in [json!({"n": 8}), json!({}), json!({"text": "b"}), json!({"no": null})] {
        assert_eq!(collection.patch("1", fields(other), &with_key("patch")).await, reused);
    }
    assert_eq!(collection.remove("1", &with_key("put")).await, reused);
}

#[tokio::test]
async fn a_repeated_change_whose_event_was_evicted_is_not_said_to_be_another() {
    let collection = open(&hub(), OPTIONS);
    let (id, patch) = ("1", fields(json!({"n": 7})));
    let created = collection.create(note("a"), &with_key("post")).await.unwrap().record;
    let updated = collection.update(id, note("b"), &with_key("put")).await.unwrap().record;
    collection.patch(id, patch.clone(), &with_key("patch")).await.unwrap();
    for number in 0..100 {
        collection.update(id, note(&number.to_string()), &Call::default()).await.unwrap();
    }
    let gone = Err(ResourceError::NoLongerRetained);
    assert_eq!(collection.patch(id, patch, &with_key("patch")).await, gone);
    let reused = Err(ResourceError::KeyReused);
    assert_eq!(collection.patch(id, note("c"), &with_key("patch")).await, reused);
    // The results of these can be told without their events.
    let again = |record| Ok(Changed { record, is_replayed: true });
    assert_eq!(collection.create(note("a"), &with_key("post")).await, again(created));
    assert_eq!(collection.update(id, note("b"), &with_key("put")).await, again(updated));
}
