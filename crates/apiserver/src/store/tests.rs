use serde_json::json;

use super::{Behind, ChangeKind, Store, TableId, Unavailable, Write, range};

const T: TableId = TableId(0);

fn put(store: &Store, key: &str, text: &str) -> u64 {
    let expected = store.get(T, key).map(|found| found.revision);
    let object = json!({ "metadata": { "name": key }, "text": text });
    store.commit(T, key, expected, Write::Put(object)).unwrap().revision
}

fn remove(store: &Store, key: &str) -> u64 {
    let found = store.get(T, key).unwrap();
    store.commit(T, key, Some(found.revision), Write::Remove(found.full())).unwrap().revision
}

fn texts(store: &Store, revision: u64) -> Vec<(String, String)> {
    let snapshot = store.at(T, revision).unwrap();
    let texts = snapshot.objects.iter();
    texts.map(|(key, object)| (key.to_string(), object.value["text"].to_string())).collect()
}

#[test]
fn a_write_computed_from_an_older_version_fails() {
    let store = Store::new(1, 8, 100);
    let first = put(&store, "a", "1");
    put(&store, "a", "2");
    let late = Write::Put(json!({ "metadata": { "name": "a" }, "text": "late" }));
    assert!(store.commit(T, "a", Some(first), late).is_err());
    let again = Write::Put(json!({ "metadata": { "name": "a" }, "text": "again" }));
    assert!(store.commit(T, "a", None, again).is_err());
    assert_eq!(store.get(T, "a").unwrap().value["text"], "2");
}

#[test]
fn earlier_states_are_the_present_with_the_log_undone() {
    let store = Store::new(1, 8, 100);
    let mut states = vec![(100, texts(&store, 100))];
    for step in 0..7 {
        let revision = match step {
            3 => remove(&store, "a"),
            _ => put(&store, if step % 2 == 0 { "a" } else { "b" }, &step.to_string()),
        };
        let now = store.snapshot(T).objects;
        let now =
            now.iter().map(|(key, object)| (key.to_string(), object.value["text"].to_string()));
        states.push((revision, now.collect()));
    }
    for (revision, expected) in states {
        assert_eq!(texts(&store, revision), expected, "at {revision}");
    }
}

#[test]
fn what_the_log_has_lost_is_too_old_and_the_future_too_large() {
    let store = Store::new(1, 2, 100);
    for text in ["1", "2", "3", "4"] {
        put(&store, "a", text);
    }
    let oldest = Unavailable::TooOld { oldest: 102 };
    assert_eq!(store.at(T, 101).err(), Some(Unavailable::TooOld { oldest: 102 }));
    assert_eq!(store.cursor(T, 101).err(), Some(oldest));
    assert!(store.at(T, 102).is_ok());
    let current = Unavailable::TooLarge { current: 104 };
    assert_eq!(store.cursor(T, 105).err(), Some(current));
    assert_eq!(store.read(T, 1, 9).err(), Some(Behind { oldest: 102 }));
}

#[test]
fn a_reader_gets_each_change_once_and_learns_how_far_it_knows() {
    let store = Store::new(2, 8, 100);
    let cursor = store.cursor(T, 100).unwrap();
    put(&store, "a", "1");
    put(&store, "a", "2");
    remove(&store, "a");
    // A change elsewhere moves what a reader that has seen all knows.
    store.commit(TableId(1), "x", None, Write::Put(json!({ "metadata": {} }))).unwrap();
    let (first, known) = store.read(T, cursor, 2).unwrap();
    assert_eq!(known, 102);
    let (rest, known) = store.read(T, cursor + 2, 2).unwrap();
    assert_eq!(known, 104);
    let kinds: Vec<ChangeKind> = first.iter().chain(&rest).map(|change| change.kind).collect();
    assert_eq!(kinds, [ChangeKind::Added, ChangeKind::Modified, ChangeKind::Deleted]);
    assert_eq!(rest[0].object.value["metadata"]["resourceVersion"], "103");
    assert_eq!(rest[0].previous.as_ref().unwrap().revision, 102);
}

#[test]
fn a_namespace_is_a_range_of_keys() {
    let store = Store::new(1, 8, 100);
    for key in ["a/x", "a-b/x", "a/y", "ab/x", "a/z"] {
        put(&store, key, "");
    }
    let objects = store.snapshot(T).objects;
    let keys = |namespace, after| -> Vec<String> {
        range(&objects, namespace, after).map(|(key, _)| key.to_string()).collect()
    };
    assert_eq!(keys(Some("a"), None), ["a/x", "a/y", "a/z"]);
    assert_eq!(keys(Some("a"), Some("a/x")), ["a/y", "a/z"]);
    assert_eq!(keys(Some("a"), Some("a-b/x")), ["a/x", "a/y", "a/z"]);
    assert_eq!(keys(None, None), ["a-b/x", "a/x", "a/y", "a/z", "ab/x"]);
    assert_eq!(keys(None, Some("a/y")), ["a/z", "ab/x"]);
}

#[test]
fn field_ownership_is_sent_but_not_kept_as_a_tree() {
    let store = Store::new(1, 8, 100);
    let object = json!({ "metadata": { "name": "a", "managedFields": [{ "manager": "m" }] } });
    let stored = store.commit(T, "a", None, Write::Put(object)).unwrap();
    assert!(stored.value["metadata"].get("managedFields").is_none());
    assert_eq!(stored.full()["metadata"]["managedFields"][0]["manager"], "m");
}

#[test]
fn what_is_written_is_the_object_with_its_revision() {
    let store = Store::new(1, 8, 100);
    let fields = json!([{ "manager": "m", "fieldsV1": { "f:metadata": {} } }]);
    let cases = [
        json!({ "metadata": { "name": "a" } }),
        json!({ "metadata": {} }),
        json!({ "kind": "K", "metadata": { "labels": { "resourceVersion": "x" }, "uid": "u" } }),
        json!({ "metadata": { "managedFields": fields, "annotations": { "b": "\"" } }, "z": [] }),
        json!({ "metadata": { "managedFields": fields, "resourceVersion": "7" }, "status": {} }),
        json!({ "a": { "metadata": { "resourceVersion": "x" } }, "metadata": { "zz": 1 } }),
    ];
    for (at, object) in cases.into_iter().enumerate() {
        let key = at.to_string();
        let stored = store.commit(T, &key, None, Write::Put(object.clone())).unwrap();
        let mut expected = object;
        expected["metadata"]["resourceVersion"] = stored.revision.to_string().into();
        assert_eq!(String::from_utf8_lossy(&stored.json), expected.to_string());

        // The same again, without reading the ownership.
        let (put, known) = (Write::Put((*stored.value).clone()), Some(stored.revision));
        let managed = stored.managed_fields();
        let again = store.commit_keeping(T, &key, known, put, managed).unwrap();
        expected["metadata"]["resourceVersion"] = again.revision.to_string().into();
        assert_eq!(String::from_utf8_lossy(&again.json), expected.to_string());
        assert_eq!(again.value["metadata"].get("managedFields"), None);
    }
}
