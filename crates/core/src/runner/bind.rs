//! PreBind, Bind and PostBind: the part of a pod's way that runs beside the
//! core and talks to the API server.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use steersman_framework::extensions::{BindCtx, BoxFuture};
use steersman_framework::observer::{Call, Observer};
use steersman_framework::point::ExtensionPoint;
use steersman_framework::verdict::{BindVerdict, PluginError, PreBindVerdict};

use super::{Answer, Failed, Rejected, panic_error};
use crate::binding::Recall;
use crate::profile::Profile;

/// How a binding cycle ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BindOutcome {
    Bound,
    /// It was called off before the pod was bound.
    Recalled,
    Rejected(Rejected),
    Failed(Failed),
}

/// Runs the binding cycle of one pod.
pub(crate) async fn run_binding(
    profile: &Profile,
    ctx: BindCtx<'_>,
    recall: &Recall,
    observer: &mut (dyn Observer + Send),
) -> BindOutcome {
    let prepared = {
        let mut preparing = pin!(prepare(profile, ctx, observer));
        poll_fn(|cx| match recall.is_recalled() {
            true => Poll::Ready(None),
            false => preparing.as_mut().poll(cx).map(Some),
        })
        .await
    };
    match prepared {
        None => return BindOutcome::Recalled,
        Some(Ok(None)) => {}
        Some(Ok(Some(rejected))) => return BindOutcome::Rejected(rejected),
        Some(Err(failed)) => return BindOutcome::Failed(failed),
    }
    if !recall.may_bind() {
        return BindOutcome::Recalled;
    }
    match bind(profile, ctx, observer).await {
        Ok(()) => BindOutcome::Bound,
        Err(failed) => BindOutcome::Failed(failed),
    }
}

/// PreBind; the rejection, if a plugin says no.
async fn prepare(
    profile: &Profile,
    ctx: BindCtx<'_>,
    observer: &mut (dyn Observer + Send),
) -> Result<Option<Rejected>, Failed> {
    for slot in &profile.pre_bind {
        let call = call(ExtensionPoint::PreBind, slot.name, &ctx);
        match run(call, observer, || slot.plugin.pre_bind(ctx)).await? {
            PreBindVerdict::Done => {}
            PreBindVerdict::Reject(rejection) => {
                return Ok(Some(Rejected { plugin: slot.name, rejection }));
            }
        }
    }
    Ok(None)
}

/// Bind and PostBind.
async fn bind(
    profile: &Profile,
    ctx: BindCtx<'_>,
    observer: &mut (dyn Observer + Send),
) -> Result<(), Failed> {
    let mut bound = false;
    for slot in &profile.bind {
        let call = call(ExtensionPoint::Bind, slot.name, &ctx);
        if run(call, observer, || slot.plugin.bind(ctx)).await? == BindVerdict::Bound {
            bound = true;
            break;
        }
    }
    if !bound {
        let plugin = profile.bind.last().map_or("", |slot| slot.name);
        let error = PluginError("no Bind plugin took the pod".to_owned());
        return Err(Failed { point: ExtensionPoint::Bind, plugin, error });
    }
    for slot in &profile.post_bind {
        let call = call(ExtensionPoint::PostBind, slot.name, &ctx);
        let told = run(call, observer, || {
            let told = slot.plugin.post_bind(ctx);
            Box::pin(async move {
                told.await;
                Ok(())
            })
        });
        // The pod is bound: what a listener does with the news changes nothing.
        let _ = told.await;
    }
    Ok(())
}

fn call<'a>(point: ExtensionPoint, plugin: &'static str, ctx: &BindCtx<'a>) -> Call<'a> {
    Call { point, plugin, pod: ctx.pod, node: Some(ctx.node) }
}

async fn run<'a, T: Answer>(
    call: Call<'_>,
    observer: &mut (dyn Observer + Send),
    start: impl FnOnce() -> BoxFuture<'a, Result<T, PluginError>>,
) -> Result<T, Failed> {
    observer.before(call);
    let answer = match catch_unwind(AssertUnwindSafe(start)) {
        Ok(future) => Guarded(future).await,
        Err(panic) => Err(panic_error(&*panic)),
    };
    observer.after(
        call,
        match &answer {
            Ok(answer) => answer.outcome(),
            Err(error) => steersman_framework::observer::Outcome::Error(&error.0),
        },
    );
    answer.map_err(|error| Failed { point: call.point, plugin: call.plugin, error })
}

impl Answer for BindVerdict {
    fn outcome(&self) -> steersman_framework::observer::Outcome<'_> {
        match self {
            Self::Bound => steersman_framework::observer::Outcome::Success,
            Self::Skip => steersman_framework::observer::Outcome::Skip,
        }
    }
}

/// A future whose panics become errors. It is not polled again after one.
struct Guarded<'a, T>(BoxFuture<'a, Result<T, PluginError>>);

impl<T> Future for Guarded<'_, T> {
    type Output = Result<T, PluginError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx)))
            .unwrap_or_else(|panic| Poll::Ready(Err(panic_error(&*panic))))
    }
}
