mod keys;
mod waiting;

use std::path::Path;

use anemone_hub::{DataDir, DataOptions, DiskFault, Epoch, FailingDisk, Fsync, Storage};
use http::{HeaderMap, header};
use serde_json::{Value, json};

use super::*;
use crate::{Field, Tag};

const OPTIONS: CollectionOptions = CollectionOptions {
    records_max: 8,
    bytes_max: 4 << 10,
    finds_max: 2,
    finds_waiting_per_client_max: 100,
    storage: Storage::Data,
};

fn schema() -> Schema {
    Schema::new("Note")
        .field(Field::text("text", 1..=500).required())
        .field(Field::integer("n", 0..=i64::MAX))
}

fn hub() -> Hub {
    Hub::new(Epoch::random().unwrap())
}

fn stored(path: &Path) -> Hub {
    let data = DataDir::open(path, DataOptions::default()).unwrap();
    Hub::with_data(Epoch::random().unwrap(), data).unwrap()
}

fn open(hub: &Hub, options: CollectionOptions) -> Collection {
    Collection::open(hub, "notes".parse().unwrap(), schema(), options).unwrap()
}

fn fields(value: Value) -> Fields {
    value.as_object().unwrap().clone()
}

fn note(text: &str) -> Fields {
    fields(json!({"text": text}))
}

fn if_match(tag: &Tag) -> Call {
    let headers = HeaderMap::from_iter([(header::IF_MATCH, tag.to_string().parse().unwrap())]);
    Call { condition: Condition::of(&headers).unwrap(), ..Call::default() }
}

fn with_key(key: &str) -> Call {
    Call { key: Some(key.parse().unwrap()), ..Call::default() }
}

fn events(collection: &Collection) -> Vec<(Position, Value)> {
    let (topic, now) = (collection.topic(), UnixTime::now());
    let mut position = topic.start(now, After::Earliest).unwrap();
    let mut events = Vec::new();
    loop {
        let page = topic.read(now, position, PageLimit::default()).unwrap();
        assert_eq!(page.gap, None);
        if page.events.is_empty() {
            return events;
        }
        let parsed = |data: &str| serde_json::from_str(data).unwrap();
        let read = page
            .events
            .iter()
            .map(|event| (position.at(event.offset), parsed(event.data.as_str())));
        events.extend(read);
        position = page.next;
    }
}

/// The records and their tags that a reader of the topic has in the end, by rules of its own.
fn as_read(collection: &Collection) -> Vec<(String, Value, String)> {
    let mut records = std::collections::BTreeMap::new();
    for (position, event) in events(collection) {
        let (name, record) = event.as_object().unwrap().iter().next().unwrap();
        let id = record["id"].as_str().unwrap().to_owned();
        let tag = event["of"].as_str().map_or(position.to_string(), str::to_owned);
        match &**name {
            "removed" => drop(records.remove(&id)),
            _ => drop(records.insert(id, (record.clone(), tag))),
        }
    }
    records.into_iter().map(|(id, (record, tag))| (id, record, tag)).collect()
}

fn as_stored(collection: &Collection) -> Vec<(String, Value, String)> {
    let state = collection.0.read();
    let of = |stored: &Arc<Stored>| {
        let record = Value::Object(Fields::clone(&stored.fields));
        (record["id"].as_str().unwrap().to_owned(), record, stored.tag.as_str().to_owned())
    };
    let mut records: Vec<_> = state.all().map(of).collect();
    records.sort_by(|one, other| one.0.cmp(&other.0));
    records
}

#[tokio::test]
async fn each_change_is_an_event_and_its_position_is_the_tag() {
    let collection = open(&hub(), OPTIONS);
    let call = Call::default();
    let created = collection.create(note("a"), &call).await.unwrap();
    assert_eq!(created.record.fields, fields(json!({"id": "1", "text": "a"})));
    let named = fields(json!({"id": "x", "text": "b"}));
    collection.create(named.clone(), &call).await.unwrap();
    let updated = collection.update("1", note("c"), &call).await.unwrap().record;
    let patched = collection.patch("1", fields(json!({"n": 7})), &call).await.unwrap().record;
    let removed = collection.remove("x", &call).await.unwrap().record;
    assert_eq!((removed.fields, removed.tag), (named, None));
    let found = events(&collection);
    let names =
        found.iter().map(|(_, event)| event.as_object().unwrap().keys().next().unwrap().clone());
    assert_eq!(names.collect::<Vec<_>>(), ["created", "created", "updated", "patched", "removed"]);
    assert_eq!(updated.tag, Some(found[2].0.into()));
    assert_eq!(patched.tag, Some(found[3].0.into()));
    assert_eq!(found[3].1, json!({"patched": {"id": "1", "text": "c", "n": 7}}));
    assert_eq!(collection.get("1", &call).await.unwrap(), patched);
    assert_eq!(collection.get("x", &call).await, Err(ResourceError::Unknown("x".into())));
}

