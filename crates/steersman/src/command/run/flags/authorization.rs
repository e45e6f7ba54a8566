//! Who may see what is served.

use std::path::{Path, PathBuf};

use clap::Args;
use steersman_api::duration::GoDuration;
use steersman_serving::AuthorizationOptions;

use super::value::{CommaList, file, given};

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Authorization flags")]
pub(in crate::command::run) struct AuthorizationFlags {
    /// Paths that everybody may read, a star at the end standing for any rest.
    #[arg(long, value_name = "PATHS", default_value = "/healthz,/readyz,/livez")]
    authorization_always_allow_paths: Vec<CommaList>,
    /// How to reach the API server that is asked who may read what. Without it,
    /// the one whose pods are scheduled.
    #[arg(long, value_name = "FILE", value_parser = file)]
    authorization_kubeconfig: Option<PathBuf>,
    /// How long a permission counts before it is asked for again.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    authorization_webhook_cache_authorized_ttl: GoDuration,
    /// How long a refusal counts before it is asked for again.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    authorization_webhook_cache_unauthorized_ttl: GoDuration,
}

impl AuthorizationFlags {
    /// The kubeconfig for the API server that is asked.
    pub(in crate::command::run) fn kubeconfig(&self) -> Option<&Path> {
        given(self.authorization_kubeconfig.as_ref())
    }

    /// How to authorise.
    pub(in crate::command::run) fn options(&self) -> AuthorizationOptions {
        AuthorizationOptions {
            always_allow_paths: CommaList::all(&self.authorization_always_allow_paths),
            authorized_ttl: self.authorization_webhook_cache_authorized_ttl.to_std(),
            unauthorized_ttl: self.authorization_webhook_cache_unauthorized_ttl.to_std(),
        }
    }
}
