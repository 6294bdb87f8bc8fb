//! The threshold: which classes enter. It moves in small steps, and rests near its target.

/// Steps of one class.
pub(super) const STEPS: u32 = 16;
/// Steps down in a tick.
const DOWN: u32 = 2;
/// The threshold rests while its target is nearer than this.
const REST: u32 = 2;
/// The queue is offered half as much again as the upstream completes, so that it never runs dry.
const SURPLUS: u64 = 2;

/// How far classes are open, in steps: a class is closed only when all below it are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Threshold {
    level: u32,
    classes: u32,
}

impl Threshold {
    pub(super) fn new(classes: u8) -> Self {
        Self { level: u32::from(classes) * STEPS, classes: classes.into() }
    }

    pub(super) fn set_classes(&mut self, classes: u8) {
        *self = Self::new(classes);
    }

    /// Opens all classes.
    pub(super) fn open(&mut self) {
        self.level = self.classes * STEPS;
    }

    /// Steps of `class` that are open, of [`STEPS`].
    #[inline]
    pub(super) fn open_steps(&self, class: u8) -> u32 {
        self.level.saturating_sub(u32::from(class) * STEPS).min(STEPS)
    }

    /// Whether `class` is the one that is being shed, or closed.
    #[inline]
    pub(super) fn is_last(&self, class: u8) -> bool {
        self.open_steps(class) < STEPS || u32::from(class) + 1 == self.classes
    }

    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.level == self.classes * STEPS
    }

    /// Moves towards what the upstream completes, once a tick.
    pub(super) fn step(&mut self, is_overloaded: bool, completed: u64, offered: &[u64]) {
        let full = self.classes * STEPS;
        let target = match is_overloaded {
            true => target(completed + completed / SURPLUS, offered),
            false => full,
        };
        if target + REST <= self.level {
            self.level = self.level.saturating_sub(DOWN).max(target).max(1);
        } else if target >= self.level + REST || target == full {
            // All classes open within a second, however many there are.
            self.level = (self.level + self.classes).min(target);
        }
    }
}

/// The level at which `budget` is offered.
fn target(budget: u64, offered: &[u64]) -> u32 {
    let mut left = budget;
    let mut level = 0;
    for &offered in offered {
        if offered > left {
            return level + (left * u64::from(STEPS) / offered) as u32;
        }
        left -= offered;
        level += STEPS;
    }
    level
}
