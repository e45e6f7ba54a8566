//! Who asks for what is served.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use steersman_api::duration::GoDuration;
use steersman_serving::{AuthenticationOptions, RequestHeaderOptions};

use super::value::{CommaList, file, given, truth};

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Authentication flags")]
pub(in crate::command::run) struct AuthenticationFlags {
    /// How to reach the API server that is asked whose token it is, and where
    /// the authorities of client certificates are looked up. Without it, the
    /// one whose pods are scheduled.
    #[arg(long, value_name = "FILE", value_parser = file)]
    authentication_kubeconfig: Option<PathBuf>,
    /// Do not look up the authorities of client certificates in the cluster.
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value = "false", value_parser = truth,
        action = clap::ArgAction::Set
    )]
    authentication_skip_lookup: bool,
    /// How long the API server's answer about a token counts.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    authentication_token_webhook_cache_ttl: GoDuration,
    /// Start also when that look-up fails: certificates of clients are not
    /// accepted then.
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value = "true", value_parser = truth,
        action = clap::ArgAction::Set
    )]
    authentication_tolerate_lookup_failure: bool,
    /// Authorities of client certificates, PEM; the common name is the user's.
    /// Without it, the cluster says which.
    #[arg(long, value_name = "FILE", value_parser = file)]
    client_ca_file: Option<PathBuf>,
    #[command(flatten)]
    proxy: ProxyFlags,
}

/// Who may speak for others: a proxy in front, which has checked who asks.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Authentication flags")]
struct ProxyFlags {
    /// Common names of proxies that may name a user in headers; any that the
    /// authorities vouch for if there are none.
    #[arg(long, value_name = "NAMES")]
    requestheader_allowed_names: Vec<CommaList>,
    /// Authorities of such proxies, PEM. Without it, the cluster says which
    /// authorities, names and headers.
    #[arg(long, value_name = "FILE", value_parser = file)]
    requestheader_client_ca_file: Option<PathBuf>,
    /// What headers with further facts about the user begin with.
    #[arg(long, value_name = "PREFIXES", default_value = "x-remote-extra-")]
    requestheader_extra_headers_prefix: Vec<CommaList>,
    /// Headers with the user's groups.
    #[arg(long, value_name = "HEADERS", default_value = "x-remote-group")]
    requestheader_group_headers: Vec<CommaList>,
    /// Headers with the user's UID, X-Remote-Uid among them.
    #[arg(long, value_name = "HEADERS")]
    requestheader_uid_headers: Vec<CommaList>,
    /// Headers with the user's name.
    #[arg(long, value_name = "HEADERS", default_value = "x-remote-user")]
    requestheader_username_headers: Vec<CommaList>,
}

impl AuthenticationFlags {
    /// The kubeconfig for the API server that is asked.
    pub(in crate::command::run) fn kubeconfig(&self) -> Option<&Path> {
        given(self.authentication_kubeconfig.as_ref())
    }

    /// How to authenticate, and what is unusual about it.
    ///
    /// # Errors
    /// When a header or name is empty, or UIDs are not read from the usual
    /// header.
    pub(in crate::command::run) fn options(
        &self,
    ) -> anyhow::Result<(AuthenticationOptions, Vec<String>)> {
        let request_header = self.proxy.options()?;
        let warnings = unusual(&request_header);
        let options = AuthenticationOptions {
            token_ttl: self.authentication_token_webhook_cache_ttl.to_std(),
            client_ca_file: given(self.client_ca_file.as_ref()).map(Path::to_owned),
            request_header,
            skip_lookup: self.authentication_skip_lookup,
            tolerate_lookup_failure: self.authentication_tolerate_lookup_failure,
            ..AuthenticationOptions::default()
        };
        Ok((options, warnings))
    }
}

impl ProxyFlags {
    fn options(&self) -> anyhow::Result<RequestHeaderOptions> {
        let list = |flag: &str, lists: &[CommaList]| {
            let all = CommaList::all(lists);
            if all.iter().any(|one| one.trim().is_empty()) {
                bail!("--requestheader-{flag}: an element is empty");
            }
            Ok(all)
        };
        let options = RequestHeaderOptions {
            client_ca_file: given(self.requestheader_client_ca_file.as_ref()).map(Path::to_owned),
            allowed_names: list("allowed-names", &self.requestheader_allowed_names)?,
            username_headers: list("username-headers", &self.requestheader_username_headers)?,
            uid_headers: list("uid-headers", &self.requestheader_uid_headers)?,
            group_headers: list("group-headers", &self.requestheader_group_headers)?,
            extra_header_prefixes: list(
                "extra-headers-prefix",
                &self.requestheader_extra_headers_prefix,
            )?,
        };
        if lacks(&options.uid_headers, "X-Remote-Uid") {
            bail!("--requestheader-uid-headers must have X-Remote-Uid among its elements");
        }
        Ok(options)
    }
}

fn lacks(headers: &[String], usual: &str) -> bool {
    !headers.is_empty() && !headers.iter().any(|one| one.eq_ignore_ascii_case(usual))
}

/// Headers that API servers send and that are not read.
fn unusual(options: &RequestHeaderOptions) -> Vec<String> {
    let usual = [
        ("username-headers", &options.username_headers, "X-Remote-User"),
        ("group-headers", &options.group_headers, "X-Remote-Group"),
        ("extra-headers-prefix", &options.extra_header_prefixes, "X-Remote-Extra-"),
    ];
    let lacking = usual.into_iter().filter(|(_, headers, usual)| lacks(headers, usual));
    lacking
        .map(|(flag, _, usual)| {
            format!("--requestheader-{flag} lacks {usual}, which API servers send")
        })
        .collect()
}
