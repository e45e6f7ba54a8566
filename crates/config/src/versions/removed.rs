//! Plugins that exist no more.

use crate::moved;
use crate::wire::Profile;

use super::Scope;

/// Takes their entries out, and puts the plugin that counts volumes of all kinds
/// where one was that counted some.
pub(super) fn leave_out(profile: &mut Profile, scope: &mut Scope<'_>) {
    for (field, set) in profile.plugins.named_mut() {
        let at = scope.set(field);
        let counts = "NodeVolumeLimits";
        let mut is_count_off = field == "filter" && set.disables(counts) && !set.enables(counts);
        for mut plugin in std::mem::take(&mut set.enabled) {
            let Some(instead) = moved::instead(&plugin.name, scope.registry) else {
                set.enabled.push(plugin);
                continue;
            };
            let at = plugin.at(&at, "enabled");
            let name = std::mem::take(&mut plugin.name);
            if is_count_off && moved::counted_volumes(&name) {
                is_count_off = false;
                scope.tell(&at, format!("found {name:?}, read as {counts:?}: {instead}"));
                counts.clone_into(&mut plugin.name);
                set.enabled.push(plugin);
            } else {
                scope.tell(&at, format!("found {name:?}, left out: {instead}"));
            }
        }
        set.disabled.retain(|plugin| {
            let instead = moved::instead(&plugin.name, scope.registry);
            if let Some(instead) = instead {
                let what = format!("found {:?}, left out: {instead}", plugin.name);
                scope.tell(&plugin.at(&at, "disabled"), what);
            }
            instead.is_none()
        });
    }
    let list = scope.plugin_config();
    profile.plugin_config.retain(|entry| {
        let instead = moved::instead(&entry.name, scope.registry);
        if let Some(instead) = instead {
            scope.tell(&entry.at(&list), format!("found {:?}, left out: {instead}", entry.name));
        }
        instead.is_none()
    });
}