#[tokio::test]
async fn what_does_not_fit_changes_nothing() {
    let collection = open(&hub(), OPTIONS);
    let call = Call::default();
    collection.create(fields(json!({"id": "a", "text": "a"})), &call).await.unwrap();
    let misfit = |error: ResourceError| match error {
        ResourceError::Misfit(misfit) => misfit.pointer,
        other => panic!("{other}"),
    };
    let patch = |patch: Value| collection.patch("a", fields(patch), &call);
    assert_eq!(misfit(patch(json!({"text": null})).await.unwrap_err()), "/text");
    assert_eq!(misfit(patch(json!({"other": 1})).await.unwrap_err()), "/other");
    assert_eq!(misfit(patch(json!({"id": null})).await.unwrap_err()), "/id");
    assert_eq!(misfit(patch(json!({"id": "b"})).await.unwrap_err()), "/id");
    let update = collection.update("a", fields(json!({"id": "b", "text": "a"})), &call).await;
    assert_eq!(misfit(update.unwrap_err()), "/id");
    let digits = collection.create(fields(json!({"id": "12", "text": "a"})), &call).await;
    assert_eq!(misfit(digits.unwrap_err()), "/id");
    let twice = collection.create(fields(json!({"id": "a", "text": "b"})), &call).await;
    assert_eq!(twice.unwrap_err(), ResourceError::Conflict("a".into()));
    for missing in [
        collection.update("b", note("a"), &call).await,
        collection.patch("b", note("a"), &call).await,
        collection.remove("b", &call).await,
    ] {
        assert_eq!(missing.unwrap_err(), ResourceError::Unknown("b".into()));
    }
    assert_eq!(events(&collection).len(), 1);
}

#[tokio::test]
async fn there_is_room_for_so_many_records_and_so_many_bytes() {
    let collection = open(&hub(), OPTIONS);
    let call = Call::default();
    for _ in 0..OPTIONS.records_max {
        collection.create(note("a"), &call).await.unwrap();
    }
    let is_full = |error: ResourceError| matches!(error, ResourceError::Full(_));
    assert!(is_full(collection.create(note("a"), &call).await.unwrap_err()));
    let long = "x".repeat(500);
    for id in 1..=5 {
        collection.patch(&id.to_string(), note(&long), &call).await.unwrap();
    }
    assert!(is_full(collection.patch("6", note(&long), &call).await.unwrap_err()));
    collection.remove("1", &call).await.unwrap();
    collection.patch("6", note(&long), &call).await.unwrap();
}

#[tokio::test]
async fn patches_make_no_record_larger_than_a_body_may_be() {
    let schema = Schema::new("Note").field(Field::any("a")).field(Field::any("b"));
    let options = CollectionOptions { bytes_max: 1 << 20, ..OPTIONS };
    let collection = Collection::open(&hub(), "notes".parse().unwrap(), schema, options).unwrap();
    let half = |name: &str, bytes: usize| fields(json!({name: "x".repeat(bytes)}));
    collection.create(half("a", 32 << 10), &Call::default()).await.unwrap();
    let grown = collection.patch("1", half("b", 32 << 10), &Call::default()).await;
    assert!(matches!(grown, Err(ResourceError::Misfit(_))), "{grown:?}");
    collection.patch("1", half("b", (32 << 10) - 100), &Call::default()).await.unwrap();
}

