//! Gives each namespace its account `default`.

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::cluster::{Change, Key, Seen, World};
use crate::engine::plan::{Call, Plan, View};

const NAME: &str = "default";

pub(crate) fn wake(_: &World, seen: &Seen, wake: &mut dyn FnMut(Key)) {
    match seen {
        Seen::Namespace(Change { old: None, new: Some(namespace) }) => {
            wake(Key::of(&namespace.metadata));
        }
        Seen::ServiceAccount(Change { old: Some(account), new: None })
            if account.metadata.name.as_deref() == Some(NAME) =>
        {
            wake(Key::new("", account.metadata.namespace.clone().unwrap_or_default()));
        }
        _ => {}
    }
}

/// Creates the account if the namespace lives and has none.
pub(crate) fn plan(view: View<'_>, key: &Key) -> Plan {
    let mut plan = Plan::default();
    let Some(namespace) = view.world.namespaces.get(key) else { return plan };
    let account = Key::new(key.name.clone(), NAME);
    let lives = namespace.metadata.deletion_timestamp.is_none();
    if lives && view.world.service_accounts.get(&account).is_none() {
        plan.call(Call::create(&ServiceAccount {
            metadata: ObjectMeta {
                name: Some(account.name),
                namespace: Some(account.namespace),
                ..Default::default()
            },
            ..Default::default()
        }));
    }
    plan
}
