//! The sample extender as a program.

use std::net::SocketAddr;

use anyhow::Context;
use clap::Parser;
use kube::Client;
use steersman_sample_extender::app;
use tokio::net::TcpListener;

/// A scheduler extender to learn from. Finds the cluster as kubectl does.
#[derive(Parser)]
struct Cli {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:8888")]
    listen: SocketAddr,
}

fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().init();
    let cli = Cli::parse();
    let runtime = tokio::runtime::Runtime::new().context("cannot start")?;
    runtime.block_on(serve(cli.listen))
}

async fn serve(at: SocketAddr) -> anyhow::Result<()> {
    let cluster = Client::try_default().await.context("cannot find a cluster")?;
    let listener = TcpListener::bind(at).await.with_context(|| format!("cannot listen at {at}"))?;
    tracing::info!("listening at http://{at}");
    axum::serve(listener, app(cluster)).await.context("cannot go on")
}