#[tokio::test]
async fn of_two_changes_with_the_same_tag_one_happens() {
    // RFC 9110 section 13.1.1
    let collection = open(&hub(), OPTIONS);
    let mut tag = collection.create(note("0"), &Call::default()).await.unwrap().record.tag.unwrap();
    for round in 1..100 {
        let text = round.to_string();
        // Both would leave the same record: it is the change that has happened, whatever it leaves.
        let patch = || async { collection.patch("1", note(&text), &if_match(&tag)).await };
        let (one, other) = tokio::join!(patch(), patch());
        let (won, lost): (Vec<_>, Vec<_>) = [one, other].into_iter().partition(Result::is_ok);
        assert_eq!((won.len(), lost.len()), (1, 1));
        assert_eq!(lost[0], Err(ResourceError::PreconditionFailed));
        tag = won[0].clone().unwrap().record.tag.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_have_the_order_of_the_changes_of_many_writers() {
    let collection = open(&hub(), CollectionOptions { records_max: 100, ..OPTIONS });
    let writer = |number: u64| {
        let collection = collection.clone();
        async move {
            let (mut replies, call) = (Vec::new(), Call::default());
            for step in 0..60_u64 {
                let fields = fields(json!({"text": format!("{number}-{step}"), "n": step}));
                let shared = ["a", "b", "c"][(step % 3) as usize];
                let reply = match step % 7 {
                    0 => {
                        let mut fields = fields;
                        fields.insert("id".into(), shared.into());
                        collection.create(fields, &call).await
                    }
                    1 => collection.remove(shared, &call).await,
                    2..4 => collection.patch(shared, fields, &call).await,
                    _ => collection.update(shared, fields, &call).await,
                };
                replies.extend(
                    reply.ok().map(|done| done.record).filter(|record| record.tag.is_some()),
                );
            }
            replies
        }
    };
    let writers: Vec<_> = (0..8).map(|number| tokio::spawn(writer(number))).collect();
    let mut replies = Vec::new();
    for writer in writers {
        replies.extend(writer.await.unwrap());
    }
    assert_eq!(as_read(&collection), as_stored(&collection));
    let events = events(&collection);
    for reply in replies {
        let tag = reply.tag.unwrap();
        // An event that is retained has what its writer was told.
        if let Some((_, event)) =
            events.iter().find(|(position, _)| position.to_string() == tag.as_str())
        {
            let record = event.as_object().unwrap().values().next().unwrap();
            assert_eq!(*record, Value::Object(reply.fields));
        }
    }
}

/// Random changes of a few records, some of them never touched again.
async fn churn(collection: &Collection, seed: &mut u64, changes: usize) {
    let call = Call::default();
    let mut random = |below: u64| {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) % below
    };
    for _ in 0..changes {
        let id = format!("r{}", random(9));
        let text = "x".repeat(1 + random(400) as usize);
        // A change may find no record, or no room.
        let _ = match random(20) {
            0..4 => collection.remove(&id, &call).await.is_ok(),
            4..10 => {
                let record = fields(json!({"id": id, "text": text}));
                collection.create(record, &call).await.is_ok()
            }
            _ => collection.patch(&id, note(&text), &call).await.is_ok(),
        };
    }
}

#[tokio::test]
async fn whoever_reads_the_topic_has_all_records_however_often_it_has_wrapped() {
    let dir = tempfile::tempdir().unwrap();
    for hub in [hub(), stored(dir.path())] {
        let collection = open(&hub, OPTIONS);
        let call = Call::default();
        let old = collection
            .create(fields(json!({"id": "old", "text": "never changed"})), &call)
            .await
            .unwrap();
        let mut seed = 7;
        for _ in 0..60 {
            churn(&collection, &mut seed, 50).await;
            assert_eq!(as_read(&collection), as_stored(&collection));
        }
        let info = collection.topic().info(UnixTime::now());
        assert!(info.first > 1_000, "the topic has wrapped: it begins at {}", info.first);
        assert_eq!(collection.get("old", &call).await.unwrap(), old.record);
    }
}

#[tokio::test]
async fn find_looks_at_all_records_in_the_order_of_their_ids() {
    let collection =
        open(&hub(), CollectionOptions { records_max: 300, bytes_max: 1 << 20, ..OPTIONS });
    let call = Call::default();
    for number in 1..=300 {
        collection.create(fields(json!({"text": "a", "n": number % 7})), &call).await.unwrap();
        if ![1, 12, 200, 201, 300].contains(&number) {
            continue;
        }
        let query = Query::parse(Some("n=1&$limit=1000"), collection.schema()).unwrap();
        let page = collection.find(&query, &call).await.unwrap();
        let ids: Vec<u32> = page
            .data
            .iter()
            .map(|record| record["id"].as_str().unwrap().parse().unwrap())
            .collect();
        let expected: Vec<u32> = (1..=number).filter(|number| number % 7 == 1).collect();
        assert_eq!((page.total, ids), (expected.len() as u64, expected));
    }
}

#[tokio::test]
async fn few_records_are_published_again_for_each_change() {
    let options = CollectionOptions {
        records_max: 500,
        bytes_max: 1 << 20,
        storage: Storage::Memory,
        ..OPTIONS
    };
    let collection = open(&hub(), options);
    let call = Call::default();
    for _ in 0..500 {
        collection.create(note("a"), &call).await.unwrap();
    }
    let mut head = collection.topic().info(UnixTime::now()).head.offset;
    for _ in 0..5_000 {
        collection.patch("1", note("b"), &call).await.unwrap();
        let now = collection.topic().info(UnixTime::now()).head.offset;
        assert!(now - head <= 3, "one change took {} events", now - head);
        head = now;
    }
    assert_eq!(as_read(&collection), as_stored(&collection));
}

#[tokio::test]
async fn fewer_records_than_there_are_may_be_allowed_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let before = {
        let hub = stored(dir.path());
        let collection = open(&hub, OPTIONS);
        churn(&collection, &mut 3, 200).await;
        hub.close().unwrap();
        as_stored(&collection)
    };
    let hub = stored(dir.path());
    let collection = open(&hub, CollectionOptions { records_max: 1, bytes_max: 1, ..OPTIONS });
    assert_eq!(as_stored(&collection), before);
    assert_eq!(as_read(&collection), before);
    let full = collection.create(note("a"), &Call::default()).await;
    assert!(matches!(full, Err(ResourceError::Full(_))));
    collection.remove(&before[0].0, &Call::default()).await.unwrap();
    assert_eq!(as_read(&collection), before[1..]);
}

