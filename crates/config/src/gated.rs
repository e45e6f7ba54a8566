//! Plugins that exist only while a feature is on.

use steersman_api::problem::{FieldPath, Problem};

use crate::gates::{FeatureGates, Gate};
use crate::wire::Configuration;

/// The plugins and their gates.
const GATED: [(&str, Gate); 1] = [("NodeDeclaredFeatures", Gate::NodeDeclaredFeatures)];

/// Whether a plugin may run.
pub(crate) fn is_available(plugin: &str, gates: &FeatureGates) -> bool {
    GATED.iter().all(|(name, gate)| *name != plugin || gates.enabled(*gate))
}

/// Takes plugins that may not run out of what the user wrote: the reference runs
/// them, and they do nothing.
pub(crate) fn leave_out(
    config: &mut Configuration,
    gates: &FeatureGates,
    notices: &mut Vec<Problem>,
) {
    let profiles = FieldPath::root().field("profiles");
    for (i, profile) in config.profiles.iter_mut().enumerate() {
        let at = profiles.index(i).field("plugins");
        for (field, set) in profile.plugins.named_mut() {
            set.enabled.retain(|plugin| {
                let stays = is_available(&plugin.name, gates);
                if !stays {
                    let at = plugin.at(&at.field(field), "enabled");
                    let what = format!("no effect, as the feature {} is off", plugin.name);
                    notices.push(Problem::new(&at, what));
                }
                stays
            });
        }
    }
}
