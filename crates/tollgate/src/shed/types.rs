//! Settings of the shedder, what enters it, and what it answers.

/// Settings of an [`AdaptiveShedder`](super::AdaptiveShedder).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdaptiveSettings {
    /// The lowest limit, at least 1.
    pub min: u32,
    /// The highest limit, at least `min`.
    pub max: u32,
    /// The number of classes, from 1 to [`CLASSES_MAX`].
    pub classes: u8,
    /// Whether no request really waits or is shed, so that waits in the queue are not counted.
    pub is_shadow: bool,
}

/// The most classes that a shedder tells apart.
pub const CLASSES_MAX: u8 = 16;
/// The highest limit.
const LIMIT_MAX: u32 = 65_535;

impl AdaptiveSettings {
    /// Settings with the default bounds: from 4 to 512 requests in flight.
    pub fn new(classes: u8) -> Self {
        Self { min: 4, max: 512, classes, is_shadow: false }.in_range()
    }

    /// Keeps the limit between `min` and `max`.
    #[must_use]
    pub fn between(self, min: u32, max: u32) -> Self {
        Self { min, max, ..self }.in_range()
    }

    /// Sets whether the shedder is in shadow mode.
    #[must_use]
    pub fn shadow(self, is_shadow: bool) -> Self {
        Self { is_shadow, ..self }
    }

    fn in_range(self) -> Self {
        let min = self.min.clamp(1, LIMIT_MAX);
        let max = self.max.clamp(min, LIMIT_MAX);
        Self { min, max, classes: self.classes.clamp(1, CLASSES_MAX), ..self }
    }
}

impl Default for AdaptiveSettings {
    fn default() -> Self {
        Self::new(1)
    }
}

/// One request that enters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShedRequest {
    /// Its class: 0 is the most important. A class that does not exist counts as the last one.
    pub class: u8,
    /// A keyed hash of the client, for fairness inside the class; 0 without.
    pub client: u64,
}

/// How a call to the upstream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamOutcome {
    /// The upstream did its work, whatever it answered.
    Ok,
    /// The upstream was too busy: it timed out, refused the connection, or said so.
    Overloaded,
    /// The call says nothing about the upstream, for example because it was not made.
    Ignored,
    /// Nobody waits for the call any more, for example because its client left. The upstream may
    /// still work on it: the call keeps its slot until a later one ends, or for as long again.
    Abandoned,
}

/// What a caller reports about the upstream when it settles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpstreamReport {
    /// How the call ended.
    pub outcome: UpstreamOutcome,
    /// How long the call took, if the report may come later than its end.
    pub latency_us: Option<u64>,
}

impl UpstreamReport {
    /// A call that ends with its report.
    pub const fn new(outcome: UpstreamOutcome) -> Self {
        Self { outcome, latency_us: None }
    }

    /// A call that took this long.
    #[must_use]
    pub const fn after(mut self, latency_us: Option<u64>) -> Self {
        self.latency_us = latency_us;
        self
    }
}

/// Why a request was shed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShedReason {
    /// The fleet has as many requests in flight as it can take.
    Fleet,
    /// The limit is reached, and more important requests need it.
    Adaptive,
    /// The request waited too long, or the queue is full.
    Queue,
}

/// The refusal of a shed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShedRefusal {
    /// Why.
    pub reason: ShedReason,
    /// When the client may try again; random, so that clients do not return together.
    pub retry_after_us: u64,
}

impl ShedReason {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::Fleet, Self::Adaptive, Self::Queue];

    /// The index in [`ALL`](Self::ALL).
    pub(crate) const fn index(self) -> usize {
        self as usize
    }

    /// The name in metrics and traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fleet => "fleet",
            Self::Adaptive => "adaptive",
            Self::Queue => "queue",
        }
    }
}