/// Copies a directory of files and directories.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &to)
        } else {
            let _ = std::fs::copy(&path, &to).unwrap();
        }
    }
}

#[tokio::test]
async fn records_are_those_of_the_events_wherever_the_log_was_cut() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    let hub = stored(&whole);
    let collection = open(&hub, OPTIONS);
    churn(&collection, &mut 5, 40).await;
    hub.close().unwrap();
    drop((collection, hub));
    let newest = |path: &Path| {
        let files = std::fs::read_dir(path.join("topics/notes"))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        files
            .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
            .max()
            .unwrap()
    };
    let length = std::fs::metadata(newest(&whole)).unwrap().len();
    for cut in (1..length.min(600)).step_by(7) {
        let path = dir.path().join("cut");
        copy(&whole, &path);
        let file = std::fs::OpenOptions::new().write(true).open(newest(&path)).unwrap();
        file.set_len(length - cut).unwrap();
        let hub = stored(&path);
        let collection = open(&hub, OPTIONS);
        let records = as_stored(&collection);
        assert_eq!(as_read(&collection), records, "cut by {cut}");
        churn(&collection, &mut 9, 3).await;
        assert_eq!(as_read(&collection), as_stored(&collection), "cut by {cut}, and changed");
        hub.close().unwrap();
        drop((collection, hub));
        std::fs::remove_dir_all(&path).unwrap();
    }
}

#[tokio::test]
async fn a_caller_that_has_gone_leaves_a_whole_change() {
    let collection = open(&hub(), OPTIONS);
    collection.create(note("0"), &Call::default()).await.unwrap();
    for round in 0..50_u32 {
        let text = round.to_string();
        let call = Call::default();
        let change = collection.patch("1", note(&text), &call);
        tokio::select! {
            biased;
            () = async { for _ in 0..round % 4 { tokio::task::yield_now().await } } => {}
            changed = change => { changed.unwrap(); }
        }
    }
    // A later change waits for those before it.
    collection.patch("1", note("last"), &Call::default()).await.unwrap();
    assert_eq!(as_read(&collection), as_stored(&collection));
}

