//! `classes` and `shed`.

use super::{DurationText, Entries, Match, Mode, OneOrMany, PercentText, Text, raw};

raw! {
    /// A class of requests.
    Class {
        /// The name: 1 to 64 printable ASCII characters without `/`; unique.
        #[cfg_attr(test, schemars(required))]
        name: Text,
        /// The requests of the class; all of them by default.
        r#match: Match,
        /// Whether the class takes the requests that no class matches.
        default: bool,
    }
}

raw! {
    /// Load shedding: the requests that are refused under overload.
    Shed {
        /// A bound on the requests in flight over all nodes.
        fleet: ShedFleet,
        /// A bound on the requests in flight at this node, adapted to what the upstream can take.
        adaptive: ShedAdaptive,
        /// The attributes that identify a client: within a class, the client that sends most is
        /// shed first.
        fair_by: OneOrMany<Text>,
        /// The attribute that lowers the class of a request by naming a less important one.
        lower_by: Text,
        /// Whether requests are shed.
        mode: Mode,
    }
}

raw! {
    /// The shedder of the fleet.
    ShedFleet {
        /// The most requests in flight over all nodes.
        #[cfg_attr(test, schemars(required, range(min = 1, max = 4294967295_u64)))]
        capacity: u64,
        /// The share of the capacity that less important classes leave free for each class.
        reserve: Entries<PercentText>,
        /// The longest time that a slot is held without renewal, so that a crash frees it.
        ttl: DurationText,
        /// The time that a request counts as in flight if its end is not seen.
        assume: DurationText,
    }
}

raw! {
    /// The shedder of one node.
    ShedAdaptive {
        /// The smallest bound.
        #[cfg_attr(test, schemars(range(min = 1, max = 65535)))]
        min: u64,
        /// The largest bound.
        #[cfg_attr(test, schemars(range(min = 1, max = 65535)))]
        max: u64,
    }
}
