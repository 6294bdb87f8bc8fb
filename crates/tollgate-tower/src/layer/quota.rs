//! One quota as the decider of a layer: a key, a limiter, and the headers of its answer.

use super::decider::{Decided, Decider, LayerAdmission};
use super::{ExtractFn, LayerOptions};
use crate::engine::timer;
use crate::respond::{QuotaHeaders, build_refusal, header_row};
use crate::{RateLimitHeaders, Refusal, ResponseGuard, Task};
use http::request::Parts;
use http::{Extensions, Response};
use std::fmt;
use std::future::ready;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tollgate::engine::limit::Limit;
use tollgate::engine::{GateSetup, Row, Verdict};
use tollgate::store::Answer;
use tollgate::{Key, Limiter, Quota, Reservation};
use tollgate_core::header::{Profile, RowTemplate};
use tollgate_core::{Algorithm, LimitParams, Outcome};
use tollgate_policy::address::mask;

/// The name of the quota in headers.
const NAME: &str = "requests";
/// The attribute that a key extractor fills.
pub(super) const KEY: &str = "key";
/// Addresses of one IPv6 network of this length share a count, as in a policy without settings.
const IPV6_PREFIX: u8 = 64;
/// The time to live of a slot in memory: the longest possible. The slot ends with its request,
/// however long that takes. The `ttl` of a quota frees slots of processes that died; memory dies
/// with its process.
const SLOT_TTL: Duration = Duration::from_secs(366 * 86_400);

/// Decides by one quota in memory, for each address of a peer or another key. Made by
/// [`TollgateLayer::new`](crate::TollgateLayer::new) and [`by`](crate::TollgateLayer::by). Clones
/// share their counts.
#[derive(Clone)]
pub struct QuotaGate {
    limiter: Limiter,
    shared: Arc<QuotaSource>,
}

struct QuotaSource {
    quota: Quota,
    params: LimitParams,
    /// Describes the quota in refusals.
    limit: Limit,
    headers: &'static QuotaHeaders,
    /// `None` counts by the address of the peer.
    key: Option<Arc<ExtractFn>>,
    /// Whether a request may return its charge: a slot, or its place in a queue.
    may_undo: bool,
}

/// A request that the quota admitted.
pub struct QuotaAdmission {
    /// The headers of the response, unless they are hidden.
    headers: Option<&'static QuotaHeaders>,
    figures: AdmittedFigures,
    guard: QuotaGuard,
}

/// The figures of an admission that its response shows.
struct AdmittedFigures {
    remaining: u64,
    more_after_us: Option<u64>,
}

/// The charge of a request that has a slot, or that may be refunded.
#[derive(Debug)]
pub struct QuotaGuard {
    held: Option<Box<HeldReservation>>,
}

#[derive(Debug)]
struct HeldReservation {
    reservation: Reservation,
    /// How long to delay the request.
    delay_us: u64,
    /// Whether the request waits in a queue. If its client leaves, the request returns its place.
    is_queued: bool,
}

impl QuotaGate {
    pub(super) fn new(quota: Quota, key: Option<Arc<ExtractFn>>) -> Self {
        // Only slots have a `ttl`.
        let limiter = Limiter::new(quota.with_ttl(SLOT_TTL).unwrap_or(quota));
        let limit = GateSetup::quota_limit(NAME, KEY, quota);
        let Some(params) = limit.params else { unreachable!("a quota has parameters") };
        let may_undo = matches!(params, LimitParams::Concurrency(_) | LimitParams::LeakyBucket(_));
        let unused = Answer::without_receipt(Outcome::admitting(params.capacity()));
        let row = Row::of_answer(&limit, &params, &unused);
        let Some(headers) = RowTemplate::new(&header_row(&row)).and_then(QuotaHeaders::of) else {
            unreachable!("a short name and numbers are a header value")
        };
        let shared = QuotaSource { quota, params, limit, headers, key, may_undo };
        Self { limiter, shared: Arc::new(shared) }
    }

    /// The limiter, to look at a key, reset or block it. Addresses are keys as
    /// [`IpAddr`](std::net::IpAddr), those of IPv6 by their /64 network.
    pub fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// This quota as a policy with one limit, for another store; and its key extractor.
    pub(super) fn setup(&self) -> (GateSetup, Option<Arc<ExtractFn>>) {
        let QuotaSource { quota, key, .. } = &*self.shared;
        let attribute = if key.is_some() { KEY } else { "ip" };
        (GateSetup::of_quota(NAME, attribute, *quota), key.clone())
    }

    fn check(&self, head: &Parts, options: &LayerOptions) -> Result<QuotaAdmission, Box<Refusal>> {
        let cost = options.cost_of(head);
        match &self.shared.key {
            // Requests without a key share the count of the empty key.
            Some(key) => self.check_text(&key(head).unwrap_or_default(), cost, options),
            None => self.check_peer(options.peer_of(head), cost, options),
        }
    }

    // Inlined with the decision, so that the figures are returned in registers.
    #[inline(always)]
    fn check_peer(
        &self,
        peer: Option<IpAddr>,
        cost: u64,
        options: &LayerOptions,
    ) -> Result<QuotaAdmission, Box<Refusal>> {
        match peer {
            Some(peer) => self.check_key(mask(peer, IPV6_PREFIX), cost, options),
            None => self.check_text("", cost, options),
        }
    }

    /// Checks a text key. Not inlined: callers would contain the decision twice.
    #[inline(never)]
    fn check_text(
        &self,
        key: &str,
        cost: u64,
        options: &LayerOptions,
    ) -> Result<QuotaAdmission, Box<Refusal>> {
        self.check_key(key, cost, options)
    }