#[tokio::test]
async fn an_event_of_somebody_else_is_taken_into_account() {
    let collection = open(&hub(), OPTIONS);
    collection.create(note("0"), &Call::default()).await.unwrap();
    let foreign = anemone_hub::Data::parse(r#"{"created":{"id":"z","text":"foreign"}}"#).unwrap();
    collection.topic().publish(UnixTime::now(), foreign).unwrap();
    let data = anemone_hub::Data::parse("\"nonsense\"").unwrap();
    collection.topic().publish(UnixTime::now(), data).unwrap();
    let taken = collection.create(fields(json!({"id": "z", "text": "b"})), &Call::default()).await;
    assert_eq!(taken, Err(ResourceError::Conflict("z".into())));
    collection.patch("1", note("1"), &Call::default()).await.unwrap();
    assert_eq!(collection.get("z", &Call::default()).await.unwrap().fields["text"], "foreign");
}

#[tokio::test]
async fn a_change_that_was_published_but_not_applied_is_seen_by_the_next_reader() {
    let collection = open(&hub(), OPTIONS);
    let (call, topic) = (Call::default(), collection.topic());
    let publish = async |id: &str| {
        let record = fields(json!({"id": id, "text": "a"}));
        let change = RecordChange { kind: RecordChangeKind::Created, record };
        let now = UnixTime::now();
        let batch = Batch::new(new_events(now, &[change]).unwrap());
        topic.publish_kept(now, &batch).await.unwrap();
    };
    publish("a").await;
    assert_eq!(collection.get("a", &call).await.unwrap().fields["id"], "a");
    publish("b").await;
    assert_eq!(collection.find(&Query::default(), &call).await.unwrap().total, 2);
    publish("c").await;
    assert_eq!(collection.len(), 3);
    // A change that is under way applies its event itself, once it is kept.
    let changing = collection.0.changing.try_take().unwrap();
    publish("d").await;
    assert_eq!(collection.len(), 3);
    drop(changing);
    assert_eq!(collection.len(), 4);
}

#[tokio::test]
async fn on_a_full_disk_each_change_is_refused_for_that_reason_and_changes_nothing() {
    for fsync in [Fsync::Always, Fsync::Never] {
        let (folder, disk) = (tempfile::tempdir().unwrap(), FailingDisk::default());
        let data = DataOptions { fsync, ..DataOptions::default() };
        let data = disk.open(folder.path(), data).unwrap();
        let hub = Hub::with_data(Epoch::random().unwrap(), data).unwrap();
        let collection = open(&hub, OPTIONS);
        let call = Call::default();
        // So many changes that records are published again before others.
        let mut ids = Vec::new();
        for _ in 0..100 {
            let created = collection.create(note("a"), &call).await.unwrap();
            ids.push(created.record.fields["id"].as_str().unwrap().to_owned());
            if ids.len() > 6 {
                collection.remove(&ids.remove(0), &call).await.unwrap();
            }
        }
        let mut before = as_stored(&collection);
        let id = before[0].0.clone();
        for _ in 0..20 {
            disk.set(Some(DiskFault::Full));
            let refused = [
                collection.create(note("b"), &call).await.map(drop),
                collection.create(note("b"), &with_key("k")).await.map(drop),
                collection.update(&id, note("b"), &call).await.map(drop),
                collection.patch(&id, fields(json!({"n": 1})), &call).await.map(drop),
                collection.remove(&id, &call).await.map(drop),
            ];
            assert_eq!(refused, [(); 5].map(|()| Err(ResourceError::StorageFull)), "{fsync:?}");
            assert_eq!(as_stored(&collection), before);
            disk.set(None);
            let kept = collection.patch(&id, fields(json!({"n": 1})), &call).await.unwrap();
            assert_eq!(collection.get(&id, &call).await.unwrap(), kept.record);
            collection.update(&id, note("a"), &call).await.unwrap();
            before = as_stored(&collection);
        }
        let after = as_stored(&collection);
        assert_eq!(as_read(&collection), after);
        drop(collection);
        hub.close().unwrap();
        assert_eq!(as_stored(&open(&stored(folder.path()), OPTIONS)), after, "after a restart");
    }
}
