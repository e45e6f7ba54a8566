//! The flags with their values, for `/flagz`.

use std::collections::BTreeMap;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// Values that flags have when they are not given, where that is decided later:
/// by the configuration.
const DECIDED_LATER: &[(&str, &str)] = &[
    ("contention-profiling", "true"),
    ("emulated-version", "kube=1.36"),
    ("kube-api-burst", "100"),
    ("leader-elect", "true"),
    ("leader-elect-lease-duration", "15s"),
    ("leader-elect-renew-deadline", "10s"),
    ("leader-elect-resource-lock", "leases"),
    ("leader-elect-resource-name", "kube-scheduler"),
    ("leader-elect-resource-namespace", "kube-system"),
    ("leader-elect-retry-period", "2s"),
    ("min-compatibility-version", "kube=1.35"),
    ("profiling", "true"),
    ("version", "false"),
];

/// Every flag of a command with the value that it has.
pub(crate) fn flags(command: &Command, matches: &ArgMatches) -> BTreeMap<String, String> {
    let mut shown = BTreeMap::new();
    for arg in command.get_arguments() {
        let Some(name) = arg.get_long() else { continue };
        if name == "help" {
            continue;
        }
        let id = arg.get_id().as_str();
        let written: Vec<String> = match matches.try_get_raw(id) {
            Ok(Some(values)) => values.map(|value| value.to_string_lossy().into_owned()).collect(),
            _ => Vec::new(),
        };
        let is_given = matches.value_source(id) == Some(ValueSource::CommandLine);
        let later = DECIDED_LATER.iter().find(|(flag, _)| *flag == name);
        let value = match later {
            Some((_, value)) if !is_given => (*value).to_owned(),
            _ => written.join(","),
        };
        shown.insert(name.to_owned(), value);
    }
    shown
}

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::*;
    use crate::command::run::Args;

    #[test]
    fn all_flags_are_shown_with_what_they_are_or_will_be() {
        let command = Args::augment_args(Command::new("x"));
        let args = [
            "x",
            "--v=4",
            "--leader-elect=false",
            "--tls-sni-cert-key=a,b",
            "--tls-sni-cert-key=c,d",
        ];
        let matches = command.clone().try_get_matches_from(args).unwrap();
        let shown = flags(&command, &matches);
        let expected = [
            ("v", "4"),
            ("leader-elect", "false"),
            ("leader-elect-retry-period", "2s"),
            ("secure-port", "10259"),
            ("authorization-always-allow-paths", "/healthz,/readyz,/livez"),
            ("tls-sni-cert-key", "a,b,c,d"),
            ("config", ""),
        ];
        for (flag, value) in expected {
            assert_eq!(shown.get(flag).map(String::as_str), Some(value), "{flag}");
        }
        for (flag, _) in DECIDED_LATER {
            assert!(shown.contains_key(*flag), "{flag} is no flag");
        }
        assert!(!shown.contains_key("help"));
    }
}