    #[inline(always)]
    fn check_key(
        &self,
        key: impl Key,
        cost: u64,
        options: &LayerOptions,
    ) -> Result<QuotaAdmission, Box<Refusal>> {
        if self.shared.may_undo || options.refund.is_some() {
            return self.reserve(key, cost, options);
        }
        match self.limiter.answer(key, cost, AdmittedFigures::of) {
            Ok(figures) => Ok(self.admission(figures, None, options)),
            Err(answer) => Err(self.refusal(&answer, options)),
        }
    }

    #[inline(always)]
    fn admission(
        &self,
        figures: AdmittedFigures,
        held: Option<Box<HeldReservation>>,
        options: &LayerOptions,
    ) -> QuotaAdmission {
        let headers = (!options.hides_headers).then_some(self.shared.headers);
        QuotaAdmission { headers, figures, guard: QuotaGuard { held } }
    }

    #[cold]
    fn refusal(&self, answer: &Answer, options: &LayerOptions) -> Box<Refusal> {
        let QuotaSource { limit, params, .. } = &*self.shared;
        let verdict = Verdict::of_row(Row::of_answer(limit, params, answer));
        let profiles: &[Profile] = if options.hides_headers { &[] } else { &[Profile::Draft11] };
        // Only profiles that show the time of day need it.
        let headers = RateLimitHeaders::new(&verdict, profiles, 0);
        Box::new(build_refusal(&verdict, headers, None, None))
    }

    /// Takes `cost` so that it can be given back.
    #[inline(never)]
    fn reserve(
        &self,
        key: impl Key,
        cost: u64,
        options: &LayerOptions,
    ) -> Result<QuotaAdmission, Box<Refusal>> {
        let (mut answer, decision) = self.limiter.reserve_answer(key, cost);
        if let LimitParams::Concurrency(slots) = self.shared.params {
            let shorten = |wait_us: &mut u64| *wait_us = slots.ttl_us().min(*wait_us);
            let outcome = &mut answer.outcome;
            shorten(&mut outcome.reset_after_us);
            outcome.retry_after_us.iter_mut().for_each(shorten);
            outcome.more_after_us.iter_mut().for_each(shorten);
        }
        let delay_us = answer.outcome.delay_us;
        let hold = |reservation| HeldReservation { reservation, delay_us, is_queued: delay_us > 0 };
        let held = decision.admitted().map(|reservation| Box::new(hold(reservation)));
        match AdmittedFigures::of(answer) {
            Ok(figures) => Ok(self.admission(figures, held, options)),
            Err(answer) => Err(self.refusal(&answer, options)),
        }
    }
}

impl AdmittedFigures {
    /// The figures of an admission; the whole answer of a refusal.
    #[inline(always)]
    fn of(answer: Answer) -> Result<Self, Box<Answer>> {
        let Outcome { admitted, remaining, more_after_us, .. } = answer.outcome;
        if admitted { Ok(Self { remaining, more_after_us }) } else { Err(boxed(answer)) }
    }
}

#[cold]
fn boxed(answer: Answer) -> Box<Answer> {
    Box::new(answer)
}

impl Decider for QuotaGate {
    type Admission = QuotaAdmission;

    fn decide_unread(
        &self,
        extensions: &Extensions,
        options: &LayerOptions,
    ) -> Option<Result<QuotaAdmission, Box<Refusal>>> {
        if self.shared.key.is_some() || options.reads_head() {
            return None;
        }
        Some(self.check_peer(LayerOptions::peer_in(extensions), 1, options))
    }

    fn decide_now(&self, head: &mut Parts, options: &LayerOptions) -> Option<Decided<Self>> {
        let checked = self.check(head, options);
        Some(checked.map_err(|refusal| Box::new(options.refuse(*refusal, head))))
    }

    fn decide(
        &self,
        head: &mut Parts,
        options: &LayerOptions,
    ) -> impl Future<Output = Decided<Self>> + Send {
        let checked = self.check(head, options);
        ready(checked.map_err(|refusal| Box::new(options.refuse(*refusal, head))))
    }

    fn sleep(&self, delay: Duration) -> Task {
        timer::sleep(delay)
    }
}

impl LayerAdmission for QuotaAdmission {
    type Guard = QuotaGuard;

    #[inline]
    fn delay_us(&self) -> u64 {
        self.guard.held.as_ref().map_or(0, |held| held.delay_us)
    }

    fn refund(&mut self) {
        self.guard.cancel();
    }

    fn record_failure(&mut self) {}

    #[inline(always)]
    fn respond<B>(&mut self, response: &mut Response<B>) -> QuotaGuard {
        if let Some(headers) = self.headers {
            let AdmittedFigures { remaining, more_after_us } = self.figures;
            headers.merge(remaining, more_after_us, response.headers_mut());
        }
        let mut guard = QuotaGuard { held: self.guard.held.take() };
        if let Some(held) = &mut guard.held {
            held.is_queued = false;
        }
        guard
    }
}

impl QuotaGuard {
    fn cancel(&mut self) {
        if let Some(held) = self.held.take() {
            held.reservation.cancel();
        }
    }
}

impl ResponseGuard for QuotaGuard {
    fn holds_nothing(&self) -> bool {
        self.held.is_none()
    }

    fn read_body(&mut self, _: &[u8]) {}

    fn end(&mut self, _: bool) {
        self.held = None;
    }
}

impl Drop for QuotaGuard {
    fn drop(&mut self) {
        if self.held.as_ref().is_some_and(|held| held.is_queued) {
            self.cancel();
        }
    }
}

impl fmt::Debug for QuotaGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QuotaGate").field(&self.limiter).finish()
    }
}
