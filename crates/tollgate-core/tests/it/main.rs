//! Tests of the algorithms: against an independent oracle, and by the twelve properties of the
//! design.
#![expect(unreachable_pub, reason = "nothing is outside a test binary")]

mod coverage;
mod generate;
mod judged;
mod oracle;
mod properties;
mod setup;
mod world;
