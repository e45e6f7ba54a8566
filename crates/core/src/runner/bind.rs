//! PreBind, Bind and PostBind: the part of a pod's way that runs beside the
//! core and talks to the API server.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use steersman_framework::extender::{ExtenderError, Roles};
use steersman_framework::extensions::{BindCtx, BoxFuture};
use steersman_framework::observer::{Call, Observer, Outcome, Phase};
use steersman_framework::point::ExtensionPoint;
use steersman_framework::verdict::{BindVerdict, PluginError, PreBindVerdict};

use super::extend::Fault;
use super::witness::Witness;
use super::{Answer, AttemptError, Extenders, Failed, Rejected, panic_error};
use crate::binding::Recall;
use crate::profile::Profile;

/// How a binding cycle ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BindOutcome {
    Bound,
    /// It was called off before the pod was bound.
    Recalled,
    Rejected(Rejected),
    /// It failed, and did not bind the pod: it came to no binding, or the world
    /// refused each as a conflict.
    Failed(AttemptError),
    /// It failed, and the pod may be bound all the same: the answer to a binding
    /// was lost, or somebody was asked of whose ways nothing is known.
    Unsure(AttemptError),
}

/// Runs the binding cycle of one pod; `notes` takes what goes wrong without
/// harm.
pub(crate) async fn run_binding(
    profile: &Profile,
    ctx: BindCtx<'_>,
    recall: &Recall,
    observer: &mut (dyn Observer + Send),
    notes: &mut Vec<String>,
) -> BindOutcome {
    let witness = Witness::new(ctx.world);
    let ctx = BindCtx { world: &witness, ..ctx };
    let phase = |point| Phase { point, pod: ctx.pod };
    if !profile.pre_bind.is_empty() {
        observer.phase_begins(phase(ExtensionPoint::PreBind));
        let prepared = {
            let mut preparing = pin!(prepare(profile, ctx, observer));
            poll_fn(|cx| match recall.is_recalled() {
                true => Poll::Ready(None),
                false => preparing.as_mut().poll(cx).map(Some),
            })
            .await
        };
        observer.phase_ends(
            phase(ExtensionPoint::PreBind),
            match &prepared {
                None | Some(Ok(None)) => Outcome::Success,
                Some(Ok(Some(rejected))) => Outcome::Rejected(&rejected.rejection),
                Some(Err(failed)) => Outcome::Error(&failed.error.0),
            },
        );
        match prepared {
            None => return BindOutcome::Recalled,
            Some(Ok(None)) => {}
            Some(Ok(Some(rejected))) => return BindOutcome::Rejected(rejected),
            Some(Err(failed)) => return BindOutcome::Failed(failed.into()),
        }
    }
    if !recall.may_bind() {
        return BindOutcome::Recalled;
    }
    match bind_outside(&profile.extenders, ctx, notes).await {
        Some(Ok(())) => {}
        // An extender tells what went wrong, not how far it came.
        Some(Err(error)) => return BindOutcome::Unsure(error.into()),
        None => {
            observer.phase_begins(phase(ExtensionPoint::Bind));
            let bound = bind(profile, ctx, observer).await;
            observer.phase_ends(phase(ExtensionPoint::Bind), bound.outcome());
            if let Err(failed) = bound {
                return match witness.saw_only_conflicts() {
                    true => BindOutcome::Failed(failed.into()),
                    false => BindOutcome::Unsure(failed.into()),
                };
            }
        }
    }
    if !profile.post_bind.is_empty() {
        observer.phase_begins(phase(ExtensionPoint::PostBind));
        tell(profile, ctx, observer).await;
        observer.phase_ends(phase(ExtensionPoint::PostBind), Outcome::Success);
    }
    BindOutcome::Bound
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

/// Lets the first extender bind that does so and is interested in the pod;
/// `None` when there is none. After one that may be ignored and failed the next
/// one is asked.
async fn bind_outside(
    extenders: &Extenders,
    ctx: BindCtx<'_>,
    notes: &mut Vec<String>,
) -> Option<Result<(), ExtenderError>> {
    for extender in extenders.interested(Roles::BIND, ctx.pod) {
        let start = || {
            let binding = extender.bind(ctx.pod, ctx.node);
            let binding: BoxFuture<'_, _> = Box::pin(async move { Ok(binding.await) });
            binding
        };
        let bound = match catch_unwind(AssertUnwindSafe(start)) {
            Ok(binding) => Guarded(binding).await,
            Err(panic) => Err(panic_error(&*panic)),
        };
        let fault = match bound {
            Ok(Ok(())) => return Some(Ok(())),
            Ok(Err(error)) => Fault::Told(error),
            Err(panic) => Fault::panicked(extender, &panic),
        };
        if !extender.is_ignorable() {
            return Some(Err(fault.into()));
        }
        notes.push(fault.left_out(ctx.pod, extender));
    }
    None
}

/// Bind: the first plugin that takes the pod.
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
    Ok(())
}

/// PostBind.
async fn tell(profile: &Profile, ctx: BindCtx<'_>, observer: &mut (dyn Observer + Send)) {
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
            Err(error) => Outcome::Error(&error.0),
        },
    );
    answer.map_err(|error| Failed { point: call.point, plugin: call.plugin, error })
}

impl Answer for BindVerdict {
    fn outcome(&self) -> Outcome<'_> {
        match self {
            Self::Bound => Outcome::Success,
            Self::Skip => Outcome::Skip,
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
