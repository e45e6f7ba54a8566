//! Looks at the configuration of extenders without setting them up.

use steersman_api::problem::FieldPath;
use steersman_config::config::ExtenderConfig;

use crate::connect::{prefix, verb_of};
use crate::error::Error;
use crate::tls;

/// Whether to look into the files that a configuration names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// They are read, as [`connect`](crate::connect()) does.
    Open,
    /// They are left alone: the configuration may be meant for another machine.
    Leave,
}

/// Everything for which [`connect`](crate::connect()) would refuse the
/// configuration, and not only the first; in the order of the extenders. What the
/// system trusts is not looked at.
pub fn examine(extenders: &[ExtenderConfig], files: Files) -> Vec<Error> {
    let root = FieldPath::root().field("extenders");
    let all = extenders.iter().enumerate();
    all.flat_map(|(i, config)| one(config, &root.index(i), files)).collect()
}

fn one(config: &ExtenderConfig, at: &FieldPath, files: Files) -> Vec<Error> {
    let mut errors = Vec::new();
    match prefix(config, &at.field("urlPrefix")) {
        Err(error) => errors.push(error),
        Ok(prefix) => {
            let verbs = [
                ("filterVerb", &config.filter_verb),
                ("prioritizeVerb", &config.prioritize_verb),
                ("preemptVerb", &config.preempt_verb),
                ("bindVerb", &config.bind_verb),
            ];
            errors.extend(verbs.into_iter().filter_map(|(field, verb)| {
                verb_of(prefix, verb.as_ref()?, &at.field(field)).err()
            }));
        }
    }
    if let Some(tls) = &config.tls {
        let at = at.field("tlsConfig");
        errors.extend(tls::server_name(tls, &at).err());
        errors.extend(tls::problems(tls, &at, files));
    }
    errors
}
