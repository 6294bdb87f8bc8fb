//! `classes` and `shed`.

use super::{DurationText, Entries, Match, Mode, OneOrMany, PercentText, Text, raw};

raw! {
    /// A class of requests.
    Class {
        /// 1 to 64 printable ASCII characters without `/`; unique.
        #[schemars(required)]
        name: Text,
        /// Which requests belong to it; all of them without it.
        r#match: Match,
        /// Whether it takes the requests that no class matches.
        default: bool,
    }
}

raw! {
    /// Which requests are shed when everybody sends too many.
    Shed {
        /// At most so many requests in flight over all nodes.
        fleet: ShedFleet,
        /// At most as many requests in flight at this node as its upstream can take.
        adaptive: ShedAdaptive,
        /// The attributes that tell clients apart: in a class, the client that sends most is shed
        /// first.
        fair_by: OneOrMany<Text>,
        /// The attribute that names a class less important than that of the request.
        lower_by: Text,
        /// Whether requests are shed.
        mode: Mode,
    }
}

raw! {
    /// The shedder of the fleet.
    ShedFleet {
        /// How many requests may be in flight over all nodes.
        #[schemars(required, range(min = 1, max = 4294967295_u64))]
        capacity: u64,
        /// What share of the capacity less important classes leave to a class.
        reserve: Entries<PercentText>,
        /// How long a slot is held at most without renewal, so that a crash frees it.
        ttl: DurationText,
        /// How long a request counts as in flight where its end is not seen.
        assume: DurationText,
    }
}

raw! {
    /// The shedder of one node.
    ShedAdaptive {
        /// The least number of requests in flight.
        #[schemars(range(min = 1, max = 65535))]
        min: u64,
        /// The largest number of requests in flight.
        #[schemars(range(min = 1, max = 65535))]
        max: u64,
    }
}
